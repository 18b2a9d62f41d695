"""The plan of faults: a pure function of the seed, the length and the rates."""

import hashlib
import json
import random

from topology import GATEWAYS, HTTP, NATS_NODES, STDIO, WORKER_SERVERS, worker_names

# Faults of one connection or one upstream server, many per second: (kind, weight).
SMALL = (
    ("reset", 14), ("cut", 10), ("cut_response", 10), ("cut_request", 8), ("drop_response", 12), ("garbage", 10), ("slow", 10),
    ("hold", 5), ("refuse", 6), ("server_garbage", 8), ("server_die", 5), ("server_kill", 4), ("server_stop", 6),
)
# Faults of a process of the platform, one every few seconds.
LARGE = (
    ("gateway_kill", 5), ("gateway_stop", 6), ("nats_kill", 4), ("nats_stop", 4), ("postgres_backend_kill", 1), ("postgres_backend_stop", 3),
    ("postgres_restart_fast", 2), ("postgres_restart_immediate", 2), ("nats_restart_all", 1), ("rolling_restart", 2), ("full_disk", 3),
)
# … if there are workers.
OF_WORKERS = (("worker_kill", 4), ("worker_stop", 3), ("worker_restart", 3))
# Which connections a fault of the proxy meets: those to HTTP servers most often, because they carry calls.
PROXY_TARGETS = (("http", 6), ("postgres", 2), ("nats", 2))
SERVER_FAULTS = ("server_garbage", "server_die", "server_kill", "server_stop")
MAX_STOP_SECONDS = 8.0
# Gateway `c` lives until the last part of the plan, so that the growth of its memory can be judged.
LONG_LIVED = "c"
LONG_LIFE = 0.85


def fault_window(seconds):
    """When the first fault may begin, and the last one: the load alone is seen before, and the recovery after it."""
    margin = min(5.0, seconds * 0.1)
    return margin, seconds - margin


def make_plan(seed, seconds, small_per_second, large_every, can_fill_disk=True, only=None, workers=0, has_upgrade=False):
    """Faults in order of time, each with a number."""
    rng, faults = random.Random(seed), []
    small = [entry for entry in SMALL if not only or entry[0] in only]
    large = [entry for entry in LARGE + (OF_WORKERS if workers else ()) if (not only or entry[0] in only) and (can_fill_disk or entry[0] != "full_disk")]
    first, last = fault_window(seconds)
    names = worker_names(workers)
    at = first
    while small and small_per_second > 0 and (at := at + rng.expovariate(small_per_second)) < last:
        faults.append(small_fault(rng, at, pick(rng, small), names))
    at = first
    while large and large_every > 0 and (at := at + rng.expovariate(1 / large_every)) < last:
        faults.append(large_fault(rng, at, pick(rng, large), at > first + (last - first) * LONG_LIFE, names))
    if has_upgrade:
        faults.append({"at": round((first + last) / 2, 3), "fault": "rolling_upgrade", "targets": [*GATEWAYS, *names]})
    return [{"number": number, **fault} for number, fault in enumerate(sorted(faults, key=lambda fault: fault["at"]))]


def pick(rng, weighted):
    return rng.choices([name for name, _ in weighted], [weight for _, weight in weighted])[0]


def small_fault(rng, at, kind, workers):
    fault = {"at": round(at, 3), "fault": kind, "choice": rng.random()}
    if kind in SERVER_FAULTS:
        fault["target"] = rng.choice(STDIO + HTTP + (tuple(server.name for server in WORKER_SERVERS) if workers else ()))
        if kind == "server_stop":
            fault["seconds"] = stop_seconds(rng)
        return fault
    group = pick(rng, PROXY_TARGETS)
    if group == "http":
        fault["target"] = rng.choice(HTTP)
    elif group == "postgres":
        fault["target"] = f"postgres-{rng.choice(GATEWAYS)}"
    else:
        fault["target"] = f"nats-{rng.choice(GATEWAYS + workers)}-{rng.choice(NATS_NODES)}"
    if kind == "slow":
        fault |= {"seconds": round(rng.uniform(0.2, 2), 2), "ms": rng.choice((5, 20, 100, 400)), "bytes_per_second": rng.choice((0, 0, 4000, 40000))}
    if kind in ("hold", "refuse"):
        fault["seconds"] = round(rng.uniform(0.1, 1.5), 2)
    return fault


def stop_seconds(rng):
    """Mostly short, as pauses of a machine are; up to the longest."""
    return round(min(MAX_STOP_SECONDS, 0.1 + rng.expovariate(0.6)), 2)


def large_fault(rng, at, kind, is_last_part, workers):
    mortal = GATEWAYS if is_last_part else tuple(name for name in GATEWAYS if name != LONG_LIVED)
    fault = {"at": round(at, 3), "fault": kind, "choice": rng.random()}
    if kind == "gateway_kill":
        fault |= {"target": rng.choice(mortal), "seconds": round(rng.uniform(0.1, 3), 2)}
    elif kind == "gateway_stop":
        fault |= {"target": rng.choice(GATEWAYS), "seconds": stop_seconds(rng)}
    elif kind in ("nats_kill", "nats_stop"):
        fault |= {"target": rng.choice(NATS_NODES), "seconds": stop_seconds(rng)}
    elif kind in ("worker_kill", "worker_stop", "worker_restart"):
        fault |= {"target": rng.choice(workers), "seconds": stop_seconds(rng)}
    elif kind == "postgres_backend_stop":
        fault["seconds"] = stop_seconds(rng)
    elif kind == "nats_restart_all":
        fault["seconds"] = round(rng.uniform(0.2, 3), 2)
    elif kind == "rolling_restart":
        fault["targets"] = [*mortal, *workers]
    elif kind == "full_disk":
        fault |= {"target": rng.choice(GATEWAYS), "seconds": round(rng.uniform(1, 6), 2)}
    return fault


def fingerprint(plan):
    """The same for the same plan."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:12]
