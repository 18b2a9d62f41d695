"""`toolyard serve --http` with a home folder of its own, as on a machine of its own."""

import os
import re
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

from blocking_http import request_json
from http_client import TOKEN, Broken, Connection
from processes import block_until, spawn, tail, wait_until


def create_home(home, settings, **variables):
    """A home folder with settings; returns the environment of its processes."""
    file = Path(home) / "config/toolyard/toolyard.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings)
    return environment_of(home, **variables)


def environment_of(home, **variables):
    folders = {f"XDG_{kind}_HOME": os.path.join(home, kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "SERVE_TOKEN": TOKEN, **folders, **variables}


class GatewayProcess:
    """A gateway; port 0 lets the system choose one, which is known once the gateway serves. Its log is beside its home folder."""

    def __init__(self, binary, home, environment, port=0, global_options=()):
        self.binary, self.home, self.environment = binary, Path(home), environment
        self.global_options = global_options
        self.log, self.log_offset = Path(f"{home}.log"), 0
        self.port, self.process = port, None

    def command(self, *arguments):
        """The output of a `toolyard` command with the same settings."""
        command = [self.binary, *self.global_options, *arguments]
        done = subprocess.run(command, env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"toolyard {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def spawn(self):
        self.log_offset = self.log.stat().st_size if self.log.exists() else 0
        self.process = spawn(self.serve_command(), self.log, env=self.environment, cwd=self.home)

    def serve_command(self):
        return [self.binary, *self.global_options, "serve", "--http", f"127.0.0.1:{self.port}"]

    def latest_log(self):
        """What the current process has logged."""
        with open(self.log, errors="replace") as file:
            file.seek(self.log_offset)
            return file.read()

    def served_port(self):
        """The port that the current process has logged; None if it does not serve yet."""
        found = re.search(r"serving at http://127\.0\.0\.1:(\d+)", self.latest_log())
        return int(found[1]) if found else None

    def wait_until_serving(self, seconds=60):
        try:
            self.port = block_until(lambda: self.served_port() or self.process.poll() is not None and -1, seconds, f"{self.home.name} serves")
        except TimeoutError as error:
            raise RuntimeError(f"{error}: {self.latest_log()}") from None
        if self.port == -1:
            raise RuntimeError(f"{self.home.name} ended with {self.process.returncode}: {self.latest_log()}")

    async def start(self, seconds=60):
        self.spawn()
        await wait_until(self.is_ready, seconds, f"{self.home.name} is ready")

    async def is_ready(self):
        try:
            status, _, _ = await Connection(self.port).request("GET", "/readyz", [("Connection", "close")], timeout=2)
            return status == 200
        except Broken:
            return False

    async def terminate(self, seconds=90):
        """SIGTERM; returns the seconds until the process had ended."""
        self.process.send_signal(signal.SIGTERM)
        return await wait_until(lambda: self.process.poll() is not None, seconds, f"{self.home.name} ends after SIGTERM")

    def kill(self):
        """kill -9; returns once the process is gone."""
        self.process.kill()
        self.process.wait()


def start_cluster(gateways, tools, seconds=60):
    """Starts gateways at once, and waits until each of them sees all others and has the tools. Their token is that of trials."""

    def has_all(gateway):
        status, cluster = request_json(gateway.port, "GET", "/api/v1/cluster?sessions=false")
        seen = [other for other in cluster["gateways"] if other["state"] == "seen"] if status == 200 else []
        return len(seen) == len(gateways) and all(request_json(gateway.port, "GET", f"/api/v1/tools/{tool}")[0] == 200 for tool in tools)

    for gateway in gateways:
        gateway.spawn()
    for gateway in gateways:
        gateway.wait_until_serving()
    for gateway in gateways:
        block_until(lambda: has_all(gateway), seconds, f"{gateway.home.name} sees the cluster and its tools")


@contextmanager
def stopping(gateways, *others):
    """Stops the gateways in order and kills other processes at the end; prints logs of the gateways if KEEP_LOGS is set."""
    try:
        yield
    finally:
        started = [gateway for gateway in gateways if gateway.process]
        for gateway in started:
            gateway.process.terminate()
        for gateway in started:
            gateway.process.wait(60)
        for process in others:
            process.kill()
            process.wait()
        if os.environ.get("KEEP_LOGS"):
            for gateway in started:
                print(tail(gateway.log, 3000))
