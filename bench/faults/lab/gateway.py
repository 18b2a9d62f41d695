"""A gateway of the laboratory: its settings, its small disk, and what the laboratory does to its process."""

import os
import signal
import subprocess

from gateway_process import GatewayProcess, environment_of
from topology import DEADLINE, DRAIN, LEASE, MODERN, RUN_LEASE, SERVERS, WORKER_GROUP

HERE = os.path.dirname(os.path.abspath(__file__))
# Small enough to be filled quickly, large enough for what a gateway keeps there.
DISK_BYTES = 8 << 20
SETTINGS = """
store = "postgres://postgres@127.0.0.1:{postgres}/postgres"

[cluster]
nats = "{nats}"
lease = "{lease}s"
{workers}[call]
timeout = "{deadline}s"

[serve]
surface = "full"
token = "${{SERVE_TOKEN}}"
drain = "{drain}s"
run_lease = "{run_lease}s"
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


def stdio_settings(server, folder):
    """`[servers.NAME]` of an upstream server on stdio."""
    # -S and -E: the process starts twice as fast.
    arguments = ["-SEB", f"{HERE}/upstream.py", server.name, "stdio", server.revision, server.kind, f"{folder}/ledgers/{server.name}"]
    return [*common_settings(server), 'command = "python3"', f"args = {arguments}".replace("'", '"')]


def http_settings(server, port):
    return [*common_settings(server), f'url = "http://127.0.0.1:{port}/mcp"', 'transport = "http"']


def common_settings(server):
    lines = [f"\n[servers.{server.name}]", f'revision = "{"modern" if server.revision == MODERN else "legacy"}"']
    lines += [f'isolation = "{server.isolation}"'] if server.isolation else []
    lines += ["stateless = true"] if server.is_stateless else []
    return lines + (["trusted = true"] if server.is_repeatable else [])


def server_settings(folder, ports):
    """Settings of all upstream servers of a gateway; `ports` are those of the proxy in front of HTTP servers."""
    lines = []
    for server in SERVERS:
        lines += stdio_settings(server, folder) if server.transport == "stdio" else http_settings(server, ports[server.name])
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

    def write_settings(self, postgres, nats, model, servers, has_workers):
        groups = f'workers = ["{WORKER_GROUP}"]\ntrusted_workers = ["{WORKER_GROUP}"]\n\n'
        text = SETTINGS.format(postgres=postgres, nats=nats, lease=LEASE, deadline=f"{DEADLINE:g}", drain=DRAIN, run_lease=RUN_LEASE, model=model,
                               workers=groups if has_workers else "\n")
        with open(self.settings, "w") as file:
            file.write(text + servers)

    def spawn(self):
        self.signals, self.is_wanted = [], True
        super().spawn()

    def has_served(self):
        return self.served_port() is not None

    def runs_binary(self):
        """Whether the process executes the file that is installed now, and not one that an upgrade has replaced."""
        try:
            return os.path.samefile(f"/proc/{self.process.pid}/exe", self.binary)
        except OSError:
            return False

    def send(self, number):
        self.signals.append(number)
        self.process.send_signal(number)

    async def terminate(self, seconds=60):
        self.is_wanted = False
        self.signals.append(signal.SIGTERM)
        return await super().terminate(seconds)
