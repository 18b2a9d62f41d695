"""A gateway (`toolyard serve --http`) with a home folder of its own, as on a machine of its own."""

import os
import re
import signal
import subprocess
import time

from processes import spawn, wait_until
from topology import DEADLINE, DRAIN, LEASE, RUN_LEASE, SERVERS, TOKEN
from wire import Broken, Http

HERE = os.path.dirname(os.path.abspath(__file__))
# Small enough to be filled quickly, large enough for what a gateway keeps there.
DISK_BYTES = 8 << 20
SETTINGS = """
store = "postgres://postgres@127.0.0.1:{postgres}/postgres"

[cluster]
nats = "{nats}"
lease = "{lease}s"
{workers}
[call]
timeout = "{deadline}s"

[serve]
surface = "full"
token = "${{SERVE_TOKEN}}"
session_keys = ["${{SESSION_KEY}}"]
drain = "{drain}s"
run_lease = "{run_lease}s"
idle_timeout = "{deadline}s"
remote_approval = true

[serve.proxy_identity]
subject_header = "X-Forwarded-User"
trusted_addresses = ["127.0.0.0/8"]

[approvals]
allow = ["*"]
open_world = "allow"

[models.scripted]
url = "http://127.0.0.1:{model}/v1"
model = "scripted"
tool_calling = "schema"
"""


def server_settings(folder, ports):
    """`[servers.NAME]` of all upstream servers; `ports` are those of the proxy in front of HTTP servers."""
    lines = []
    for server in SERVERS:
        lines += [f"\n[servers.{server.name}]", f'revision = "{"modern" if server.revision == "2026-07-28" else "legacy"}"']
        if server.transport == "stdio":
            # -S and -E: the process starts twice as fast.
            arguments = ["-SEB", f"{HERE}/upstream.py", server.name, "stdio", server.revision, server.kind, f"{folder}/ledgers/{server.name}"]
            lines += ['command = "python3"', f"args = {arguments}".replace("'", '"')]
        else:
            lines += [f'url = "http://127.0.0.1:{ports[server.name]}/mcp"', 'transport = "http"']
        lines += [f'isolation = "{server.isolation}"'] if server.isolation else []
        lines += ["stateless = true"] if server.is_stateless else []
        lines += ["trusted = true"] if server.is_repeatable else []
    return "\n".join(lines) + "\n"


class Gateway:
    def __init__(self, name, lab, port):
        self.name, self.lab, self.port = name, lab, port
        self.home, self.log = os.path.join(lab.folder, f"gateway-{name}"), os.path.join(lab.folder, f"gateway-{name}.log")
        self.settings = os.path.join(self.home, "config/toolyard/toolyard.toml")
        os.makedirs(os.path.dirname(self.settings))
        self.data = os.path.join(self.home, "data")
        os.mkdir(self.data)
        self.has_small_disk = self.mount()
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "SESSION_KEY": "ab" * 32, "SERVE_TOKEN": TOKEN, "RUST_BACKTRACE": "1"}
        self.environment |= {f"XDG_{kind}_HOME": os.path.join(self.home, kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        self.process, self.started_at = None, 0.0
        # What the laboratory does to the process, so that the supervisor knows whose doing its end is.
        self.is_wanted, self.signals, self.log_offset = False, [], 0

    def mount(self):
        """A file system of its own for the data folder, which can be filled; needs root."""
        if os.getuid() != 0:
            return False
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=755", "lab", self.data]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def unmount(self):
        if self.has_small_disk:
            subprocess.run(["umount", "-l", self.data], stderr=subprocess.DEVNULL)
            self.has_small_disk = False

    def write_settings(self, postgres, nats, model, servers, workers=()):
        names = ", ".join(f'"{worker}"' for worker in workers)
        text = SETTINGS.format(postgres=postgres, nats=nats, lease=LEASE, deadline=f"{DEADLINE:g}", drain=DRAIN, run_lease=RUN_LEASE, model=model,
                               workers=f"workers = [{names}]\n" if workers else "")
        with open(self.settings, "w") as file:
            file.write(text + servers)

    def command(self, *arguments):
        done = subprocess.run([self.lab.binary, *arguments], env=self.environment, cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"toolyard {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def spawn(self):
        self.signals, self.started_at, self.is_wanted = [], time.monotonic(), True
        self.log_offset = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        command = [self.lab.binary, "serve", "--http", f"127.0.0.1:{self.port}"]
        self.process = spawn(command, self.log, env=self.environment, cwd=self.home)

    async def start(self, seconds=60):
        self.spawn()
        await wait_until(self.is_ready, seconds, f"gateway {self.name} is ready")

    async def is_ready(self):
        try:
            status, _, _ = await Http(self.port).request("GET", "/readyz", [("Connection", "close")], timeout=2)
            return status == 200
        except Broken:
            return False

    def latest_log(self):
        """What the current process has logged."""
        with open(self.log, errors="replace") as file:
            file.seek(self.log_offset)
            return file.read()

    def has_served(self):
        return re.search(r"serving at http", self.latest_log()) is not None

    def send(self, number):
        self.signals.append(number)
        self.process.send_signal(number)

    async def terminate(self, seconds=60):
        self.is_wanted = False
        self.send(signal.SIGTERM)
        await wait_until(lambda: self.process.poll() is not None, seconds, f"gateway {self.name} ends after SIGTERM")
