"""Faults under load of both revision families: restarts, a killed replica, a stopped PostgreSQL."""

import asyncio
import json
import time
from collections import Counter

from checks import check_ledger
from http_client import Broken, Connection
from load import Load
from postgres import query
from processes import wait_until

# nginx does not use a server for this long after it refused a connection (`fail_timeout`, default 10 s).
NGINX_FAIL_TIMEOUT = 10
# The lease of a journaled call in seconds (`toolyard-hub`, execution/journaled.rs).
CALL_LEASE = 15


async def rolling_restart(yard, report, options):
    """SIGTERM of one replica after the other. The next one follows as soon as the first is ready again."""
    rounds = 1 if options.quick else 3
    fault = f"rolling restart, {rounds}×2 SIGTERM"
    async with Load(yard.port, options.clients, options.pause) as load:
        await asyncio.sleep(1)
        stops = []
        for _ in range(rounds):
            for replica in yard.replicas:
                stops.append(await replica.terminate())
                await replica.start()
                await asyncio.sleep(0.5)
        # nginx may still keep away from the last one.
        await asyncio.sleep(1)
    failed = len(load.failed())
    legacy = sum(call.legacy for call in load.calls)
    calls = f"{len(load.calls)} calls, {legacy} of them in sessions"
    report.check(fault, f"failed calls of {calls}", failed, 0, failed == 0, f"{load.summary()}; nginx: {yard.nginx_errors()}" if failed else "")
    slowest = max(call.ended - call.began for call in load.calls)
    report.check(fault, "slowest call", f"{slowest:.2f} s", "≤ 5 s", slowest <= 5, f"a stop takes {max(stops):.1f} s at most")
    check_ledger(report, fault, load, yard.entries(load.name + "-"))


async def kill(yard, report, options):
    """kill -9 of one replica while every call is journaled."""
    kills = 1 if options.quick else 3
    fault = f"kill -9, {kills}×"
    await yard.restart_with_journal("always")
    gone = []
    # Calls take a moment, so that some are in flight when the replica dies.
    async with Load(yard.port, options.clients, options.pause, delay_ms=100) as load:
        for number in range(kills):
            await asyncio.sleep(2 if number == 0 else NGINX_FAIL_TIMEOUT + 2)
            replica = yard.replicas[number % 2]
            began = time.monotonic()
            replica.kill()
            gone.append((began, time.monotonic()))
            await asyncio.sleep(2)
            await replica.start()
    failed = load.failed()
    in_flight = sum(any(call.began <= end and call.ended >= begin for begin, end in gone) for call in load.calls)
    later = [call for call in failed if not any(call.began <= end and call.ended >= begin for begin, end in gone)]
    report.check(fault, f"failed calls that were not in flight, of {len(load.calls)}", len(later), 0, not later, later[0].detail[:200] if later else "")
    report.check(fault, f"failed calls, of {in_flight} in flight", len(failed), f"1 to {in_flight}", 0 < len(failed) <= in_flight, load.summary())
    entries = yard.entries(load.name + "-")
    check_ledger(report, fault, load, entries)
    journal = dict(query(yard.postgres.url, f"SELECT redacted_arguments::json ->> 'entry', state FROM steps WHERE redacted_arguments LIKE '%\"{load.name}-%'"))
    unrecorded = [entry for entry in entries if entry not in journal]
    report.check(fault, f"executed calls that the journal does not know, of {len(entries)}", len(unrecorded), 0, not unrecorded)
    executed = set(entries)
    happened = [call for call in failed if call.entry in executed]
    denied = [call for call in happened if journal.get(call.entry) not in ("started", "unknown", "done")]
    states = Counter(journal.get(call.entry, "none") for call in failed)
    report.check(fault, f"failed calls that were executed although the journal says they were not, of {len(happened)}", len(denied), 0, not denied,
                 "in the journal: " + ", ".join(f"{count} {state}" for state, count in states.items()))
    open_steps = {entry for entry, state in journal.items() if state in ("started", "unknown")}
    unknown_after = await time_until_unknown(yard, open_steps)
    listed = await open_calls(yard)
    report.check(fault, f"calls that may have happened, listed by `runs list --unfinished`, of {len(open_steps)}", len(open_steps & listed), len(open_steps),
                 open_steps <= listed)
    seconds = "–" if unknown_after is None else f"{unknown_after - gone[-1][1]:.1f} s"
    limit = CALL_LEASE + 5
    report.check(fault, "all of them listed by `runs unknown`, after the kill", seconds, f"≤ {limit} s", unknown_after is not None and unknown_after - gone[-1][1] <= limit)
    await yard.restart_with_journal("runs")


