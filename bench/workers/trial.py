"""One gateway and 1, 2 and 4 worker processes of one group, on a real NATS and PostgreSQL: calls of a tool that waits 20 ms.

Each worker executes a fixed number of calls at the same time, so that the processors are not the limit. Prints the calls per second
and what part of linear growth that is, and fails if a call fails or 4 workers reach less than --wanted of linear.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
import trial as cluster  # noqa: E402

FOLDER = Path(__file__).resolve().parent
GATEWAY = """
store = "{store}"

[cluster]
nats = "nats://127.0.0.1:{nats}"
workers = ["bench"]
trusted_workers = ["bench"]

[serve]
session_keys = ["${{SESSION_KEY}}"]
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


def home(folder, settings):
    folder.mkdir()
    file = folder / "config/toolyard/toolyard.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "SESSION_KEY": "ab" * 32}
    return environment | {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}


class Worker:
    """A worker in a home folder of its own."""

    def __init__(self, binary, folder, nats, concurrency):
        environment = home(folder, WORKER.format(server=FOLDER / "waiting_server.py"))
        self.log = folder / "log"
        command = [binary, "worker", "bench", "--nats", f"nats://127.0.0.1:{nats}", "--concurrency", str(concurrency)]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)

    def wait_until_ready(self):
        until = time.monotonic() + 30
        while "serves" not in self.log.read_text():
            if time.monotonic() > until:
                sys.exit(self.log.read_text())
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(40)


def call(connection, number):
    meta = {
        "io.modelcontextprotocol/protocolVersion": cluster.MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "worker-trial", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "wait", "arguments": {}, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": cluster.MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "wait",
        "X-Forwarded-User": "bench",
    }
    connection.request("POST", "/mcp", json.dumps(message), headers)
    return cluster.text_of(list(cluster.messages_of(connection.getresponse()))[-1])


def measure(port, callers, seconds):
    outcomes, lock = Counter(), threading.Lock()
    until = time.monotonic() + seconds

    def run():
        connection, own = http.client.HTTPConnection("127.0.0.1", port, timeout=60), Counter()
        while time.monotonic() < until:
            own[call(connection, 1)[:200]] += 1
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
        answer = call(connection, 1)
        if answer == "done":
            return
        time.sleep(0.1)
    sys.exit(f"{answer}\n{(gateway.home / 'log').read_text()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="toolyard")
    parser.add_argument("--store", required=True, help="a PostgreSQL database of its own")
    parser.add_argument("--concurrency", type=int, default=2, help="calls that a worker executes at the same time")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--wanted", type=float, default=0.9)
    options = parser.parse_args()
    failures, rates = [], {}
    with tempfile.TemporaryDirectory(prefix="toolyard-workers-") as folder:
        folder = Path(folder)
        nats, port = cluster.start_nats(folder)
        gateway = cluster.Gateway.__new__(cluster.Gateway)
        gateway.binary, gateway.home = options.binary, folder / "gateway"
        gateway.environment = home(gateway.home, GATEWAY.format(store=options.store, nats=port))
        workers = []
        try:
            gateway.start()
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
            if getattr(gateway, "process", None):
                gateway.kill()
            nats.kill()
    if failures:
        sys.exit("; ".join(failures))


if __name__ == "__main__":
    main()
