"""Several gateways as one cluster, on a real NATS and PostgreSQL, without stickiness: each request goes to a random gateway.

1. Callers count at a stateful server; each must see its own counter, whichever gateway answers.
2. The gateway that owns sessions is killed; callers must be told that the state is gone, and be served again within the lease + 2 s.
3. Questions of a call that entered at one gateway are answered through another one, in both MCP revisions.
Prints one line per part, and fails if a promise does not hold.
"""

import argparse
import http.client
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# What the trials share; before the imports that need it.
sys.path.append(str(FOLDER.parents[1] / "common"))

from blocking_http import messages_of, modern_request, open_response
from gateway_process import GatewayProcess, create_home, start_cluster, stopping
from mcp_messages import ACCEPT, LEGACY, answer_text, initialize_message, legacy_headers
from nats import start_nats
from postgres import started_server

ASKING = {"elicitation": {"form": {}}}
LEASE = 10
SETTINGS = """
store = "{store}"

[cluster]
nats = "nats://127.0.0.1:{nats}"
lease = "{lease}s"

[serve]
token = "${{SERVE_TOKEN}}"
drain = "0s"

[serve.proxy_identity]
subject_header = "X-Forwarded-User"
trusted_addresses = ["127.0.0.0/8"]

[isolation]
max_instances = 200

[servers.counter]
command = "python3"
args = ["{server}"]
"""


def call_tool(port, caller, tool, more_params=None):
    """The answer to a call of the modern revision."""
    params = {"name": tool, "arguments": {}, **(more_params or {})}
    return modern_request(port, "cluster-trial", "tools/call", params, tool, [("X-Forwarded-User", caller)], ASKING, random.randrange(1 << 40))


