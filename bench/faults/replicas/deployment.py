"""What an operator deploys: PostgreSQL, two replicas of `toolyard serve`, nginx in front of them, and an MCP server behind them."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import scripted_model
from gateway_process import GatewayProcess, environment_of
from http_client import Broken, Connection
from mcp_client import McpClient
from nginx import start_nginx
from postgres import Postgres
from processes import free_port, is_listening, tail, wait_until
from replies import reply

# Seconds.
DEFAULT_RUN_LEASE = 30
HERE = os.path.dirname(os.path.abspath(__file__))

SETTINGS = """
store = "{store}"
journal = "{journal}"

[serve]
token = "${{SERVE_TOKEN}}"
{lease}
allowed_hosts = ["toolyard"]

[servers.ledger]
url = "http://127.0.0.1:{ledger}/mcp"
transport = "http"
revision = "legacy"

[approvals]
allow = ["record@ledger"]

[models.scripted]
url = "http://127.0.0.1:{model}/v1"
model = "scripted"
tool_calling = "schema"
"""


class Replica(GatewayProcess):
    """One `toolyard serve` with a data folder of its own; the replicas share the settings."""

    def __init__(self, deployment, name):
        home = os.path.join(deployment.folder, name)
        super().__init__(deployment.binary, home, environment_of(home), free_port(), ("--config", deployment.settings))
        self.name = name
        os.mkdir(home)

    async def is_ready(self):
        """By `/readyz`, or by `/healthz` where that does not exist."""
        if self.process.poll() is not None:
            raise RuntimeError(f"replica {self.name} ended with {self.process.returncode}: {tail(self.log)}")
        for path in ("/readyz", "/healthz"):
            try:
                status, _, _ = await Connection(self.port).request("GET", path, [("Connection", "close")], timeout=5)
            except Broken:
                return False
            if status not in (401, 404):
                return status == 200
        return False


class Deployment:
    def __init__(self, binary, run_lease):
        self.run_lease = run_lease or DEFAULT_RUN_LEASE
        self.lease_line = "" if run_lease is None else f'run_lease = "{run_lease}s"'
        self.folder = tempfile.mkdtemp(prefix="replicas-trial-")
        # PostgreSQL's own user must reach its folder.
        os.chmod(self.folder, 0o755)
        # A copy: the binary may be built anew meanwhile.
        self.binary = os.path.join(self.folder, "toolyard")
        shutil.copy(binary, self.binary)
        self.settings, self.ledger_file = os.path.join(self.folder, "toolyard.toml"), os.path.join(self.folder, "ledger")
        self.ledger_port, self.port = free_port(), free_port()
        self.nginx = self.ledger = self.postgres = None
        self.replicas = []

    async def __aenter__(self):
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _start(self):
        self.model, self.model_port = await scripted_model.start(reply)
        self.postgres = Postgres(self.folder)
        await self.postgres.create()
        await self.start_ledger()
        self.write_settings("runs")
        self.replicas = [Replica(self, "a"), Replica(self, "b")]
        # The first start creates the tables.
        for replica in self.replicas:
            await replica.start()
        # Nothing but the servers: round robin, max_fails=1, fail_timeout=10s. nginx sends the name of the upstream as `Host` by default.
        self.nginx = await start_nginx(self.folder, self.port, [f"server 127.0.0.1:{replica.port};" for replica in self.replicas])
        await self.list_tools()

    async def __aexit__(self, *_):
        processes = [replica.process for replica in self.replicas] + [self.nginx, self.ledger]
        for process in filter(None, processes):
            process.terminate() if process is self.nginx else process.kill()
            process.wait()
        if self.postgres:
            await self.postgres.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def write_settings(self, journal):
        with open(self.settings, "w") as file:
            file.write(SETTINGS.format(lease=self.lease_line, store=self.postgres.url, journal=journal, ledger=self.ledger_port, model=self.model_port))

    async def start_ledger(self):
        self.ledger = subprocess.Popen([sys.executable, f"{HERE}/ledger_server.py", str(self.ledger_port), self.ledger_file])
        await wait_until(lambda: is_listening(self.ledger_port), 20, "the ledger server listens")

    def stop_ledger(self):
        self.ledger.kill()
        self.ledger.wait()

    async def restart_with_journal(self, journal):
        """Both replicas at once, with this setting; nobody calls meanwhile."""
        self.write_settings(journal)
        # Audit records are written within 100 ms; killing is quicker than stopping, and nginx notices neither.
        await asyncio.sleep(0.5)
        for replica in self.replicas:
            replica.kill()
            await replica.start()
        await self.list_tools()

    async def list_tools(self):
        """Each replica knows the tools of the ledger server before anything is measured."""
        for replica in self.replicas:
            client = McpClient(Connection(replica.port), legacy=False)
            assert "record" in await client.list_tools(), f"replica {replica.name} does not offer `record`: {tail(replica.log)}"
            client.connection.close()

    async def forget_failures(self):
        """Lets nginx use both replicas, whatever happened to them before."""
        self.nginx.send_signal(signal.SIGHUP)
        await asyncio.sleep(0.5)
        open(os.path.join(self.folder, "nginx.err"), "w").close()

    def nginx_errors(self):
        """The reasons in nginx's log with their numbers."""
        with open(os.path.join(self.folder, "nginx.err"), errors="replace") as log:
            reasons = re.findall(r"\*\d+ (.*?)(?: while|,)", log.read())
        return ", ".join(f"{count}× {reason}" for reason, count in Counter(reasons).most_common(4))

    def entries(self, prefix=""):
        """The entries of the ledger, as often as they were executed."""
        if not os.path.exists(self.ledger_file):
            return []
        with open(self.ledger_file) as file:
            return [line for line in file.read().splitlines() if line.startswith(prefix)]

    async def cli(self, *arguments, timeout=120):
        """Exit code, standard output and standard error of a `toolyard` command on the same store."""
        home = os.path.join(self.folder, "cli")
        os.makedirs(home, exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            self.binary, "--config", self.settings, *arguments, env=environment_of(home), cwd=home,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = await asyncio.wait_for(process.communicate(), timeout)
        return process.returncode, out.decode(), err.decode()

    async def cli_json(self, *arguments):
        code, out, err = await self.cli(*arguments, "--json")
        if not out.strip():
            raise RuntimeError(f"toolyard {' '.join(arguments)}: exit {code}: {err}")
        return json.loads(out)

    async def audit_counts(self):
        """Records of calls of `record`, calls whose record is lost as the log itself says, and call ids that occur twice."""
        verdict = (await self.cli_json("audit", "verify"))["verdict"]
        file = os.path.join(self.folder, "audit.jsonl")
        await self.cli("audit", "export", file)
        with open(file) as lines:
            records = [record for record in map(json.loads, lines) if record["tool"] == "record"]
        repeated = len(records) - len({record["call"] for record in records})
        return len(records), verdict.get("intact", {}).get("lost", 0), repeated
