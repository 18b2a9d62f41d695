"""Runs of agents in a cluster of three gateways, on a real NATS and PostgreSQL, with a scripted model.

1. A run is followed and cancelled through gateways that do not execute it.
2. Runs are started at random gateways; the first one executes few at once, so that others must take its queue.
3. A gateway that executes runs is killed: the others take its runs over within the lease + 5 s, every run ends, and no side effect is
   repeated. A step whose outcome is unknown is reported by its run; the trial decides on it by looking at the ledger.
Prints one line per part, and fails if a promise does not hold.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# What the trials share; before the imports that need it.
sys.path += [str(FOLDER.parents[1] / "common"), str(FOLDER.parent / "replicas")]

import scripted_model
from blocking_http import open_response, request_json
from gateway_process import GatewayProcess, create_home, start_cluster, stopping
from http_client import TOKEN
from nats import start_nats
from postgres import query, started_server
from processes import accepts_connections, block_until, free_port
from replies import reply

# Seconds that a survivor has after the lease of a run has ended.
MARGIN = 5
# Runs that the first gateway executes at once; the others execute as many as there are.
FEW_RUNS = 3
SETTINGS = """
store = "{store}"

[cluster]
nats = "nats://127.0.0.1:{nats}"

[serve]
token = "${{SERVE_TOKEN}}"
run_lease = "{lease}s"
max_runs = {max_runs}
remote_approval = true
drain = "0s"

[servers.ledger]
url = "http://127.0.0.1:{ledger}/mcp"
transport = "http"
revision = "legacy"
stateless = true

[approvals]
allow = ["record@ledger"]

