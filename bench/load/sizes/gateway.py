"""A gateway with a catalogue of N tools in its store, and what the system says about its process."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import catalogue

FOLDER = Path(__file__).resolve().parent
# What the trials share; before the imports that need it.
sys.path.insert(0, str(FOLDER.parents[1] / "common"))
from blocking_http import open_response  # noqa: E402
from gateway_process import GatewayProcess, create_home, environment_of  # noqa: E402
from processes import accepts_connections, block_until, free_port  # noqa: E402

SETTINGS = """
[serve]
token = "${SERVE_TOKEN}"
drain = "0s"

[serve.profiles.full]
surface = "full"
"""
MAX_START_SECONDS = 900
# The start of a small gateway takes some ten milliseconds.
START_POLL_SECONDS = 0.01


class Upstream:
    """The process that is all MCP servers."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, FOLDER / "upstream.py", str(port)])
        block_until(lambda: accepts_connections(port), 10, "the upstream servers listen")

    def stop(self):
        self.process.kill()
        self.process.wait()


class Gateway(GatewayProcess):
    def __init__(self, binary, home, tools, upstream_port):
        super().__init__(binary, home, environment_of(home))
        self.tools, self.upstream_port = tools, upstream_port
        self.tools_per_server = min(tools, catalogue.TOOLS_PER_SERVER)
        self.servers = tools // self.tools_per_server

    @property
    def store(self):
        return self.home / "data/toolyard/toolyard.db"

    def url(self, number):
        return f"http://127.0.0.1:{self.upstream_port}/{number}"

    def settings(self):
        servers = (f'[servers.{catalogue.server_id(number)}]\nurl = "{self.url(number)}"\n' for number in range(self.servers))
        return SETTINGS + "\n".join(servers)

    def fill(self):
        """Reads the tools of all servers as an operator would, with `toolyard servers test`, unless an earlier trial did. Seconds, or none."""
        filled, done = self.home / "filled.db", self.home / "filled"
        if done.exists():
            # The earlier trial added a server to both.
            (self.home / "config/toolyard/toolyard.toml").write_text(self.settings())
            shutil.copy(filled, self.store)
            return None
        shutil.rmtree(self.home, ignore_errors=True)
        create_home(self.home, self.settings())
        began = time.monotonic()
        self.command("servers", "test")
        seconds = time.monotonic() - began
        with sqlite3.connect(self.store) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA journal_mode = DELETE")
        shutil.copy(self.store, filled)
        done.touch()
        return seconds

    def measure_start(self):
        """Seconds from the start of the process until it is ready."""
        for suffix in ("-wal", "-shm"):
            Path(f"{self.store}{suffix}").unlink(missing_ok=True)
        self.port = free_port()
        began = time.monotonic()
        self.spawn()
        try:
            block_until(self.is_ready_or_ended, MAX_START_SECONDS, f"a gateway with {self.tools:,} tools is ready", START_POLL_SECONDS)
        except TimeoutError:
            self.kill()
            raise
        seconds = time.monotonic() - began
        if self.process.poll() is not None:
            sys.exit(self.latest_log())
        return seconds

    def is_ready_or_ended(self):
        try:
            connection, response = open_response(self.port, "GET", "/readyz")
        except OSError:
            return self.process.poll() is not None
        connection.close()
        return response.status == 200

    def memory(self):
        """Resident bytes, and the most there ever were."""
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rows(self):
        """A fingerprint of every row of the tables about servers."""
        with sqlite3.connect(f"file:{self.store}?mode=ro", uri=True) as database:
            rows = set(database.execute("SELECT 'servers', id, seen_at, length(cached_tools), length(tool_approvals) FROM servers"))
            rows |= set(database.execute("SELECT 'tool_definitions', server, tool, hash, approved FROM tool_definitions"))
        return rows
