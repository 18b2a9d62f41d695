"""Judges what happened, from records alone: calls of clients, ledgers of servers, runs, ends of processes. Does no I/O.

A violation is a dict with `kind`, the ids or names that it is about, and `detail`.
"""

from collections import Counter, defaultdict
from signal import SIGTERM
from statistics import median

from topology import BY_NAME, DEADLINE, LATE_MARGIN

MAX_MEMORY_GROWTH = 0.10
# A gateway that starts in the middle of faults needs this long until it has all its tools and instances.
WARM_UP_SECONDS, MIN_MEMORY_SECONDS = 60, 60
IMPOSSIBLE = ("tool_not_approved", "tool_not_found", "source_not_found", "tool_ambiguous", "call_denied", "invalid_arguments", "protocol_error")
# After the last fault: leases end, circuit breakers close, servers start again.
RECOVERY_SECONDS = 8
# Kinds that say that nothing was executed.
NOTHING_EXECUTED = ("session_lost", "source_unavailable", "circuit_open", "store_unavailable")


def violation(kind, ids, detail):
    return {"kind": kind, "ids": ids, "detail": detail}


def check_all(records):
    """`records` has calls, ledger, runs, events, memory, nginx, killed_pids, orphans, and panics; absent ones are empty."""
    calls, ledger = records.get("calls", []), records.get("ledger", [])
    return [
        *lost(calls, ledger),
        *repeated(ledger),
        *crossed(calls),
        *late(calls, records.get("nginx", []), records.get("events", []), records.get("gateway_of_port", {})),
        *false_refusals(calls, ledger),
        *wrong_refusals(calls),
        *not_recovered(calls, records.get("events", [])),
        *[found for found in state_losses(calls, ledger, records.get("killed_pids", {})) if found["kind"] != "state lost with its server"],
        *crashes(records.get("events", []), records.get("panics", [])),
        *orphans(records.get("orphans", [])),
        *memory_growth(records.get("memory", [])),
        *claims(records.get("runs", []), ledger),
    ]


def lost(calls, ledger):
    """Success without an effect, or no response at all."""
    executed = {entry["id"] for entry in ledger}
    found = []
    for call in calls:
        if call["outcome"] == "result" and call.get("is_own") and call["id"] not in executed:
            found.append(violation("lost", [call["id"]], f"{call['server']} answered with success, its ledger has no such call"))
        if call["outcome"] == "no_response":
            found.append(violation("lost", [call["id"]], f"no response within {call['end'] - call['start']:.1f} s"))
    return found


def repeated(ledger):
    """An effect that happened twice, at a server whose tool is not idempotent."""
    times = Counter((entry["id"], entry["server"]) for entry in ledger if not BY_NAME[entry["server"]].is_repeatable)
    entries = defaultdict(list)
    for entry in ledger:
        entries[entry["id"]].append(f"pid {entry['pid']} at {entry['at']:.3f}")
    return [violation("repeated", [call_id], f"{server}: {count} times: {', '.join(entries[call_id])}") for (call_id, server), count in times.items() if count > 1]


def crossed(calls):
    """The answer of another call."""
    found = [violation("crossed", [call["id"]], f"{call['server']}: got the result of {call.get('answer', call.get('text'))}")
             for call in calls if call["outcome"] == "result" and not call.get("is_own")]
    return found + [violation("crossed", [call["id"]], f"message of another request: {call.get('text')}") for call in calls if call["outcome"] == "crossed_message"]


def stop_windows(events):
    """For each gateway the times in which it was stopped."""
    windows = defaultdict(list)
    for event in events:
        if event.get("fault") == "gateway_stop" and "stopped" in event:
            windows[event["target"]].append((event["stopped"], event["continued"]))
    return windows


def overlaps(windows, start, end):
    return any(begin < end and start < until for begin, until in windows)