[models.scripted]
url = "http://127.0.0.1:{model}/v1"
model = "scripted"
tool_calling = "schema"
"""


def call(gateway, method, path, body=None):
    """Status and JSON of the response."""
    return request_json(gateway.port, method, f"/api/v1{path}", body)


def start_run(gateway, name, steps, delay_ms):
    for _ in range(20):
        status, answer = call(gateway, "POST", "/runs", {"question": f"record {name} {steps} {delay_ms}"})
        if status == 202:
            return answer["run"]
        if status != 503:
            break
        time.sleep(0.2)
    sys.exit(f"POST /runs: {status} {answer}")


def events_of(gateway, run, found):
    """Follows a run; collects when each logged event arrived, by its number, and when the others did, by their names."""
    connection, response = open_response(gateway.port, "GET", f"/api/v1/runs/{run}/events", headers=[("Authorization", f"Bearer {TOKEN}")])
    number = None
    for line in response:
        if line.startswith(b"id: "):
            number = int(line[4:])
        elif line.startswith(b"event: "):
            found[line[7:].strip().decode() if number is None else number] = time.monotonic()
            number = None
    connection.close()


class Store:
    """What the database knows about runs."""

    def __init__(self, url):
        self.url = url

    def owners(self):
        """The owner of each run that is not over; empty if it has none."""
        return {run: owner for run, owner in query(self.url, "SELECT id, coalesce(owner, '') FROM runs WHERE kind = 'agent' AND state = 'open'")}

    def start_delays(self):
        """Seconds from the creation of each run to the first event that its gateway logged."""
        sql = "SELECT runs.id, (min(at) - created_at) / 1000.0 FROM runs JOIN run_events ON run = id WHERE number > 0 GROUP BY runs.id, created_at"
        return {run: float(seconds) for run, seconds in query(self.url, sql)}


def is_of(gateway, owner):
    return owner.startswith(f"toolyard-{gateway.process.pid}-")


class Trial:
    def __init__(self, gateways, store, ledger, options):
        self.gateways, self.store, self.ledger, self.options = gateways, store, ledger, options
        self.failures, self.names, self.first_gateway = [], {}, {}

    def check(self, part, holds):
        if not holds:
            self.failures.append(part)

    def entries(self):
        return self.ledger.read_text().split() if self.ledger.exists() else []

    def executing(self, run):
        """Waits for the gateway that executes a run."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            owner = self.store.owners().get(run, "")
            for gateway in self.gateways:
                if is_of(gateway, owner) and not owner.endswith("-creates"):
                    return gateway
            time.sleep(0.05)
        sys.exit(f"nobody executes run {run}")

    def follow_and_cancel(self):
        run = start_run(self.gateways[1], "followed-0", 4, 300)
        executing = self.executing(run)
        others = [gateway for gateway in self.gateways if gateway is not executing]
        streams = [{}, {}]
        threads = [threading.Thread(target=events_of, args=(gateway, run, found)) for gateway, found in zip((executing, others[0]), streams)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        here, elsewhere = streams
        logged = [{number for number in stream if isinstance(number, int)} for stream in streams]
        late = max((elsewhere[key] - here[key] for key in here if key in elsewhere), default=99)
        print(f"followed through another gateway: {len(logged[1])} of {len(logged[0])} events, each at most {late * 1000:.0f} ms after the executing one had sent it")
        # Polling would take up to 500 ms; pieces of the answer are in no log.
        self.check("followed", logged[0] == logged[1] and late < 0.4 and "answer_delta" in elsewhere)
        run = start_run(self.gateways[1], "cancelled-0", 20, 500)
        executing = self.executing(run)
        other = next(gateway for gateway in self.gateways if gateway is not executing)
        began = time.monotonic()
        status, answer = call(other, "POST", f"/runs/{run}/cancel")
        took = time.monotonic() - began
        state = call(other, "GET", f"/runs/{run}")[1]["state"]
        print(f"cancelled through another gateway: status {status}, {took * 1000:.0f} ms, state {state}")
        self.check("cancelled", status == 200 and state == "cancelled" and took < 3)

    def start_runs(self):
        names = [f"run-{number}" for number in range(self.options.runs)]

        def start(name):
            gateway = random.choice(self.gateways)
            run = start_run(gateway, name, self.options.steps, self.options.delay_ms)
            self.names[run], self.first_gateway[run] = name, gateway

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(start, names))

    def queued_runs(self):
        """How soon runs were executed that were started at the gateway which executes few at once."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            delays = {run: seconds for run, seconds in self.store.start_delays().items() if run in self.names}
            if len(delays) == len(self.names):
                break
            time.sleep(0.2)
        at_first = [delays.get(run, 99) for run, gateway in self.first_gateway.items() if gateway is self.gateways[0]]
        elsewhere = [delays.get(run, 99) for run, gateway in self.first_gateway.items() if gateway is not self.gateways[0]]
        print(
            f"start after the request: {len(elsewhere)} runs at gateways with room: median {statistics.median(elsewhere):.2f} s, slowest {max(elsewhere):.2f} s; "
            f"{len(at_first)} runs at the gateway that executes {FEW_RUNS}: median {statistics.median(at_first):.2f} s, slowest {max(at_first):.2f} s"
        )
        self.check("queued runs", len(delays) == len(self.names) and max(at_first) < max(elsewhere) + 2)

    def kill_one(self):
        before = self.store.owners()
        # Of those that execute many, the one with most open runs: there must be some.
        victim = max(self.gateways[1:], key=lambda gateway: sum(is_of(gateway, owner) for owner in before.values()))
        killed = time.monotonic()
        victim.kill()
        after = self.store.owners()
        # Runs that the victim began or ended between the two looks are not counted.
        orphaned = {run for run, owner in after.items() if run in before and is_of(victim, owner)}
        survivors = [gateway for gateway in self.gateways if gateway is not victim]
        times, limit = {}, self.options.lease + MARGIN
        while len(times) < len(orphaned) and time.monotonic() - killed < limit + 10:
            now, owners = time.monotonic() - killed, self.store.owners()
            for run in orphaned - set(times):
                if not is_of(victim, owners.get(run, "")):
                    times[run] = now
            time.sleep(0.1)
        slowest = max(times.values(), default=99)
        print(f"killed: {len(times)} of {len(orphaned)} runs of the killed gateway were taken over, the last one {slowest:.1f} s after the kill (lease {self.options.lease} s, wanted ≤ {limit} s)")
        self.check("taken over", orphaned and len(times) == len(orphaned) and slowest <= limit)
        return survivors

    def states(self, gateways):
        with ThreadPoolExecutor(8) as pool:
            shown = pool.map(lambda run: (run, call(random.choice(gateways), "GET", f"/runs/{run}")[1]), self.names)
            return {run: details for run, details in shown}

    def wait_for_ends(self, gateways, seconds, unfinished=("running",)):
        """Waits until no run is in one of these states."""
        until = time.monotonic() + seconds
        while True:
            states = self.states(gateways)
            if all(details["state"] not in unfinished for details in states.values()) or time.monotonic() > until:
                return states
            time.sleep(0.5)

    def finish(self, survivors):
        states = self.wait_for_ends(survivors, 90)
        unknown = [(run, step) for run, details in states.items() for step in details["unknown_steps"]]
        suspended = {run for run, details in states.items() if details["state"] == "suspended"}
        reported = suspended == {run for run, _ in unknown}
        for run, step in unknown:
            entry = f"{self.names[run]}.{step['step'].split('#')[0]}"
            outcome = "done" if entry in self.entries() else "not_done"
            status, answer = call(random.choice(survivors), "POST", "/unknown-steps", {"run": run, "step": step["step"], "outcome": outcome})
            if status != 202:
                print(f"  resolve: {status} {answer}")
        # A run whose step was decided stays suspended until a gateway resumes it.
        states = self.wait_for_ends(survivors, 60, ("running", "suspended"))
        ended = Counter(details["state"] for details in states.values())
        print(f"ended: {dict(ended)}; {len(unknown)} steps had an unknown outcome, were reported by their runs, and were decided by looking at the ledger")
        self.check("ended", reported and ended == {"answered": self.options.runs})
        entries = [entry for entry in self.entries() if entry.startswith("run-")]
        repeated = [entry for entry, count in Counter(entries).items() if count > 1]
        missing = self.options.runs * self.options.steps - len(set(entries))
        print(f"ledger: {len(entries)} side effects, {len(repeated)} repeated, {missing} missing {repeated[:3]}")
        self.check("ledger", not repeated and not missing)


def start_ledger(file):
    port = free_port()
    process = subprocess.Popen([sys.executable, FOLDER.parent / "replicas/ledger_server.py", str(port), file])
    block_until(lambda: accepts_connections(port), 10, "the ledger server listens")
    return process, port


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="toolyard")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--delay-ms", type=int, default=500, help="how long each step takes")
    parser.add_argument("--lease", type=int, default=10, help="[serve] run_lease in seconds")
    options = parser.parse_args()
    store = f"{started_server()}/postgres"
    random.seed(1)
    with tempfile.TemporaryDirectory(prefix="toolyard-runs-") as folder:
        folder = Path(folder)
        nats, nats_port = start_nats(folder)
        ledger, ledger_port = start_ledger(folder / "ledger")
        values = {"store": store, "nats": nats_port, "lease": options.lease, "ledger": ledger_port, "model": scripted_model.start_thread(reply)}
        gateways = []
        for number, limit in enumerate([FEW_RUNS, 1000, 1000]):
            home = folder / f"gateway-{number}"
            gateways.append(GatewayProcess(options.binary, home, create_home(home, SETTINGS.format(max_runs=limit, **values))))
        trial = Trial(gateways, Store(store), folder / "ledger", options)
        with stopping(gateways, ledger, nats):
            gateways[0].command("servers", "test")
            start_cluster(gateways, ["record"])
            trial.follow_and_cancel()
            trial.start_runs()
            trial.queued_runs()
            trial.finish(trial.kill_one())
    if trial.failures:
        sys.exit(f"failed: {', '.join(trial.failures)}")


main()
