"""Callers of both revision families and of the HTTP API, and runs of agents, through nginx; a process of its own.

usage: load.py FOLDER OPTIONS      OPTIONS is JSON: port, seed, callers, pause, runs_every, has_workers
Writes calls.jsonl and runs.jsonl. A line on its standard input says that the faults are over: from then on no call is slower than its
deadline. Ends when its standard input does, after the calls under way have ended.
"""

import asyncio
import itertools
import json
import os
import random
import sys
import time

# What the trials share; before the imports that need it.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common"))

from client import Client
from http_client import Broken, Connection
from topology import BY_NAME, DEADLINE, PROTOCOLS, SERVERS, WORKER_SERVERS, value_of

# No response at all: nginx itself answers sooner than this.
GIVE_UP_SECONDS = DEADLINE + 10
# The tools of a lane, with weights. Counters belong to the first lane, so that a caller's calls of one are in order.
COUNTERS = [server for server in SERVERS if server.is_counter]
OTHERS = [server for server in SERVERS if not server.is_counter]
LANES = 2
EFFECTS_OF_RUNS = [server.name for server in SERVERS if server.kind in ("record", "slow") and server.isolation == "shared"]


class Load:
    def __init__(self, folder, options):
        self.folder, self.options, self.stopping, self.are_faults_over = folder, options, asyncio.Event(), False
        self.others = OTHERS + (list(WORKER_SERVERS) if options["has_workers"] else [])
        self.calls, self.runs = open(f"{folder}/calls.jsonl", "w"), open(f"{folder}/runs.jsonl", "w")

    async def run(self):
        lanes = [self.lane(number, lane) for number in range(self.options["callers"]) for lane in range(LANES)]
        tasks = [asyncio.create_task(lane) for lane in lanes]
        if self.options["runs_every"]:
            tasks.append(asyncio.create_task(self.start_runs()))
        await asyncio.to_thread(sys.stdin.readline)
        self.are_faults_over = True
        await asyncio.to_thread(sys.stdin.read)
        self.stopping.set()
        await asyncio.gather(*tasks)
        self.calls.close()
        self.runs.close()

    async def lane(self, number, lane):
        caller, protocol = f"caller-{number}", PROTOCOLS[number % len(PROTOCOLS)]
        rng = random.Random(f"{self.options['seed']} {number} {lane}")
        client = Client(self.options["port"], caller, protocol)
        for count in itertools.count():
            if self.stopping.is_set():
                break
            server = self.choose(rng, number, lane)
            await self.call(client, server, f"{caller}-{lane}-{count}", rng)
            await asyncio.sleep(rng.uniform(0.2, 1.8) * self.options["pause"])
        client.http.close()

    def choose(self, rng, number, lane):
        if lane == 0 and rng.random() < 0.5:
            server = rng.choice(COUNTERS)
            # A process for each caller: only some callers use each of these, or there would be too many processes for two cores.
            return server if server.name != "s02" or number % 2 else BY_NAME["s03"]
        server = rng.choice(self.others)
        return server if server.name != "s10" or number % 3 == 0 else BY_NAME["s04"]

    async def call(self, client, server, call_id, rng):
        arguments = {"id": call_id}
        if server.kind == "slow":
            # A few take longer than the deadline.
            is_too_slow = rng.random() < 0.02 and not self.are_faults_over
            arguments["delay_ms"] = 7000 if is_too_slow else rng.choice((50, 200, 500, 1500))
        start = time.monotonic()
        outcome, text, gateway = await client.call(server.tool, arguments, call_id, GIVE_UP_SECONDS)
        entry = {"id": call_id, "caller": client.caller, "protocol": client.protocol, "server": server.name, "start": start,
                 "deadline": start + DEADLINE, "end": time.monotonic(), "outcome": outcome, "gateway": gateway}
        if arguments.get("delay_ms", 0) > DEADLINE * 1000:
            entry["is_too_slow"] = True
        if outcome == "result":
            entry |= self.judge(call_id, text)
        else:
            entry["text"] = text[:300]
        self.calls.write(json.dumps(entry) + "\n")

    @staticmethod
    def judge(call_id, text):
        try:
            answer = json.loads(text)
            return {"is_own": answer["value"] == value_of(call_id), "instance": answer["instance"], "count": answer["count"], "answer": answer["id"]}
        except (ValueError, KeyError, TypeError):
            return {"is_own": False, "text": text[:300]}

    async def start_runs(self):
        """Runs are started and left alone; what became of them is read at the end."""
        rng, http = random.Random(f"{self.options['seed']} runs"), Connection(self.options["port"], key=None)
        for count in itertools.count():
            if self.stopping.is_set():
                break
            name, servers = f"run-{count}", [rng.choice(EFFECTS_OF_RUNS) for _ in range(rng.randint(2, 4))]
            body = {"question": f"lab {name} {','.join(servers)} {rng.choice((0, 100, 600))}"}
            headers, start = [("X-Forwarded-User", f"asker-{count % 4}"), ("X-Lab-Call", name)], time.monotonic()
            try:
                status, _, content = await http.request("POST", "/api/v1/runs", headers, body, timeout=GIVE_UP_SECONDS)
                text = content.decode("utf-8", "replace")
                run = json.loads(text).get("run") if status == 202 else None
            except (Broken, ValueError) as error:
                status, text, run = 0, str(error), None
            entry = {"name": name, "run": run, "status": status, "start": start, "end": time.monotonic(), "steps": len(servers)}
            self.runs.write(json.dumps(entry | ({} if run else {"text": text[:300]})) + "\n")
            try:
                await asyncio.wait_for(self.stopping.wait(), rng.expovariate(1 / self.options["runs_every"]))
            except asyncio.TimeoutError:
                pass
        http.close()


if __name__ == "__main__":
    asyncio.run(Load(sys.argv[1], json.loads(sys.argv[2])).run())
