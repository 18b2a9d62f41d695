"""Processes of a trial: gateways in home folders of their own, and NATS."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path


class Gateway:
    """A gateway in a home folder of its own."""

    def __init__(self, binary, home, settings, variables=()):
        home.mkdir()
        file = home / "config/toolyard/toolyard.toml"
        file.parent.mkdir(parents=True)
        file.write_text(settings)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SESSION_KEY": "ab" * 32, **dict(variables)}
        environment |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        self.environment, self.home, self.binary = environment, home, binary
        self.process = self.port = None

    def command(self, *arguments):
        done = subprocess.run([self.binary, *arguments], env=self.environment, cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"toolyard {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self):
        self.spawn()
        self.wait()

    def spawn(self):
        log = open(self.home / "log", "w")
        self.process = subprocess.Popen([self.binary, "serve", "--http", "127.0.0.1:0"], env=self.environment, cwd=self.home, stdout=log, stderr=log)

    def wait(self):
        """Waits until the gateway serves."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if found := re.search(r"serving at http://127\.0\.0\.1:(\d+)", (self.home / "log").read_text()):
                self.port = int(found[1])
                return
            time.sleep(0.05)
        sys.exit((self.home / "log").read_text())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def start_nats(folder):
    parts = Path(os.environ.get("TOOLYARD_PARTS") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolyard-parts")
    ports = folder / "nats"
    ports.mkdir()
    process = subprocess.Popen(
        [parts / "nats/bin/nats-server", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for file in ports.glob("*.ports"):
            if text := file.read_text():
                return process, int(json.loads(text)["nats"][0].rsplit(":", 1)[1])
        time.sleep(0.05)
    sys.exit("NATS does not start")
