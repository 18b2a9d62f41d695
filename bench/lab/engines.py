"""PostgreSQL and a NATS cluster of three nodes, each of the laboratory's own and on loopback only."""

import asyncio
import glob
import os
import pwd
import signal
import subprocess
import sys

from processes import children_of, command_lines, free_ports, is_listening, spawn, wait_until
from topology import NATS_NODES


class Postgres:
    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
        if not programs:
            sys.exit("PostgreSQL is missing\nhint: scripts/parts installs it")
        self.programs, self.folder, self.port = programs[-1], os.path.join(folder, "postgres"), free_ports(1)[0]
        os.mkdir(self.folder)
        # PostgreSQL refuses to run as root.
        self.prefix = []
        if os.getuid() == 0:
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
            self.prefix = ["runuser", "-u", "postgres", "--"]
        self.lock = asyncio.Lock()

    def _command(self, program, *arguments):
        return [*self.prefix, f"{self.programs}/{program}", "-D", f"{self.folder}/data", *arguments]

    async def _run(self, program, *arguments):
        process = await asyncio.create_subprocess_exec(
            *self._command(program, *arguments), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return await process.wait()

    async def create(self):
        await self._run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        await self.start()

    async def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c max_connections=200"
        if await self._run("pg_ctl", "-w", "-l", f"{self.folder}/log", "-o", options, "start"):
            raise RuntimeError(f"PostgreSQL does not start; its log is {self.folder}/log")

    async def stop(self, mode):
        await self._run("pg_ctl", "-w", "-m", mode, "stop")

    async def restart(self, mode):
        async with self.lock:
            await self.stop(mode)
            await self.start()

    def backends(self):
        """Processes that serve a connection."""
        try:
            with open(f"{self.folder}/data/postmaster.pid") as file:
                postmaster = int(file.readline())
        except (OSError, ValueError):
            return []
        texts = dict(command_lines())
        return sorted(pid for pid in children_of(postmaster) if "127.0.0.1(" in " ".join(texts.get(pid, ())))


class Nats:
    """Three nodes; clients learn of no other addresses than those in their settings, so that the proxy is not bypassed."""

    def __init__(self, folder):
        parts = os.environ.get("TOOLYARD_PARTS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "toolyard-parts")
        self.program = os.path.join(parts, "nats/bin/nats-server")
        if not os.path.exists(self.program):
            sys.exit("NATS is missing\nhint: scripts/parts installs it")
        self.folder = os.path.join(folder, "nats")
        os.mkdir(self.folder)
        ports = free_ports(2 * len(NATS_NODES))
        self.ports = dict(zip(NATS_NODES, ports))
        self.routes = dict(zip(NATS_NODES, ports[len(NATS_NODES):]))
        self.processes, self.is_down = {}, set()

    def start(self, node):
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for other, port in self.routes.items() if other != node)
        conf = os.path.join(self.folder, f"{node}.conf")
        with open(conf, "w") as file:
            file.write(f"""listen: "127.0.0.1:{self.ports[node]}"
server_name: "n{node}"
cluster {{ name: "lab", listen: "127.0.0.1:{self.routes[node]}", routes: [{routes}], no_advertise: true }}
""")
        self.processes[node] = spawn([self.program, "-c", conf], os.path.join(self.folder, f"{node}.log"))
        self.is_down.discard(node)

    async def start_all(self):
        for node in NATS_NODES:
            self.start(node)
        for node in NATS_NODES:
            await wait_until(lambda node=node: is_listening(self.ports[node]), 20, f"NATS node {node} listens")

    def kill(self, node):
        self.is_down.add(node)
        process = self.processes[node]
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
