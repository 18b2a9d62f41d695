"""Packages that a user installs without root: the archive, the wheel, npm."""

import hashlib
import http.server
import json
import os
import platform
import pty
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from pathlib import Path

from mcp import Gateway, Program, check_all, check_stdio, check_version, expect


def run(*command, **options) -> subprocess.CompletedProcess:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    expect(done.returncode == 0, f"{' '.join(map(str, command))} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def chroot(folder: Path) -> list[str]:
    """A command prefix that makes the folder the root."""
    own_namespace = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
    return [*own_namespace, "chroot", str(folder)]


def check_empty_root(context) -> None:
    """The program alone in a root folder: no library, no shell, no file beside it."""
    root = context.folder("empty-root")
    with tarfile.open(next(context.out.glob("toolyard-*.tar.gz"))) as archive:
        member = next(member for member in archive if member.name.endswith("/toolyard"))
        member.name = "toolyard"
        archive.extract(member, root, filter="data")
    program = Program([*chroot(root), "/toolyard"], root, "/")
    check_all(program, context.version)
    # Names are resolved by the C library inside the program: with /etc/hosts only.
    (root / "etc").mkdir()
    (root / "etc/hosts").write_text("127.0.0.1 localhost upstream.test\n")
    add_trap(root)
    # The HTTP client needs certificates of authorities, also for addresses without TLS.
    certificates = root / "etc/ssl/certs/ca-certificates.crt"
    certificates.parent.mkdir(parents=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", certificates)
    other = Program([*chroot(root), "/toolyard"], root / "other", "/other")
    with Gateway(other, "--no-auth") as upstream:
        settings = root / ".config/toolyard/toolyard.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[servers.inner]\nurl = "http://localhost:{upstream.port}/mcp"\n')
        tested = program.run("servers", "test", "inner")
        expect(tested.returncode == 0 and "ready" in tested.stdout, f"servers test ended with {tested.returncode}: {tested.stdout}{tested.stderr}")


def add_trap(root: Path) -> None:
    """A module of the name service switch that ends every process that loads it, as one of another glibc does."""
    (root / "etc/nsswitch.conf").write_text("hosts: trap files dns\npasswd: trap files\n")
    source = root / "trap.c"
    source.write_text("__attribute__((constructor)) static void trap(void) { __builtin_trap(); }\n")
    for folder in ["lib", "usr/lib", f"lib/{platform.machine()}-linux-gnu"]:
        (root / folder).mkdir(parents=True, exist_ok=True)
        run("cc", "-shared", "-fPIC", "-nostdlib", "-o", root / folder / "libnss_trap.so.2", source)


def check_wheel(context) -> None:
    wheel = next(context.out.glob("*.whl"))
    folder = context.folder("wheel")
    run("python3", "-m", "venv", folder / "venv")
    run(folder / "venv/bin/pip", "install", "--quiet", "--no-index", wheel)
    program = Program([folder / "venv/bin/toolyard"], folder / "home")
    check_all(program, context.version)
    run(folder / "venv/bin/pip", "uninstall", "--quiet", "--yes", "toolyard")
    expect(not (folder / "venv/bin/toolyard").exists(), "pip uninstall left the program")
    caches = {"UV_CACHE_DIR": str(folder / "uv"), "UV_OFFLINE": "1", "UV_PYTHON_DOWNLOADS": "never"}
    uvx = Program([shutil.which("uvx"), "--from", wheel, "toolyard"], folder / "home-uvx", **caches)
    check_version(uvx, context.version)
    check_stdio(uvx)


class Registry:
    """A registry of npm with the packages of a folder."""

    def __init__(self, tarballs: list[Path]):
        registry, self.packages, self.files = self, {}, {}
        for tarball in tarballs:
            with tarfile.open(tarball) as archive:
                manifest = json.load(archive.extractfile("package/package.json"))
            self.packages[manifest["name"]] = (manifest, tarball)
            self.files[tarball.name] = tarball.read_bytes()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, content = registry.answer(self.path, self.headers["Host"])
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def answer(self, path: str, host: str) -> tuple[int, bytes]:
        name = path.strip("/").replace("%2f", "/").replace("%2F", "/")
        if name.startswith("files/"):
            return 200, self.files[name.removeprefix("files/")]
        if name not in self.packages:
            return 404, b"{}"
        manifest, tarball = self.packages[name]
        digest = hashlib.sha1(self.files[tarball.name]).hexdigest()
        manifest = manifest | {"dist": {"tarball": f"http://{host}/files/{tarball.name}", "shasum": digest}}
        document = {"name": name, "dist-tags": {"latest": manifest["version"]}, "versions": {manifest["version"]: manifest}}
        return 200, json.dumps(document).encode()

    def __enter__(self) -> "Registry":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()


def check_npm(context) -> None:
    tarballs = sorted(context.out.glob("*.tgz"))
    folder = context.folder("npm")
    with Registry(tarballs) as registry:
        variables = {"npm_config_registry": registry.url, "npm_config_cache": str(folder / "cache"), "npm_config_audit": "false"}
        variables |= {"npm_config_update_notifier": "false", "npm_config_fund": "false"}
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), **variables}
        run("npm", "install", "--global", "--prefix", folder / "prefix", f"toolyard@{context.version}", env=environment)
        program = Program([folder / "prefix/bin/toolyard"], folder / "home")
        check_all(program, context.version)
        check_signals(program)
        npx = Program([shutil.which("npx"), "--yes", "toolyard"], folder / "home-npx", **variables)
        check_version(npx, context.version)
        # Not over HTTP: npx does not pass SIGTERM on, so that it leaves a gateway behind.
        check_stdio(npx)
    missing = context.folder("npm-without-platform")
    run("npm", "install", "--offline", "--omit=optional", "--prefix", missing, next(context.out.glob(f"toolyard-{context.version}.tgz")), env=environment)
    refused = Program([missing / "node_modules/.bin/toolyard"], missing).run("--version")
    expect(refused.returncode == 1 and "hint: " in refused.stderr, f"without the platform's package: {refused}")


