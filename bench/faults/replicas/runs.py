"""Runs whose replica dies: the survivor adopts them, and no step is executed twice."""

import asyncio
import itertools
import json
import time
from collections import Counter

from http_client import Connection
from processes import wait_until

# A survivor has this long after the lease of a run has ended.
MARGIN = 5
_NUMBERS = itertools.count(1)


class Runs:
    """Runs of which half are started on each replica."""

    def __init__(self, yard, steps, delay_ms):
        self.yard, self.steps, self.delay_ms = yard, steps, delay_ms
        self.name, self.ids, self.started_on = f"run{next(_NUMBERS)}", {}, {}

    async def start(self, count):
        connections = [(replica, Connection(replica.port)) for replica in self.yard.replicas]
        for number in range(count):
            replica, connection = connections[number % len(connections)]
            name = f"{self.name}-{number}"
            body = {"question": f"record {name} {self.steps} {self.delay_ms}"}
            status, _, answer = await connection.request("POST", "/runs", (), body)
            assert status == 202, f"POST /runs: {status} {answer[:200]}"
            run = json.loads(answer)["run"]
            self.ids[run], self.started_on[run] = name, replica
        for _, connection in connections:
            connection.close()

        async def all_began():
            return all(f"{name}.s0" in self.yard.entries(self.name + "-") for name in self.ids.values())

        await wait_until(all_began, 20, "all runs have begun")

    async def state(self, replica, run):
        status, _, body = await Connection(replica.port).request("GET", f"/runs/{run}", [("Connection", "close")])
        assert status == 200, f"GET /runs/{run}: {status} {body[:200]}"
        return json.loads(body)

    async def driven_by(self, replica):
        states = {run: await self.state(replica, run) for run in self.ids if self.started_on[run] is replica}
        return {run: state["last_event"] for run, state in states.items() if state["state"] == "running"}

    async def adoption_times(self, survivor, last_events, seconds):
        """For each run the seconds from now until the survivor logged an event of it; `None` if it did not."""
        began, times = time.monotonic(), dict.fromkeys(last_events)
        while None in times.values() and time.monotonic() - began < seconds:
            for run in [run for run, at in times.items() if at is None]:
                if (await self.state(survivor, run))["last_event"] > last_events[run]:
                    times[run] = time.monotonic() - began
            await asyncio.sleep(0.1)
        return times

    async def resolve_unknown(self, survivor):
        """Decides on steps with an unknown outcome as an operator would: by looking at the ledger. Returns their number."""
        unknown = [step for step in await self.yard.cli_json("runs", "unknown") if step["run"] in self.ids]
        for step in unknown:
            is_done = json.loads(step["redacted_arguments"])["entry"] in self.yard.entries(self.name + "-")
            body = {"run": step["run"], "step": step["step"], "outcome": "done" if is_done else "not_done"}
            connection = Connection(survivor.port)
            status, _, answer = await connection.request("POST", "/api/v1/unknown-steps", [("Connection", "close")], body)
            if status != 202:
                # A client may not permit that a call is made again; the operator at the machine may.
                print(f"  POST /api/v1/unknown-steps: {status} {answer[:200]}")
                await self.yard.cli("runs", "resolve", step["run"], step["step"], body["outcome"].replace("_", "-"))
                await self.yard.cli("runs", "resume", "--yes", step["run"])
        return len(unknown)

    async def states(self, replica):
        return Counter([(await self.state(replica, run))["state"] for run in self.ids])

    async def wait_for_ends(self, replica, seconds):
        async def all_ended():
            for run in self.ids:
                if (await self.state(replica, run))["state"] == "running":
                    return False
            return True

        try:
            await wait_until(all_ended, seconds, "all runs have ended")
        except TimeoutError:
            pass


async def orphaned_runs(yard, report, options, signal_name):
    """Stops or kills one replica while both drive runs, and does not start it again until the runs are over."""
    fault = f"runs, {signal_name} of their replica"
    count = 8 if options.quick else 20
    victim, survivor = yard.replicas
    # With SIGTERM, long enough that no run ends while the replica drains.
    runs = Runs(yard, steps=4 if signal_name == "kill -9" else 22, delay_ms=1000)
    await runs.start(count)
    driven = await runs.driven_by(victim)
    began = time.monotonic()
    if signal_name == "kill -9":
        victim.kill()
        limit, note = yard.run_lease + MARGIN, ""
    else:
        note = f"{await victim.terminate():.1f} s from the signal to the end of the process"
        limit = MARGIN
    # The victim may have logged events until its end.
    counts = {run: (await runs.state(survivor, run))["last_event"] for run in driven}
    times = await runs.adoption_times(survivor, counts, limit + 15)
    adopted = [at for at in times.values() if at is not None]
    slowest = f"{max(adopted):.1f} s" if adopted else "–"
    report.check(fault, f"runs adopted, of {len(driven)} orphaned", len(adopted), len(driven), len(adopted) == len(driven) > 0, note)
    report.check(fault, "slowest adoption after the end of the process", slowest, f"≤ {limit} s", len(adopted) == len(driven) and max(adopted, default=0) <= limit)
    # Runs that nobody adopted do not end.
    seconds = 60 if len(adopted) == len(driven) else 5
    await runs.wait_for_ends(survivor, seconds)
    resolved = await runs.resolve_unknown(survivor)
    await runs.wait_for_ends(survivor, seconds)
    states = await runs.states(survivor)
    done = states["answered"]
    note = f"{resolved} steps had an unknown outcome and were decided by the operator; {time.monotonic() - began:.0f} s in all"
    report.check(fault, f"runs done, of {count}", done, count, done == count, note if done == count else f"{note}; {dict(states)}")
    executed = Counter(yard.entries(runs.name + "-"))
    repeated = sum(times > 1 for times in executed.values())
    report.check(fault, f"side effects repeated, of {len(executed)}", repeated, 0, repeated == 0)
    missing = count * runs.steps - len(executed)
    report.check(fault, "side effects missing", missing, 0, missing == 0)
    await victim.start()
    await yard.list_tools()
