"""A fresh PostgreSQL on loopback, in a folder of its own."""

import asyncio
import glob
import os
import pwd
import subprocess
import sys

from processes import free_ports


class Postgres:
    """PostgreSQL with its own settings, except those in `settings`. `create` starts it."""

    def __init__(self, folder, **settings):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
        if not programs:
            sys.exit("PostgreSQL is missing\nhint: scripts/parts installs it")
        self.programs, self.folder, self.port = programs[-1], os.path.join(folder, "postgres"), free_ports(1)[0]
        self.settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder, **settings}
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        os.mkdir(self.folder)
        # PostgreSQL refuses to run as root.
        self.prefix = []
        if os.getuid() == 0:
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
            self.prefix = ["runuser", "-u", "postgres", "--"]
        self.lock = asyncio.Lock()

    async def _run(self, program, *arguments):
        command = [*self.prefix, f"{self.programs}/{program}", "-D", f"{self.folder}/data", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return await process.wait()

    async def create(self):
        await self._run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        await self.start()

    async def start(self):
        options = " ".join([f"-p {self.port}", *(f"-c {name}={value}" for name, value in self.settings.items())])
        if await self._run("pg_ctl", "-w", "-l", f"{self.folder}/log", "-o", options, "start"):
            raise RuntimeError(f"PostgreSQL does not start; its log is {self.folder}/log")

    async def stop(self, mode):
        """`mode` is that of pg_ctl. `immediate` is as by a crash: connections break, nothing is flushed."""
        await self._run("pg_ctl", "-w", "-m", mode, "stop")

    async def restart(self, mode):
        async with self.lock:
            await self.stop(mode)
            await self.start()


def started_server():
    """The address of the PostgreSQL that scripts/with-postgres started, without a database."""
    return os.environ.get("TOOLYARD_TEST_POSTGRES") or sys.exit("no PostgreSQL\nhint: start this command with scripts/with-postgres")


def query(url, sql):
    """The columns of each row as text."""
    output = subprocess.run(["psql", url, "-qAt", "-F", "\t", "-c", sql], check=True, capture_output=True, text=True)
    return [line.split("\t") for line in output.stdout.splitlines()]
