"""What an operator deploys: PostgreSQL, two replicas of `toolyard serve`, nginx in front of them, and an MCP server behind them."""

import asyncio
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter

import scripted_model
from http_client import TOKEN, Broken, Connection, McpClient, free_port
from replies import reply

# Seconds.
DEFAULT_RUN_LEASE = 30
HERE = os.path.dirname(os.path.abspath(__file__))

# The upstream block has nothing but the servers: round robin, no stickiness, max_fails=1, fail_timeout=10s. The name of the
# upstream is what nginx sends as `Host` by default.
NGINX_CONF = """
worker_processes 1; daemon off; pid nginx.pid; error_log nginx.err warn; {user}
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream toolyard {{ {servers} }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://toolyard; }}
  }}
}}
"""

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


async def wait_until(condition, seconds, what):
    """Waits for an asynchronous condition; returns how long that took."""
    began = time.monotonic()
    while not await condition():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"{what}: not within {seconds} s")
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def is_listening(port):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True
    except OSError:
        return False


class Postgres:
    """A fresh server on loopback with PostgreSQL's own settings."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
        if not programs:
            sys.exit("PostgreSQL is missing\nhint: scripts/parts installs it")
        self.programs, self.folder, self.port = programs[-1], os.path.join(folder, "postgres"), free_port()
        os.mkdir(self.folder)
        # PostgreSQL refuses to run as root.
        self.prefix = []
        if os.getuid() == 0:
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
            self.prefix = ["runuser", "-u", "postgres", "--"]
        self._run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/postgres"
        self.start()

    def _run(self, program, *arguments):
        command = [*self.prefix, f"{self.programs}/{program}", "-D", f"{self.folder}/data", *arguments]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)

    def start(self):
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self):
        """As by a crash: connections break, nothing is flushed."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def rows(self, sql):
        """The first column of each row."""
        output = subprocess.run(["psql", self.url, "-qAt", "-c", sql], check=True, capture_output=True, text=True)
        return output.stdout.splitlines()


class Replica:
    """One `toolyard serve` with a data folder of its own, as on a machine of its own."""

    def __init__(self, deployment, name):
        self.deployment, self.name, self.port, self.process = deployment, name, free_port(), None
        self.home = os.path.join(deployment.folder, name)
        self.log = os.path.join(deployment.folder, f"{name}.log")
        os.mkdir(self.home)

    def spawn(self):
        command = [self.deployment.binary, "--config", self.deployment.settings, "serve", "--http", f"127.0.0.1:{self.port}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, env=environment(self.home), cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    async def start(self):
        self.spawn()
        await wait_until(self.is_ready, 60, f"replica {self.name} is ready")

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

    async def wait_for_exit(self, seconds=90):
        async def has_ended():
            return self.process.poll() is not None

        return await wait_until(has_ended, seconds, f"replica {self.name} ends")

    async def terminate(self):
        """SIGTERM; returns the seconds until the process had ended."""
        self.process.send_signal(signal.SIGTERM)
        return await self.wait_for_exit()

    def kill(self):
        """kill -9; returns once the process is gone."""
        self.process.kill()
        self.process.wait()


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
        await self.start_ledger()
        self.write_settings("runs")
        self.replicas = [Replica(self, "a"), Replica(self, "b")]
        # The first start creates the tables.
        for replica in self.replicas:
            await replica.start()
        servers = " ".join(f"server 127.0.0.1:{replica.port};" for replica in self.replicas)
        user = "user root;" if os.getuid() == 0 else ""
        conf = os.path.join(self.folder, "nginx.conf")
        with open(conf, "w") as file:
            file.write(NGINX_CONF.format(servers=servers, port=self.port, user=user))
        self.nginx = subprocess.Popen(["nginx", "-p", self.folder, "-e", "nginx.err", "-c", conf], stderr=subprocess.DEVNULL)
        await wait_until(lambda: is_listening(self.port), 20, "nginx listens")
        await self.list_tools()

    async def __aexit__(self, *_):
        processes = [replica.process for replica in self.replicas] + [self.nginx, self.ledger]
        for process in filter(None, processes):
            process.terminate() if process is self.nginx else process.kill()
            process.wait()
        if self.postgres:
            subprocess.run([*self.postgres.prefix, f"{self.postgres.programs}/pg_ctl", "-D", f"{self.postgres.folder}/data", "-m", "immediate", "stop"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.postgres.folder)
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
            self.binary, "--config", self.settings, *arguments, env=environment(home), cwd=home,
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


def environment(home):
    return {"HOME": home, "PATH": os.environ["PATH"], "SERVE_TOKEN": TOKEN}


def tail(file, size=600):
    with open(file, errors="replace") as text:
        return text.read()[-size:]