def late(calls, nginx, events, gateway_of_port):
    """Answered after the deadline, by the clock of nginx, although the gateway was not stopped and had a processor when it needed one."""
    seconds_of = {entry["call"]: entry for entry in nginx}
    windows = stop_windows(events)
    stalls = [(event["at"] - event["seconds"], event["at"]) for event in events if event["event"] == "machine_stalled"]
    # Of any gateway: the owner of a session may be another one than that which answers.
    stalls += [(event["since"], event["at"]) for event in events if event["event"] == "gateway_starved"]
    found = []
    for call in calls:
        entry = seconds_of.get(call["id"])
        if entry is None or entry["seconds"] <= DEADLINE + LATE_MARGIN:
            continue
        # A request that could not be connected to one gateway went to the next one: the last is the one that answered.
        gateways = [gateway_of_port.get(address.strip(), "?") for address in entry["gateway"].split(",")]
        if any(overlaps(windows[name], call["start"], call["end"]) for name in gateways) or overlaps(stalls, call["start"], call["end"]):
            continue
        found.append(violation("late", [call["id"]], f"{call['server']} through {gateways}: {entry['seconds']:.2f} s, outcome {call['outcome']}"))
    return found


def false_refusals(calls, ledger):
    """The error says that nothing was sent, and the ledger says otherwise. A repeatable call may fail so after an earlier attempt was executed."""
    executed = {entry["id"] for entry in ledger if not BY_NAME[entry["server"]].is_repeatable}
    return [violation("false refusal", [call["id"]], f"{call['server']}: {call['outcome']}, but it was executed: {call.get('text', '')[:160]}")
            for call in calls if call["outcome"] in NOTHING_EXECUTED and call["id"] in executed]


def wrong_refusals(calls):
    """Refusals for reasons that do not exist here: every tool is approved and allowed, and every argument is valid."""
    return [violation("wrong refusal", [call["id"]], f"{call['server']}, {call['caller']}: {call['outcome']}: {call.get('text', '')[:200]}")
            for call in calls if call["outcome"] in IMPOSSIBLE]


def not_recovered(calls, events):
    """Failures some time after the last fault, when everything runs again."""
    over = next((event["at"] for event in events if event["event"] == "faults_over"), None)
    if over is None:
        return []
    # Calls that take longer than the deadline on purpose fail always; a lost session is told at the next call, however late that is.
    return [violation("not recovered", [call["id"]], f"{call['server']}, {call['caller']}, {call['start'] - over:.1f} s after the last fault: {call['outcome']}: {call.get('text', '')[:200]}")
            for call in calls if call["start"] > over + RECOVERY_SECONDS and call["outcome"] not in ("result", "session_lost") and not call.get("is_too_slow")]


def state_losses(calls, ledger, killed_pids):
    """Counters that went backwards or began again, without an error `session_lost` to this caller since its last answer.

    If the laboratory killed the process that had the state (`killed_pids` has the times), the kind is `state lost with its server`: documented, and no violation.
    """
    pid_of = {entry["instance"]: entry["pid"] for entry in ledger}
    seen, told, found = {}, set(), []
    for call in sorted((call for call in calls if BY_NAME[call["server"]].is_counter), key=lambda call: call["start"]):
        key = (call["caller"], call["server"])
        if call["outcome"] == "session_lost":
            told.add(key)
        if call["outcome"] != "result" or not call.get("is_own"):
            continue
        before = seen.get(key)
        seen[key] = (call["instance"], call["count"], call["id"])
        was_told = key in told
        told.discard(key)
        if before is None or was_told:
            continue
        if before[0] != call["instance"]:
            is_ours = killed_pids.get(pid_of.get(before[0]), float("inf")) <= call["end"]
            detail = f"{call['server']}, {call['caller']}: instance {before[0]} (pid {pid_of.get(before[0])}) count {before[1]} became {call['instance']} (pid {pid_of.get(call['instance'])}) count {call['count']}"
            found.append(violation("state lost with its server" if is_ours else "silent loss of state", [before[2], call["id"]], detail))
        elif call["count"] <= before[1]:
            found.append(violation("silent loss of state", [before[2], call["id"]], f"{call['server']}, {call['caller']}: {before[1]} was followed by {call['count']}"))
    return found


def is_failed_stop(event):
    """The gateway was told to stop, and did so with an exit code other than 0: it reports that it could not write to the store."""
    return event["event"] == "gateway_ended" and SIGTERM in event.get("signals", ()) and event["code"] > 0


