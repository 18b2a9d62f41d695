"""Many callers of a server that keeps state, behind one gateway: crossed states, the limit on private instances, and memory.

Each caller logs in under its own name and asks who it is, again and again. An instance that was stopped to make room has
forgotten the login, so the answer is the caller itself or nobody. Prints one line per figure.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SERVER = ROOT / "crates/toolyard/tests/serve/stateful_server.py"
PROTOCOL = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "isolation-trial", "version": "1"},
}
# With many more callers than places, a call waits for as long as it takes to start a process for each of the others.
RETRY_SECONDS = 600
SETTINGS = """
[serve.proxy_identity]
subject_header = "X-Forwarded-User"
trusted_addresses = ["127.0.0.0/8"]

[isolation]
max_instances = {limit}

[servers.stateful]
command = "python3"
args = ["{server}", "{pids}"]
"""


class Gateway:
    """The gateway in a home folder of its own; callers are named by a header, as behind a proxy."""

    def __init__(self, binary: str, limit: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="toolyard-isolation-")
        home = Path(self.folder.name)
        self.pids = home / "pids"
        configuration = home / "config/toolyard/toolyard.toml"
        configuration.parent.mkdir(parents=True)
        configuration.write_text(SETTINGS.format(limit=limit, server=SERVER, pids=self.pids))
        environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
        environment |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "CACHE")}
        subprocess.run([binary, "servers", "test"], env=environment, cwd=home, check=True, capture_output=True)
        command = [binary, "serve", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, env=environment, cwd=home, stderr=subprocess.PIPE, text=True)
        self.port = None
        for line in self.process.stderr:
            if found := re.search(r"serving at http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)
        left = self.processes()
        self.folder.cleanup()
        if left:
            raise SystemExit(f"{left} server processes outlived the gateway")

    def processes(self) -> int:
        """How many processes of the server live."""
        pids = self.pids.read_text().split() if self.pids.exists() else []

        def is_alive(pid: str) -> bool:
            try:
                return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                return False

        return sum(map(is_alive, pids))

    def resident_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def guard_private_kib(self) -> int:
        """The memory of one guard that it shares with no other process, on average."""
        sizes = []
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                if f"\nPPid:\t{self.process.pid}\n" in status.read_text():
                    rollup = (status.parent / "smaps_rollup").read_text()
                    sizes.append(sum(map(int, re.findall(r"Private_\w+:\s+(\d+)", rollup))))
            except OSError:
                continue
        return sum(sizes) // max(len(sizes), 1)


class Client:
    """One caller with one connection."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        self.name, self.refusals = name, Counter()
        self.connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)

    def call(self, tool: str, arguments: dict) -> str:
        """Calls a tool, again if it was refused for lack of room."""
        until = time.monotonic() + RETRY_SECONDS
        params = {"name": tool, "arguments": arguments, "_meta": META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": PROTOCOL,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            "X-Forwarded-User": self.name,
        }
        while True:
            self.connection.request("POST", "/mcp", body, headers)
            text = self.connection.getresponse().read().decode()
            events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
            result = json.loads(events[-1] if events else text).get("result", {})
            content = result.get("content", [{}])[0].get("text", text)
            if result and not result.get("isError"):
                return content
            self.refusals["no room" if "are in use" in content else content] += 1
            if time.monotonic() > until:
                raise SystemExit(f"{self.name}: {content}")
            # What the error asks for, spread so that callers do not retry at once.
            time.sleep(random.uniform(0.5, 1.5))


def try_limit(binary: str, callers: int, limit: int, rounds: int) -> dict:
    """All callers at once, many more than there may be instances."""
    answers, refusals, most = Counter(), Counter(), 0
    with Gateway(binary, limit) as gateway:

        def run(name: str) -> None:
            client = Client(gateway, name)
            for _ in range(rounds):
                client.call("login", {"user": name})
                user = client.call("whoami", {})
                answers[{name: "own", "nobody": "forgotten"}.get(user, "crossed")] += 1
            refusals.update(client.refusals)

        threads = [threading.Thread(target=run, args=(f"caller-{number}",)) for number in range(callers)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            most = max(most, gateway.processes())
            time.sleep(0.02)
        seconds = time.monotonic() - began
    # The shared instance may have a process, too.
    return {
        "callers": callers,
        "limit": limit,
        "answers": dict(answers),
        "refused_and_retried": dict(refusals),
        "most_processes": most,
        "seconds": round(seconds, 1),
        "reached": answers["crossed"] == 0 and most <= limit + 1 and sum(answers.values()) == callers * rounds,
    }


def measure_memory(binary: str, instances: int) -> dict:
    """The memory of the gateway process before and after idle instances were started; their processes are not counted."""
    with Gateway(binary, instances + 1) as gateway:
        # What the first calls allocate is not counted.
        warm_up = Client(gateway, "warm-up")
        for _ in range(200):
            warm_up.call("whoami", {})
        # The same callers without instances of their own are measured with a native tool.
        clients = [Client(gateway, f"idle-{number}") for number in range(instances)]
        for client in clients:
            client.call("calculate", {"expression": "1+1"})
        time.sleep(2)
        before = gateway.resident_kib()
        for client in clients:
            client.call("whoami", {})
        time.sleep(2)
        after, processes, guard = gateway.resident_kib(), gateway.processes(), gateway.guard_private_kib()
    return {
        "instances": instances,
        "processes": processes,
        "gateway_kib_before": before,
        "gateway_kib_after": after,
        "kib_per_instance": round((after - before) / instances, 1),
        "private_kib_of_a_guard": guard,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the release binary of toolyard")
    parser.add_argument("--callers", type=int, default=200)
    parser.add_argument("--limit", type=int, default=20, help="`[isolation] max_instances` (default: 20)")
    parser.add_argument("--rounds", type=int, default=3, help="logins of each caller (default: 3)")
    parser.add_argument("--instances", type=int, default=50, help="idle instances whose memory is measured (default: 50)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file, too")
    options = parser.parse_args()
    figures = {
        "limit": try_limit(options.binary, options.callers, options.limit, options.rounds),
        "memory": measure_memory(options.binary, options.instances),
    }
    for part, values in figures.items():
        for name, value in values.items():
            print(f"{part}: {name} = {value}")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n")
    if not figures["limit"]["reached"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