class Counting:
    """Callers that count through random gateways, and what they saw."""

    def __init__(self, gateways, callers):
        self.gateways, self.callers = gateways, callers
        self.outcomes, self.problems, self.lock = Counter(), [], threading.Lock()
        self.seen = {}
        self.told_after, self.served_after = {}, {}
        self.after_lease = Counter()

    def run(self, seconds, killed_at=None):
        """For some seconds; after a kill, until each caller has counted twice since the lease ended."""
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self.count, args=(f"caller-{number}", until, killed_at)) for number in range(self.callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def are_all_served(self):
        with self.lock:
            return len(self.after_lease) == self.callers and min(self.after_lease.values()) >= 2

    def count(self, caller, until, killed_at):
        told = False
        while time.monotonic() < until and not self.are_all_served():
            gateway = random.choice([gateway for gateway in self.gateways if gateway.process.poll() is None])
            try:
                answer = call_tool(gateway.port, caller, "count")
            except (OSError, http.client.HTTPException, ValueError, IndexError):
                # The gateway was killed while it answered.
                told = None
                continue
            text = answer_text(answer)
            with self.lock:
                found = re.fullmatch(r"(\d+) (\d+)", text)
                if not found:
                    kind = "session lost" if "session with the server is gone" in text else "lost" if "lost" in text else "refused"
                    self.outcomes[kind] += 1
                    if kind == "refused" and len(self.problems) < 3:
                        self.problems.append(text[:200])
                    if killed_at and kind == "session lost":
                        self.told_after.setdefault(caller, time.monotonic() - killed_at)
                    told = True if kind == "session lost" else (None if kind == "lost" else told)
                    continue
                process, count = found[1], int(found[2])
                before = self.seen.get(caller)
                if before and before[0] != process and told is False:
                    self.outcomes["silent loss"] += 1
                if before and before[0] == process and count <= before[1]:
                    self.outcomes["inconsistent"] += 1
                if any(other != caller and seen[0] == process for other, seen in self.seen.items()):
                    self.outcomes["crossed"] += 1
                self.outcomes["counted"] += 1
                self.seen[caller] = (process, count)
                if killed_at and time.monotonic() - killed_at > LEASE:
                    self.after_lease[caller] += 1
                if killed_at and before and before[0] != process:
                    self.served_after.setdefault(caller, time.monotonic() - killed_at)
                told = False
            time.sleep(0.05)


def ask_modern(gateways, caller, word):
    """The question arrives in the result of the call; the call is repeated with the answer, at another gateway."""
    one, other = random.sample(gateways, 2)
    answer = call_tool(one.port, caller, "ask")
    result = answer.get("result", {})
    if result.get("resultType") != "input_required":
        return f"no question: {json.dumps(answer)[:300]}"
    responses = {key: {"action": "accept", "content": {"word": word}} for key in result["inputRequests"]}
    again = {"inputResponses": responses, "requestState": result.get("requestState")}
    return answer_text(call_tool(other.port, caller, "ask", again))


class LegacyClient:
    """A session, which is valid at every gateway."""

    def __init__(self, gateways, caller):
        self.gateways, self.caller = gateways, caller
        headers = [ACCEPT, ("MCP-Protocol-Version", LEGACY), ("X-Forwarded-User", caller)]
        connection, response = open_response(gateways[0].port, "POST", "/mcp", initialize_message("cluster-trial", ASKING), headers)
        self.session = response.headers["Mcp-Session-Id"]
        list(messages_of(response))
        connection.close()
        self.send(gateways[0], {"method": "notifications/initialized"})

    def post(self, gateway, message):
        headers = [*legacy_headers(self.session), ("X-Forwarded-User", self.caller)]
        return open_response(gateway.port, "POST", "/mcp", {"jsonrpc": "2.0", **message}, headers)

    def send(self, gateway, message):
        connection, response = self.post(gateway, message)
        status = response.status
        response.read()
        connection.close()
        return status

    def ask(self, word):
        """The question arrives on the stream of the call; the answer is a request of its own, to another gateway."""
        one, other = random.sample(self.gateways, 2)
        message = {"id": random.randrange(1 << 40), "method": "tools/call", "params": {"name": "ask", "arguments": {}}}
        connection, response = self.post(one, message)
        try:
            for received in messages_of(response):
                if received.get("method") == "elicitation/create":
                    answer = {"id": received["id"], "result": {"action": "accept", "content": {"word": word}}}
                    status = self.send(other, answer)
                    if status != 202:
                        return f"the answer got status {status}"
                elif received.get("id") == message["id"]:
                    return answer_text(received)
            return "no result"
        finally:
            connection.close()


def ask_all(gateways, questions):
    """Half the questions in each revision, from several callers at once."""
    wrong, right = [], Counter()

    def run(number, count):
        caller = f"asker-{number}"
        legacy = LegacyClient(gateways, caller) if number % 2 else None
        for question in range(count):
            word = f"word-{number}-{question}"
            got = legacy.ask(word) if legacy else ask_modern(gateways, caller, word)
            if got == word:
                right["legacy" if legacy else "modern"] += 1
            else:
                wrong.append(f"{'legacy' if legacy else 'modern'}: {got[:300]}")

    workers = 4
    counts = [questions // workers + (number < questions % workers) for number in range(workers)]
    threads = [threading.Thread(target=run, args=(number, count)) for number, count in enumerate(counts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return right, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="toolyard")
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--questions", type=int, default=1000)
    options = parser.parse_args()
    store = f"{started_server()}/postgres"
    random.seed(1)
    failures = []
    with tempfile.TemporaryDirectory(prefix="toolyard-cluster-") as folder:
        folder = Path(folder)
        nats, port = start_nats(folder)
        settings = SETTINGS.format(store=store, nats=port, lease=LEASE, server=FOLDER / "counter_server.py")
        homes = [folder / f"gateway-{number}" for number in range(3)]
        gateways = [GatewayProcess(options.binary, home, create_home(home, settings)) for home in homes]
        with stopping(gateways, nats):
            gateways[0].command("servers", "test")
            print("doctor:", next(line.strip() for line in gateways[0].command("doctor").splitlines() if "NATS" in line))
            start_cluster(gateways, ["count", "ask"])

            counting = Counting(gateways, options.callers)
            counting.run(options.seconds)
            print(f"counting: {options.callers} callers, 3 gateways: {dict(counting.outcomes)} {counting.problems}")
            if set(counting.outcomes) != {"counted"}:
                failures.append("counting")

            right, wrong = ask_all(gateways, options.questions)
            print(f"questions answered through another gateway: {sum(right.values())} of {options.questions} {dict(right)} {wrong[:3]}")
            if sum(right.values()) != options.questions:
                failures.append("questions")

            victim = random.choice(gateways)
            counting.outcomes.clear()
            counting.problems.clear()
            killed = time.monotonic()
            victim.kill()
            counting.run(LEASE + 8, killed)
            answered, served = (max(after.values(), default=0) for after in (counting.told_after, counting.served_after))
            print(
                f"owner killed: {dict(counting.outcomes)} {counting.problems}; {len(counting.served_after)} sessions moved; "
                f"the last new owner answered {answered:.1f} s after the kill (lease {LEASE} s), and its new process {served:.1f} s"
            )
            lost = {"silent loss", "inconsistent", "crossed"} & set(counting.outcomes)
            if lost or not counting.served_after or answered > LEASE + 2 or not counting.outcomes["session lost"]:
                failures.append("owner killed")
    if failures:
        sys.exit(f"failed: {', '.join(failures)}")


if __name__ == "__main__":
    main()