def crashes(events, panics):
    """A gateway that ended by itself or by a signal of somebody else, hung at its end, or panicked."""
    found = []
    for event in events:
        # A gateway that cannot reach PostgreSQL or NATS at its start says so and ends; the supervisor tries again.
        if event["event"] == "gateway_ended" and not event["is_ours"] and not is_failed_stop(event) and (event["has_served"] or event["code"] < 0):
            found.append(violation("crash", [event["gateway"]], f"pid {event['pid']} ended with {event['code']}: {event['log'][-400:]}"))
        if event["event"] == "gateway_hangs":
            found.append(violation("crash", [event["gateway"]], event["problem"]))
    return found + [violation("crash", [name], f"panic: {line}") for name, line in panics]


def orphans(left):
    return [violation("orphan", [pid], f"alive after all gateways ended: {text}") for pid, text in left]


def memory_growth(samples):
    """The median of the last fifth of a process lifetime against the first fifth, both after the warm-up."""
    by_process = defaultdict(list)
    for sample in samples:
        by_process[(sample["gateway"], sample["pid"])].append(sample)
    found = []
    for (gateway, pid), own in by_process.items():
        growth = growth_of(own)
        if growth and growth["ratio"] > 1 + MAX_MEMORY_GROWTH:
            found.append(violation("memory", [gateway], f"pid {pid}: {growth['first']} KiB became {growth['last']} KiB in {growth['seconds']:.0f} s"))
    return found


def growth_of(samples):
    """`None` for lifetimes that are too short to be judged."""
    start, end = samples[0]["at"], samples[-1]["at"]
    warm = start + WARM_UP_SECONDS
    if end - warm < MIN_MEMORY_SECONDS:
        return None
    fifth = (end - warm) / 5
    first = median(sample["kib"] for sample in samples if warm <= sample["at"] <= warm + fifth)
    last = median(sample["kib"] for sample in samples if sample["at"] >= end - fifth)
    return {"first": first, "last": last, "ratio": last / first, "seconds": end - warm}


def claims(runs, ledger):
    """Runs: a step that says it is done without an effect, and an answered run with a step whose effect is missing."""
    executed, found = {entry["id"] for entry in ledger}, []
    for run in runs:
        for step in run["steps"]:
            if step["state"] == "done" and step["effect"] not in executed:
                found.append(violation("claimed effect", [run["run"], step["effect"]], f"step {step['id']} is done, the ledger has no such call"))
        missing = [effect for effect in run["wanted"] if effect not in executed]
        if run["state"] == "answered" and missing:
            found.append(violation("claimed effect", [run["run"], *missing], "the run is answered, the ledger lacks these effects"))
        if run["state"] in ("running", "unreachable"):
            found.append(violation("lost", [run["run"]], f"the run did not end: {run['state']}"))
    return found


def summary(records):
    """Numbers for the report."""
    calls = records.get("calls", [])
    outcomes = Counter(call["outcome"] for call in calls)
    documented = [found for found in state_losses(calls, records.get("ledger", []), records.get("killed_pids", {})) if found["kind"] == "state lost with its server"]
    growth = {}
    by_process = defaultdict(list)
    for sample in records.get("memory", []):
        by_process[(sample["gateway"], sample["pid"])].append(sample)
    for (gateway, pid), own in by_process.items():
        if (judged := growth_of(own)) is not None:
            growth[f"{gateway} {pid}"] = {**judged, "ratio": round(judged["ratio"], 3), "seconds": round(judged["seconds"])}
    return {
        "calls": len(calls),
        "calls_by_protocol": dict(Counter(call["protocol"] for call in calls)),
        "outcomes": dict(outcomes.most_common()),
        "effects": len(records.get("ledger", [])),
        "runs": dict(Counter(run["state"] for run in records.get("runs", []))),
        "counter_answers": sum(call["outcome"] == "result" and BY_NAME[call["server"]].is_counter for call in calls),
        "session_lost_told": outcomes["session_lost"],
        "state_lost_with_its_server": len(documented),
        "stops_with_an_error": sum(is_failed_stop(event) for event in records.get("events", [])),
        "starts_refused": sum(event["event"] == "gateway_ended" and not event["is_ours"] and not event["has_served"] for event in records.get("events", [])),
        "gateway_starvations": sum(event["event"] == "gateway_starved" for event in records.get("events", [])),
        "machine_stalls": sum(event["event"] == "machine_stalled" for event in records.get("events", [])),
        "memory": growth,
    }
