"""What still works while PostgreSQL or NATS is away, with which errors the rest is refused, and how soon everything works again."""

import asyncio
import itertools
import json
import time
from collections import Counter, defaultdict

from client import Client
from http_client import Broken, Connection
from stack import Lab
from topology import LEASE, NATS_NODES, SERVERS, WORKER_SERVERS

# Until the leases of sessions are over, their owners go on.
LEASE_MARGIN = 2
NATS_SECONDS = 20
WORKERS = 2


def group_of(server):
    effect = "no side effects" if server.kind == "read" else "idempotent" if server.kind == "put" else "side effects"
    place = "tool of a worker" if server in WORKER_SERVERS else "session of one gateway" if server.has_session else "no session"
    return f"{place}, {effect}"


class Watched:
    """One caller for each server, calling all the time, and runs."""

    def __init__(self, lab):
        self.lab, self.seen, self.is_over, self.numbers = lab, [], False, itertools.count()

    async def call(self, server):
        client = Client(self.lab.port, "watcher", "api")
        while not self.is_over:
            start = time.monotonic()
            outcome, text, _ = await client.call(server.tool, {"id": f"o{next(self.numbers)}"}, "outage", 20)
            self.seen.append((start, time.monotonic(), group_of(server), outcome, text if outcome != "result" else ""))
            await asyncio.sleep(0.25)
        client.http.close()

    async def run(self):
        http = Connection(self.lab.port, key=None)
        while not self.is_over:
            start, name = time.monotonic(), f"outage-{next(self.numbers)}"
            try:
                status, fields, content = await http.request("POST", "/api/v1/runs", [("X-Forwarded-User", "watcher")], {"question": f"lab {name} h04 0"}, timeout=20)
                code = "started" if status == 202 else json.loads(content)["error"].get("code", f"http_{status}")
                text = "" if status == 202 else f"{status}, x-should-retry {fields.get('x-should-retry')}, retry-after {fields.get('retry-after')}: {content[:160]!r}"
            except (Broken, ValueError, KeyError) as error:
                code, text = "connection_error", str(error)
            self.seen.append((start, time.monotonic(), "start of a run", code, text))
            await asyncio.sleep(1)
        http.close()

    def table(self, start, end):
        outcomes, texts = defaultdict(Counter), {}
        for began, ended, group, outcome, text in self.seen:
            if began >= start and ended <= end:
                outcomes[group][outcome] += 1
                if text:
                    texts.setdefault((group, outcome), text[:200])
        return outcomes, texts

    def recovery(self, since):
        """Seconds from `since` until the first success of each group of which every later call succeeded too."""
        last_failure = defaultdict(lambda: since)
        for _began, ended, group, outcome, _ in self.seen:
            if ended > since and outcome not in ("result", "started"):
                last_failure[group] = max(last_failure[group], ended)
        return {group: round(last_failure[group] - since, 1) for group in {entry[2] for entry in self.seen}}


def print_table(title, outcomes, texts):
    print(f"\n{title}")
    for group, counts in sorted(outcomes.items()):
        print(f"  {group}: {', '.join(f'{name} {count}' for name, count in counts.items())}")
    for (group, outcome), text in sorted(texts.items()):
        print(f"    {group}, {outcome}: {text}")


async def take_away(lab, name, seconds):
    if name == "PostgreSQL":
        await lab.postgres.stop("immediate")
    elif name == "NATS":
        for node in NATS_NODES:
            lab.nats.kill(node)
    else:
        # Connections stay open, and nothing arrives: as behind a broken network or with a disk that hangs.
        for gateway in lab.gateways:
            await lab.disturb({"target": f"postgres-{gateway}", "fault": "hold", "seconds": seconds, "number": 1})


async def bring_back(lab, name):
    if name == "PostgreSQL":
        await lab.postgres.start()
    elif name == "NATS":
        await lab.nats.start_all()


async def measure(options):
    seconds = max(30.0, min(options.seconds, 120.0)) if options.seconds != 60 else 30.0
    lab, result = Lab(options.binary, workers=WORKERS), {}
    async with lab:
        watched = Watched(lab)
        tasks = [asyncio.create_task(watched.call(server)) for server in SERVERS + WORKER_SERVERS] + [asyncio.create_task(watched.run())]
        await asyncio.sleep(8)
        for name, length in (("PostgreSQL", seconds), ("silent PostgreSQL", seconds), ("NATS", NATS_SECONDS)):
            began = time.monotonic()
            await take_away(lab, name, length)
            await asyncio.sleep(length)
            end = time.monotonic()
            await bring_back(lab, name)
            back = time.monotonic()
            await asyncio.sleep(20)
            outcomes, texts = watched.table(began + LEASE + LEASE_MARGIN, end)
            print_table(f"{name}, away for {length:g} s, from {LEASE + LEASE_MARGIN} s on:", outcomes, texts)
            recovery = watched.recovery(back)
            print(f"  seconds after its return until the last failed call: {json.dumps(recovery)}", flush=True)
            result[name] = {"outcomes": {group: dict(counts) for group, counts in outcomes.items()}, "recovery": recovery,
                            "texts": {f"{group}, {outcome}": text for (group, outcome), text in texts.items()}}
        watched.is_over = True
        await asyncio.gather(*tasks)
        result["crashes"] = [event for event in lab.events if event["event"] in ("gateway_ended", "gateway_hangs")]
        left = await lab.stop_gateways()
    problems = judge(result, left)
    print(f"\nproblems: {problems or 'none'}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({**result, "problems": problems}, file, indent=1, default=str)
    lab.remove()
    return 1 if problems else 0


def judge(result, left):
    problems = [f"orphan {pid}" for pid, _ in left] + [f"gateway {event['gateway']} ended" for event in result["crashes"]]
    without_nats = result["NATS"]["outcomes"]
    for name in ("PostgreSQL", "silent PostgreSQL"):
        without_store = result[name]["outcomes"]
        for group, counts in without_store.items():
            if group.startswith(("no session", "tool of a worker")) and set(counts) != {"result"}:
                problems.append(f"{name} away: {group}: {counts}")
        if set(without_store.get("start of a run", {})) - {"store_unavailable"}:
            problems.append(f"{name} away: runs: {without_store['start of a run']}")
    for group, counts in without_nats.items():
        if group.startswith("tool of a worker"):
            is_expected = set(counts) == {"source_unavailable"}
        else:
            is_expected = group.startswith("session") or not set(counts) - {"result", "started"}
        if not is_expected:
            problems.append(f"NATS away: {group}: {counts}")
    for name in ("PostgreSQL", "silent PostgreSQL", "NATS"):
        problems += [f"{name}: {group} did not recover within 15 s" for group, seconds in result[name]["recovery"].items() if seconds > 15]
    return problems
