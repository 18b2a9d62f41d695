"""What a call, a run and a step of a run cost in the store: rows, bytes of tables and indexes, WAL, transactions, and processor time
of PostgreSQL and of the gateway.

Starts a gateway on an empty database, makes calls of a tool with a side effect and runs of a scripted model that calls it, and reads
the sizes of all tables before and after. Runs with few and with many steps are measured: their difference is the cost of a step, and
what is left is the cost of a run.
usage: just store-cost [--calls N] [--runs N]
"""

import argparse
import contextlib
import http.client
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
# What the trials share; before the imports that need it.
sys.path += [str(BENCH / "common"), str(BENCH / "faults/replicas")]

import scripted_model
from blocking_http import modern_request, open_response, request_json
from gateway_process import GatewayProcess, create_home, stopping
from http_client import TOKEN
from mcp_messages import answer_text
from postgres import query, started_server
from processes import accepts_connections, block_until, free_port
from replies import reply

SETTINGS = """
store = "{store}"
journal = "{journal}"

[serve]
token = "${{SERVE_TOKEN}}"
drain = "0s"

[servers.ledger]
url = "http://127.0.0.1:{ledger}/mcp"
transport = "http"
revision = "legacy"
stateless = true

[models.scripted]
url = "http://127.0.0.1:{model}/v1"
model = "scripted"
tool_calling = "schema"

[approvals]
allow = ["record@ledger"]
"""
AUTHORIZATION = [("Authorization", f"Bearer {TOKEN}")]
# Steps of the shorter and of the longer runs.
FEW_STEPS, MANY_STEPS = 2, 10
# The gateway writes what may wait (audit records, statistics) within this time.
SETTLE_SECONDS = 3
IDLE_SECONDS = 5
MEASURES = ("rows", "table bytes", "index bytes", "WAL bytes", "transactions", "CPU µs of PostgreSQL", "CPU µs of the gateway")


