"""One gateway and 1, 2 and 4 worker processes of one group, on a real NATS and PostgreSQL: calls of a tool that waits 20 ms.

Each worker executes a fixed number of calls at the same time, so that the processors are not the limit. Prints the calls per second
and what part of linear growth that is, and fails if a call fails or 4 workers reach less than --wanted of linear.
"""

import argparse
import http.client
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# What the trials share; before the imports that need it.
sys.path.append(str(FOLDER.parents[1] / "common"))

from blocking_http import modern_request
from gateway_process import GatewayProcess, create_home
from mcp_messages import answer_text
from nats import start_nats
from postgres import started_server
from processes import block_until, spawn

GATEWAY = """
store = "{store}"

[cluster]
nats = "nats://127.0.0.1:{nats}"
workers = ["bench"]
trusted_workers = ["bench"]

[serve]
drain = "0s"

[serve.proxy_identity]
subject_header = "X-Forwarded-User"
trusted_addresses = ["127.0.0.0/8"]
"""
WORKER = """
[servers.waiting]
command = "python3"
args = ["{server}"]
stateless = true
trusted = true
"""


class Worker:
    """A worker in a home folder of its own."""

    def __init__(self, binary, folder, nats, concurrency):
        environment = create_home(folder, WORKER.format(server=FOLDER / "waiting_server.py"))
        self.log = folder / "log"
        command = [binary, "worker", "bench", "--nats", f"nats://127.0.0.1:{nats}", "--concurrency", concurrency]
        self.process = spawn(command, self.log, env=environment, cwd=folder)

    def wait_until_ready(self):
        try:
            block_until(lambda: "serves" in self.log.read_text(), 30, "the worker serves")
        except TimeoutError:
            sys.exit(self.log.read_text())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)


def call(connection):
    params, headers = {"name": "wait", "arguments": {}}, [("X-Forwarded-User", "bench")]
    return answer_text(modern_request(None, "worker-trial", "tools/call", params, "wait", headers, connection=connection))


def measure(port, callers, seconds):
    outcomes, lock = Counter(), threading.Lock()
    until = time.monotonic() + seconds

    def run():
        connection, own = http.client.HTTPConnection("127.0.0.1", port, timeout=60), Counter()
        while time.monotonic() < until:
            own[call(connection)[:200]] += 1
        with lock:
            outcomes.update(own)

    threads = [threading.Thread(target=run) for _ in range(callers)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes, outcomes["done"] / (time.monotonic() - start)


def wait_for_tool(gateway):
    until, answer = time.monotonic() + 30, ""
    while time.monotonic() < until:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        answer = call(connection)
        if answer == "done":
            return
        time.sleep(0.1)
    sys.exit(f"{answer}\n{gateway.latest_log()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="toolyard")
    parser.add_argument("--concurrency", type=int, default=2, help="calls that a worker executes at the same time")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--wanted", type=float, default=0.9)
    options = parser.parse_args()
    store = f"{started_server()}/postgres"
    failures, rates = [], {}
    with tempfile.TemporaryDirectory(prefix="toolyard-workers-") as folder:
        folder = Path(folder)
        nats, port = start_nats(folder)
        home = folder / "gateway"
        gateway = GatewayProcess(options.binary, home, create_home(home, GATEWAY.format(store=store, nats=port)))
        workers = []
        try:
            gateway.spawn()
            gateway.wait_until_serving()
            for count in (1, 2, 4):
                while len(workers) < count:
                    workers.append(Worker(options.binary, folder / f"worker-{len(workers)}", port, options.concurrency))
                for worker in workers:
                    worker.wait_until_ready()
                wait_for_tool(gateway)
                outcomes, rates[count] = measure(gateway.port, 2 * count * options.concurrency, options.seconds)
                part = rates[count] / (rates[1] * count)
                print(f"{count} workers, {options.concurrency} calls at a time each: {rates[count]:.0f} calls/s, {part:.2f} of linear")
                if set(outcomes) != {"done"}:
                    failures.append(f"calls failed: {dict(outcomes)}")
            if rates[4] / (rates[1] * 4) < options.wanted:
                failures.append("4 workers are too slow")
            if any(worker.stop() for worker in workers):
                failures.append("a worker did not end as it should")
        finally:
            for worker in workers:
                worker.process.kill()
            if gateway.process:
                gateway.kill()
            nats.kill()
    if failures:
        sys.exit("; ".join(failures))


if __name__ == "__main__":
    main()
