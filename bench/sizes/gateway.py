"""A gateway with a catalogue of N tools in its store, and what the system says about its process."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import catalogue

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "common"))
from http_client import TOKEN  # noqa: E402
from processes import free_port  # noqa: E402

SETTINGS = """
[serve]
token = "${GATEWAY_TOKEN}"
drain = "0s"

[serve.profiles.full]
surface = "full"
"""


class Upstream:
    """The process that is all MCP servers."""

    def __init__(self, port):
        self.process = subprocess.Popen([sys.executable, FOLDER / "upstream.py", str(port)])
        time.sleep(0.5)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Gateway:
    def __init__(self, binary, home, tools, upstream_port):
        self.binary, self.home, self.tools, self.upstream_port = binary, home, tools, upstream_port
        self.tools_per_server = min(tools, catalogue.TOOLS_PER_SERVER)
        self.servers = tools // self.tools_per_server
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GATEWAY_TOKEN": TOKEN}
        self.environment |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        self.process = self.port = None

    @property
    def store(self):
        return self.home / "data/toolyard/toolyard.db"

    def url(self, number):
        return f"http://127.0.0.1:{self.upstream_port}/{number}"

    def fill(self):
        """Reads the tools of all servers as an operator would, with `toolyard servers test`, unless an earlier trial did."""
        file, done = self.home / "config/toolyard/toolyard.toml", self.home / "filled"
        if done.exists():
            shutil.copy(self.home / "filled.toml", file)
            shutil.copy(self.home / "filled.db", self.store)
            return None
        shutil.rmtree(self.home, ignore_errors=True)
        file.parent.mkdir(parents=True)
        servers = (f'[servers.{catalogue.server_id(number)}]\nurl = "{self.url(number)}"\n' for number in range(self.servers))
        file.write_text(SETTINGS + "\n".join(servers))
        began = time.monotonic()
        with open(self.home / "fill.log", "w") as log:
            subprocess.run([self.binary, "servers", "test"], env=self.environment, cwd=self.home, stdout=log, stderr=log, check=True)
        seconds = time.monotonic() - began
        with sqlite3.connect(self.store) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            database.execute("PRAGMA journal_mode = DELETE")
        shutil.copy(file, self.home / "filled.toml")
        shutil.copy(self.store, self.home / "filled.db")
        done.touch()
        return seconds

    def start(self):
        """Seconds from the start of the process until it is ready."""
        for suffix in ("-wal", "-shm"):
            Path(f"{self.store}{suffix}").unlink(missing_ok=True)
        self.port = free_port()
        log = open(self.home / "log", "w")
        began = time.monotonic()
        command = [self.binary, "serve", "--http", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while time.monotonic() - began < 900:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=60) as response:
                    if response.status == 200:
                        return time.monotonic() - began
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if self.process.poll() is not None:
                    break
                time.sleep(0.01)
        sys.exit((self.home / "log").read_text())

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def command(self, *arguments):
        done = subprocess.run([self.binary, *arguments], env=self.environment, cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"toolyard {' '.join(arguments)}: {done.stdout}{done.stderr}")

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
