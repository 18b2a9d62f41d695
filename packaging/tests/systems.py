"""Packages of operating systems: .deb and .rpm, the unit of systemd, the image."""

import os
import re
import shlex
import shutil
from pathlib import Path

from installs import chroot, run
from mcp import Gateway, Program, check_all, check_stdio, check_version, expect
from processes import free_port

ROOT = Path(__file__).resolve().parents[2]
UNIT = "usr/lib/systemd/system/toolyard.service"
# The exposure that `systemd-analyze security` computes, times ten; it may not grow.
MAX_EXPOSURE = 15
MAX_IMAGE_BYTES = 60_000_000
# Stands for a running systemd: keeps what it was asked, and whether the unit is enabled.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/var/log/systemctl
case "$*" in
preset* | enable*) touch /var/log/is-enabled ;;
disable*) rm -f /var/log/is-enabled ;;
*is-enabled*) [ -e /var/log/is-enabled ] ;;
esac
"""


def debian_root(context, name: str) -> Path:
    parts = Path(os.environ.get("TOOLYARD_PARTS") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolyard-parts")
    root = context.folder(name)
    run("tar", "-C", root, "-xf", parts / "debian-root.tar")
    # Programs of packages expect these; they are no devices here.
    (root / "dev").mkdir(exist_ok=True)
    for file in ["null", "urandom"]:
        (root / "dev" / file).touch()
    for folder in ["proc", "sys"]:
        (root / folder).mkdir(exist_ok=True)
    return root


def unit_settings(root: Path) -> dict[str, str]:
    lines = [line for line in (root / UNIT).read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def service_program(root: Path) -> tuple[Program, list[str], int]:
    """What systemd would start: as the user of the unit, with its environment."""
    settings = unit_settings(root)
    variables = dict(part.split("=", 1) for part in settings["Environment"].split())
    port = free_port()
    variables["TOOLYARD_ADDRESS"] = f"127.0.0.1:{port}"
    command = settings["ExecStart"]
    for name, value in variables.items():
        command = command.replace(f"${{{name}}}", value)
    program, *arguments = shlex.split(command)
    user = settings["User"]
    entry = next(line for line in (root / "etc/passwd").read_text().splitlines() if line.startswith(f"{user}:")).split(":")
    as_user = ["chroot", f"--userspec={entry[2]}:{entry[3]}", str(root)]
    home = variables.pop("HOME")
    expect(entry[5] == home, f"the home of {user} is {entry[5]}")
    return Program([*as_user, program], root / home.lstrip("/"), home, **variables), arguments, port


def start_service(root: Path) -> Gateway:
    program, arguments, port = service_program(root)
    return Gateway(program, command=arguments, port=port)


class Systemctl:
    """A stub in a root folder, so that scripts of packages find a running systemd."""

    def __init__(self, root: Path):
        self.log, self.state = root / "var/log/systemctl", root / "var/log/is-enabled"
        program = root / "usr/bin/systemctl"
        program.unlink()
        program.write_text(SYSTEMCTL)
        program.chmod(0o755)
        (root / "run/systemd/system").mkdir(parents=True)

    def calls(self) -> list[str]:
        """What it was asked since the last time, without questions and reloads."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.removesuffix(" toolyard.service") for line in lines if "is-enabled" not in line and line != "daemon-reload"]