def check_signals(program: Program) -> None:
    """Signals reach the program behind the launcher, and its end is that of the launcher."""
    for sent, code in [(signal.SIGINT, 0), (signal.SIGHUP, None)]:
        gateway = Gateway(program)
        gateway.__enter__()
        gateway.process.send_signal(sent)
        if code is None:
            # SIGHUP reloads the settings.
            time.sleep(0.5)
            expect(gateway.process.poll() is None, f"{sent.name} ended the gateway")
            gateway.__exit__()
        else:
            expect(gateway.process.wait(30) in (code, 130), f"{sent.name} ended the gateway with {gateway.process.returncode}")
    check_signals_with_terminal(program)
    gateway = Gateway(program)
    gateway.__enter__()
    children = Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    expect(gateway.process.wait(30) == -signal.SIGKILL, f"a killed program ended the launcher with {gateway.process.returncode}")


def check_signals_with_terminal(program: Program) -> None:
    """A terminal sends its signals to both processes. The launcher passes them on only if its input is no terminal."""
    for is_input in [False, True]:
        ours, terminal = pty.openpty()
        streams = {"stdin": terminal if is_input else subprocess.DEVNULL, "stderr": terminal}
        gateway = Gateway(program, streams=streams)
        gateway.__enter__()
        gateway.process.send_signal(signal.SIGINT)
        try:
            code = gateway.process.wait(3 if is_input else 30)
        except subprocess.TimeoutExpired:
            code = None
            gateway.__exit__()
        if is_input:
            expect(code is None, "SIGINT of a terminal was passed on")
        else:
            expect(code in (0, 130), f"SIGINT with a terminal as stderr: {code}")
        os.close(ours)
        os.close(terminal)
