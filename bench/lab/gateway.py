"""A gateway of the laboratory: its settings, its small disk, and what the laboratory does to its process."""

import os
import signal
import subprocess

from gateway_process import GatewayProcess, environment_of
from topology import DEADLINE, DRAIN, LEASE, RUN_LEASE, SERVERS

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


class Gateway(GatewayProcess):
    def __init__(self, name, folder, binary, port):
        home = os.path.join(folder, f"gateway-{name}")
        super().__init__(binary, home, environment_of(home, RUST_BACKTRACE="1"), port)
        self.name, self.settings, self.data = name, os.path.join(home, "config/toolyard/toolyard.toml"), os.path.join(home, "data")
        os.makedirs(os.path.dirname(self.settings))
        os.mkdir(self.data)
        self.has_small_disk = self.mount()
        # What the laboratory does to the process, so that the supervisor knows whose doing its end is.
        self.is_wanted, self.signals = False, []

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

    def spawn(self):
        self.signals, self.is_wanted = [], True
        super().spawn()

    def send(self, number):
        self.signals.append(number)
        self.process.send_signal(number)

    async def terminate(self, seconds=60):
        self.is_wanted = False
        self.signals.append(signal.SIGTERM)
        return await super().terminate(seconds)