def access(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid, found.st_mode & 0o777


def check_deb(context) -> None:
    """Installs, starts, upgrades, removes and purges the package in a Debian of its own; systemd does not run there."""
    root = debian_root(context, "debian")
    systemctl = Systemctl(root)
    first, second = next(context.out.glob("*.deb")), next((context.out / ".next").glob("*.deb"))
    for package in [first, second]:
        shutil.copy(package, root / "opt")
    needed = run("dpkg-deb", "--field", first, "Depends").stdout
    expect("ca-certificates" in needed, f"depends on {needed}")
    inside = chroot(root)
    run(*inside, "dpkg", "--install", f"/opt/{first.name}")
    expect((calls := systemctl.calls()) == ["preset", "start"], f"the installation called {calls}")
    check_version(Program([*inside, "toolyard"], root / "root", "/root"), context.version)
    check_stdio(Program([*inside, "toolyard"], root / "root", "/root"))
    settings = root / "etc/toolyard/toolyard.toml"
    owner = settings.stat().st_uid
    expect(owner not in (0, os.geteuid()) and settings.stat().st_mode & 0o777 == 0o640, "settings are not those of the user toolyard")
    expect((root / "var/lib/toolyard").stat().st_uid == owner, "the state is not that of the user toolyard")
    with start_service(root) as gateway:
        expect("calculate" in gateway.tools(), "tools of the service")
    settings.write_text(settings.read_text() + "\n[call]\ntimeout = \"31s\"\n")
    # Of an administrator who does not want commands of the user toolyard to change settings.
    os.chown(settings, 0, settings.stat().st_gid)
    os.chown(settings.parent, 0, settings.stat().st_gid)
    settings.parent.chmod(0o755)
    chosen = [access(path) for path in [settings, settings.parent]]
    run(*inside, "dpkg", "--install", f"/opt/{second.name}")
    expect((calls := systemctl.calls()) == ["try-restart"], f"the upgrade called {calls}")
    expect("31s" in settings.read_text(), "the upgrade replaced the settings")
    expect(chosen == [access(path) for path in [settings, settings.parent]], "the upgrade reset owner or mode")
    with start_service(root) as gateway:
        expect("calculate" in gateway.tools(), "tools after the upgrade")
    run(*inside, "dpkg", "--remove", "toolyard")
    expect(not (root / "usr/bin/toolyard").exists() and not (root / UNIT).exists(), "the removal left programs")
    expect(settings.exists() and (root / "var/lib/toolyard/.local").exists(), "the removal deleted settings or data")
    expect((calls := systemctl.calls()) == ["disable --now"], f"the removal called {calls}")
    run(*inside, "dpkg", "--install", f"/opt/{second.name}")
    expect((calls := systemctl.calls()) == ["enable --now"], f"the installation after a removal called {calls}")
    expect(chosen == [access(path) for path in [settings, settings.parent]], "the installation after a removal reset owner or mode")
    # A service that the administrator disabled stays so.
    systemctl.state.unlink()
    run(*inside, "dpkg", "--remove", "toolyard")
    run(*inside, "dpkg", "--install", f"/opt/{second.name}")
    expect((calls := systemctl.calls()) == ["disable --now", "try-restart"], f"removal and installation of a disabled service called {calls}")
    systemctl.state.touch()
    run(*inside, "dpkg", "--remove", "toolyard")
    run(*inside, "dpkg", "--purge", "toolyard")
    left = ["etc/toolyard", "var/lib/toolyard", "var/lib/misc/toolyard-was-enabled", "usr/share/doc/toolyard"]
    left = [path for path in left if (root / path).exists()]
    expect(not left, f"purge left {left}")


def check_rpm(context) -> None:
    """Checks what the package contains, and installs and upgrades it with its scripts in a root folder, without dependencies."""
    package, second = next(context.out.glob("*.rpm")), next((context.out / ".next").glob("*.rpm"))
    listed = run("rpm", "-qp", "--nosignature", "--qf", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]", package).stdout
    expect(f"/{UNIT}" in listed and "/usr/share/man/man1/toolyard-serve.1.gz" in listed, f"files: {listed}")
    flags = dict(line.rsplit(" ", 1) for line in listed.splitlines())
    expect("c" in flags["/etc/toolyard/toolyard.toml"] and "n" in flags["/etc/toolyard/toolyard.toml"], "settings are no configuration file")
    fields = run("rpm", "-qp", "--nosignature", "--qf", "%{NAME} %{VERSION} %{LICENSE} %{ARCH}", package).stdout
    expect(fields == f"toolyard {context.version} MIT OR Apache-2.0 {context.names.rpm}", f"fields: {fields}")
    needed = run("rpm", "-qp", "--nosignature", "--requires", package).stdout.split()
    expect("ca-certificates" in needed, f"depends on {needed}")
    extracted = context.folder("rpm-files")
    run("sh", "-c", f"rpm2cpio {shlex.quote(str(package))} | cpio --quiet -idm", cwd=extracted)
    check_all(Program([extracted / "usr/bin/toolyard"], context.folder("rpm-home")), context.version)
    root = debian_root(context, "rpm-root")
    options = ["rpm", "--root", root, "--nodeps", "--nosignature", "--dbpath", "/var/lib/rpm"]
    run(*options, "--install", package)
    with start_service(root) as gateway:
        expect("calculate" in gateway.tools(), "tools of the service")
    settings = root / "etc/toolyard/toolyard.toml"
    before = access(settings)
    expect(before[0] not in (0, os.geteuid()) and before[2] == 0o640, f"owner and mode of the settings: {before}")
    settings.parent.chmod(0o755)
    run(*options, "--upgrade", second)
    expect(access(settings) == before, f"the upgrade left the settings as {access(settings)}, which the service cannot read")
    expect(access(settings.parent)[2] == 0o755, "the upgrade reset the mode of the folder")
    run(*options, "--erase", "toolyard")
    expect(not (root / "usr/bin/toolyard").exists(), "the removal left the program")
    expect((root / "var/lib/toolyard/.local").exists(), "the removal deleted data")


def check_unit(context) -> None:
    root = debian_root(context, "unit")
    run("dpkg-deb", "-x", next(context.out.glob("*.deb")), root)
    # Units whose files are missing are those of other packages; man pages are not looked for.
    run("systemd-analyze", "verify", "--man=no", f"--root={root}", f"/{UNIT}")
    security = run("systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", f"--root={root}", f"/{UNIT}").stdout
    context.note(re.search(r"Overall exposure level.*: ([\d.]+ \w+)", security)[1] + " (exposure of the unit)")


def check_image(context) -> None:
    """Builds the image without pulling anything, starts its command as its user and asks its health check."""
    build = context.out / "image"
    run("hadolint", build / "Dockerfile")
    store = ["buildah", "--root", context.folder("buildah"), "--runroot", context.folder("buildah-run"), "--storage-driver", "vfs"]
    arguments = ["--build-arg", f"VERSION={context.version}", "--build-arg", "REVISION=test", "--build-arg", "CREATED=1970-01-01T00:00:00Z"]
    run(*store, "build", "--isolation", "chroot", "--format", "docker", *arguments, "--tag", "toolyard", build)
    template = "{{.Docker.Config.User}}|{{.Docker.Config.Entrypoint}}|{{.Docker.Config.Cmd}}|{{.Docker.Config.Healthcheck.Test}}"
    user, entry, command, health = run(*store, "inspect", "--type", "image", "--format", template, "toolyard").stdout.strip().split("|")
    words = lambda text: text.strip("[]").split()  # noqa: E731
    container = run(*store, "from", "--pull-never", "toolyard").stdout.strip()
    root = Path(run(*store, "mount", container).stdout.strip())
    size = sum(file.lstat().st_size for file in root.rglob("*") if not file.is_symlink())
    expect(size <= MAX_IMAGE_BYTES, f"the image has {size} bytes")
    context.note(f"{size / 1e6:.1f} MB image")
    shells = [path for path in ["bin/sh", "usr/bin/sh", "lib"] if (root / path).exists()]
    expect(not shells and user == "65532:65532", f"user {user}, {shells}")
    inside = ["chroot", f"--userspec={user}", root]
    home = "/var/lib/toolyard"
    program = Program([*inside, *words(entry)], root / home.lstrip("/"), home, XDG_CONFIG_HOME="/etc", PATH="/usr/bin")
    program.command[0] = shutil.which("chroot")
    probe = Program([shutil.which("chroot"), *inside[1:], *words(health)[1:]], program.home, home, XDG_CONFIG_HOME="/etc", PATH="/usr/bin")
    expect(probe.run().returncode != 0, "the health check passes without a gateway")
    port = free_port()
    with Gateway(program, command=[word.replace("7300", str(port)) for word in words(command)], port=port) as gateway:
        expect("calculate" in gateway.tools(), "tools of the container")
        checked = probe.run()
        expect(checked.returncode == 0, f"health check: {checked.stdout}{checked.stderr}")