class Usage:
    """What a database holds and has done, as a whole and by table; differences can be divided by a count."""

    def __init__(self, totals, tables):
        self.totals, self.tables = totals, tables

    @classmethod
    def read(cls, url):
        names = [name for (name,) in query(url, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")]
        tables = {}
        for name in names:
            [sizes] = query(url, f"SELECT count(*), pg_table_size('{name}'), pg_indexes_size('{name}') FROM {name}")
            tables[name] = [int(size) for size in sizes]
        return cls([sum(column) for column in zip(*tables.values())], tables)

    def combine(self, other, operation):
        tables = {name: [operation(*pair) for pair in zip(sizes, other.tables.get(name, [0, 0, 0]))] for name, sizes in self.tables.items()}
        return Usage([operation(*pair) for pair in zip(self.totals, other.totals)], tables)

    def divide(self, count):
        return Usage([total / count for total in self.totals], {name: [size / count for size in sizes] for name, sizes in self.tables.items()})

    def print(self, name):
        print(f"{name}: " + ", ".join(f"{measure} {total:.2f}" if total < 100 else f"{measure} {total:.0f}" for measure, total in zip(MEASURES, self.totals)))
        for table, (rows, size, indexes) in sorted(self.tables.items()):
            if abs(rows) >= 0.01 or abs(size) >= 1 or abs(indexes) >= 1:
                print(f"    {table}: {rows:.2f} rows, {size:.0f} + {indexes:.0f} bytes")


def cpu_microseconds(pid):
    """The processor time of all threads of a process so far."""
    nanoseconds = 0
    for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            nanoseconds += int(stat.read_text().split()[0])
    return nanoseconds / 1000


def activity(url, gateway):
    """The position in the WAL, the number of transactions so far, the processor time of PostgreSQL and of the gateway, and the time."""
    [[position, transactions]] = query(
        url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, xact_commit FROM pg_stat_database WHERE datname = current_database()")
    # The gateway keeps its connections, so the processes behind them live on.
    backends = query(url, "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    return int(position), int(transactions), sum(cpu_microseconds(pid) for (pid,) in backends), cpu_microseconds(gateway.process.pid), time.monotonic()


def idle_rates(url, gateway):
    """What an unused gateway costs per second, as `activity` lists it: it looks for runs to take over, and renews leases."""
    before = activity(url, gateway)
    time.sleep(IDLE_SECONDS)
    *costs, seconds = (after - earlier for after, earlier in zip(activity(url, gateway), before))
    return [cost / seconds for cost in costs]


def measure(count, url, gateway, work):
    """Does the work, waits until the store is written, and returns what one piece of work cost beyond an idle gateway."""
    work(0)
    time.sleep(SETTLE_SECONDS)
    # A checkpoint in between would write whole pages to the WAL, more of them the fewer calls there are.
    query(url, "CHECKPOINT")
    before, idle = Usage.read(url), idle_rates(url, gateway)
    print("idle gateway, per second: " + ", ".join(f"{measure} {rate:.1f}" for measure, rate in zip(MEASURES[3:], idle)))
    began = activity(url, gateway)
    for number in range(1, count + 1):
        work(number)
    time.sleep(SETTLE_SECONDS)
    *costs, seconds = (after - earlier for after, earlier in zip(activity(url, gateway), began))
    usage = Usage.read(url).combine(before, lambda after, earlier: after - earlier)
    usage.totals += [cost - rate * seconds for cost, rate in zip(costs, idle)]
    return usage.divide(count)


class Client:
    """Calls and runs through one gateway, one after the other."""

    def __init__(self, gateway):
        self.port, self.connection = gateway.port, http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)

    def call(self, number):
        params = {"name": "record", "arguments": {"entry": f"call-{number}"}}
        answer = modern_request(self.port, "store-cost", "tools/call", params, "record", AUTHORIZATION, number=number, connection=self.connection)
        if answer_text(answer) != f"call-{number}":
            sys.exit(f"a call failed: {answer}")

    def run(self, steps, number):
        """Follows the run instead of asking for its state again and again, which would be transactions, too."""
        status, run = request_json(self.port, "POST", "/api/v1/runs", {"question": f"record run-{steps}-{number} {steps} 0"}, connection=self.connection)
        if status != 202:
            sys.exit(f"a run was not started: {status} {run}")
        events, response = open_response(self.port, "GET", f"/api/v1/runs/{run['run']}/events", headers=AUTHORIZATION)
        response.read()
        events.close()
        _, run = request_json(self.port, "GET", f"/api/v1/runs/{run['run']}", connection=self.connection)
        if run["state"] != "answered" or [step["state"] for step in run["steps"]] != ["done"] * steps:
            sys.exit(f"a run did not do its {steps} steps: {run}")


def measure_runs(client, url, gateway, count):
    few, many = (measure(count, url, gateway, lambda number, steps=steps: client.run(steps, number)) for steps in (FEW_STEPS, MANY_STEPS))
    few.print(f"run with {FEW_STEPS} steps")
    many.print(f"run with {MANY_STEPS} steps")
    step = many.combine(few, lambda more, less: more - less).divide(MANY_STEPS - FEW_STEPS)
    step.print("per step")
    few.combine(step, lambda run, one: run - FEW_STEPS * one).print("per run, without its steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=200, help="runs of each length")
    options = parser.parse_args()
    server = started_server()
    model = scripted_model.start_thread(reply)
    with tempfile.TemporaryDirectory(prefix="toolyard-store-cost-") as folder:
        port = free_port()
        ledger = subprocess.Popen([sys.executable, BENCH / "faults/replicas/ledger_server.py", str(port), f"{folder}/ledger"])
        block_until(lambda: accepts_connections(port), 10, "the ledger server listens")
        homes = {journal: Path(folder) / journal for journal in ("runs", "always")}
        gateways = {}
        for journal, home in homes.items():
            query(f"{server}/postgres", f"CREATE DATABASE cost_{journal}")
            settings = SETTINGS.format(store=f"{server}/cost_{journal}", journal=journal, ledger=port, model=model)
            gateways[journal] = GatewayProcess(options.binary, home, create_home(home, settings))
        with stopping(gateways.values(), ledger):
            for journal, gateway in gateways.items():
                url = f"{server}/cost_{journal}"
                gateway.command("servers", "test")
                gateway.spawn()
                gateway.wait_until_serving()
                client = Client(gateway)
                measure(options.calls, url, gateway, client.call).print(f"call, journal = \"{journal}\"")
                if journal == "runs":
                    measure_runs(client, url, gateway, options.runs)
                gateway.process.terminate()
                gateway.process.wait(60)


main()