async def time_until_unknown(yard, entries):
    """When `runs unknown` lists all these calls; `None` if it does not."""
    began = time.monotonic()
    while time.monotonic() - began < CALL_LEASE + 10:
        if entries <= {entry_of(step) for step in await yard.cli_json("runs", "unknown")}:
            return time.monotonic()
        await asyncio.sleep(0.5)
    return None


async def open_calls(yard):
    """The entries of calls that `toolyard runs` shows as unfinished."""
    entries = set()
    for run in await yard.cli_json("runs", "list", "--unfinished", "--limit", "10000"):
        if run["kind"] != "call":
            continue
        shown = await yard.cli_json("runs", "show", run["id"])
        entries |= {entry_of(step) for step in shown["steps"]}
    return entries


def entry_of(step):
    return json.loads(step["redacted_arguments"])["entry"]


class Verifier:
    """Runs `toolyard audit verify` again and again, and counts verdicts."""

    def __init__(self, yard, times):
        self.yard, self.left, self.verdicts, self.alarms = yard, times, Counter(), []

    async def run(self, times):
        for _ in range(min(times, self.left)):
            self.left -= 1
            code, out, err = await self.yard.cli("audit", "verify")
            text = (out + err).strip()
            if code == 0 and "none missing or altered" in text:
                self.verdicts["intact"] += 1
            elif "corrupt" in text:
                self.verdicts["corrupt"] += 1
                self.alarms.append(text)
            else:
                # The store is away: an error, not a verdict.
                self.verdicts["store unavailable"] += 1
            await asyncio.sleep(0.1)


async def postgres_outage(yard, report, options):
    """PostgreSQL stopped under load, and `audit verify` 50 times before, during and after."""
    outage = 6 if options.quick else 20
    fault = f"PostgreSQL stopped {outage} s"
    before, lost_before, _ = await yard.audit_counts()
    executed_before = len(yard.entries())
    verifier = Verifier(yard, 50)
    async with Load(yard.port, options.clients, options.pause) as load:
        await verifier.run(17)
        await yard.postgres.stop("immediate")
        # At once, because each waits for the store.
        verifying = asyncio.gather(*(verifier.run(2) for _ in range(8)))
        starting = asyncio.create_task(start_runs_without_store(yard))
        await asyncio.sleep(outage)
        await yard.postgres.start()
        back = time.monotonic()
        await verifying
        refused, answers = await starting
        await verifier.run(50)
        await asyncio.sleep(max(0, 3 - (time.monotonic() - back)))
    executed = len(yard.entries()) - executed_before

    async def is_complete():
        nonlocal records, lost, repeated
        records, lost, repeated = await yard.audit_counts()
        return records - before + lost - lost_before >= executed

    records = lost = repeated = 0
    try:
        catch_up = f"complete {await wait_until(is_complete, 30, 'the audit log is complete'):.1f} s after the load"
    except TimeoutError:
        catch_up = "not complete within 30 s"
    records, lost = records - before, lost - lost_before
    failed = len(load.failed())
    report.check(fault, f"failed calls, of {len(load.calls)}", failed, 0, failed == 0, load.summary())
    check_ledger(report, fault, load, yard.entries(load.name + "-"))
    report.check(fault, "audit records + recorded losses", f"{records} + {lost}", executed, records + lost == executed, catch_up)
    report.check(fault, f"call ids that occur twice, of {records + before}", repeated, 0, repeated == 0)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in verifier.verdicts.items())
    report.check(fault, f"false alarms of `audit verify` in {sum(verifier.verdicts.values())} ({verdicts})", len(verifier.alarms), 0, not verifier.alarms,
                 verifier.alarms[0] if verifier.alarms else "")
    slowest = max(seconds for seconds, _ in answers)
    kinds = ", ".join(sorted({str(status) for _, status in answers}))
    report.check(fault, "`POST /runs` without the store: slowest answer (status)", f"{slowest:.1f} s ({kinds})", "≤ 5 s (503)", slowest <= 5 and kinds == "503")
    late = yard.entries(refused)
    report.check(fault, "runs that were refused and ran later", len(late), 0, not late)


async def start_runs_without_store(yard):
    """Asks for runs while the store is away; the time and status of each answer."""
    name, answers = f"refused{int(time.time())}", []

    async def ask(number):
        began = time.monotonic()
        try:
            body = {"question": f"record {name}-{number} 1 0"}
            status, _, _ = await Connection(yard.port).request("POST", "/runs", [("Connection", "close")], body, timeout=20)
        except Broken as error:
            status = str(error)
        answers.append((time.monotonic() - began, status))

    await asyncio.gather(*(ask(number) for number in range(4)))
    return name, answers
