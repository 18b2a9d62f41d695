"""What the trial talks to: `toolyard serve` with an API key for each caller, a shared server on stdio, one on HTTP, and a model."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import scripted_model
from http_client import TOKEN
from processes import free_port
from replies import reply

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "..", "..", "schema", "toolyard.schema.json")

SETTINGS = """
[serve]
token = "${{SERVE_TOKEN}}"
surface = "full"
output_budget = 2000

[serve.profiles.found]
surface = "search"

[servers.stdio]
command = "{python}"
args = ["{here}/echo_server.py"]
trusted = true
env = {{ TOOL_PREFIX = "s_", LEAK_EVERY = "{leak}" }}
{shared}

[servers.http]
url = "http://127.0.0.1:{port}/mcp"
transport = "http"
revision = "legacy"
trusted = true
{shared}
{isolated}

[models.scripted]
url = "http://127.0.0.1:{model}/v1"
model = "scripted"
tool_calling = "schema"
"""

# A third server, of which every caller has one of its own.
ISOLATED = """
[servers.own]
command = "{python}"
args = ["{here}/echo_server.py"]
trusted = true
env = {{ TOOL_PREFIX = "o_" }}
isolation = "caller"
"""


def supports_isolation():
    with open(SCHEMA) as file:
        return '"isolation"' in file.read()


class Deployment:
    """A gateway with callers; everything ends and is deleted with it."""

    def __init__(self, binary, leak_every=0):
        self.binary, self.leak_every = os.path.abspath(binary), leak_every
        self.home = tempfile.mkdtemp(prefix="leak-trial-")
        self.gateway = self.http = self.model = None

    def environment(self):
        folders = {f"XDG_{kind.upper()}_HOME": f"{self.home}/{kind}" for kind in ("config", "data", "cache")}
        return {"PATH": os.environ["PATH"], "HOME": self.home, "SERVE_TOKEN": TOKEN, **folders}

    def run(self, *arguments):
        command = [self.binary, *arguments]
        done = subprocess.run(command, env=self.environment(), cwd=self.home, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: {done.stderr}")
        return done.stdout

    async def __aenter__(self):
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _start(self):
        self.model, model_port = await scripted_model.start(reply)
        port = free_port()
        environment = {**os.environ, "TOOL_PREFIX": "h_", "LEAK_EVERY": str(self.leak_every)}
        self.http = subprocess.Popen([sys.executable, f"{HERE}/echo_server.py", str(port)], env=environment)
        self.is_isolated = supports_isolation()
        parts = {"python": sys.executable, "here": HERE}
        settings = SETTINGS.format(
            leak=self.leak_every, port=port, model=model_port, **parts,
            shared='isolation = "shared"' if self.is_isolated else "",
            isolated=ISOLATED.format(**parts) if self.is_isolated else "")
        folder = os.path.join(self.home, "config", "toolyard")
        os.makedirs(folder)
        with open(os.path.join(folder, "toolyard.toml"), "w") as file:
            file.write(settings)
        time.sleep(0.3)
        # A gateway knows the tools of a server once it has been started.
        self.run("servers", "test")
        command = [self.binary, "serve", "--http", "127.0.0.1:0"]
        self.log = open(os.path.join(self.home, "serve.log"), "w+")
        self.gateway = subprocess.Popen(command, env=self.environment(), cwd=self.home, stdin=subprocess.DEVNULL, stderr=self.log)
        self.port = self._wait_for_port()

    def _wait_for_port(self):
        for _ in range(600):
            with open(self.log.name) as log:
                found = re.search(r"http://127\.0\.0\.1:(\d+)", log.read())
            if found:
                return int(found[1])
            if self.gateway.poll() is not None:
                with open(self.log.name) as log:
                    sys.exit(f"toolyard ended: {log.read()}")
            time.sleep(0.1)
        sys.exit("toolyard does not serve within a minute")

    def add_caller(self, name):
        """The API key of a new caller."""
        return json.loads(self.run("--json", "callers", "add", name))["api_key"]

    async def __aexit__(self, *_):
        for process in filter(None, [self.gateway, self.http]):
            process.terminate()
        for process in filter(None, [self.gateway, self.http]):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.model:
            self.model.close()
        shutil.rmtree(self.home, ignore_errors=True)
