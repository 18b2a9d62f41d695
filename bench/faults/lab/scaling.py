"""Throughput of 1, 2 and 4 gateways with a tool that takes 20 ms, with the same number of connections per gateway, so that the processor is not full."""

import asyncio
import itertools
import json
import statistics
import time

from client import Client
from stack import Lab
from topology import BY_NAME

GATEWAYS = ("a", "b", "c", "d")
CONNECTIONS_PER_GATEWAY, PHASE_SECONDS, ROUNDS, TOOL_MS = 2, 8, 4, 20
MIN_SHARE, MAX_BUSY = 0.9, 0.85
SERVER = BY_NAME["h06"]


def busy_share(before, after):
    """The share of processor time that was not idle, of the whole machine."""
    total, idle = (sum(after) - sum(before)), (after[3] + after[4] - before[3] - before[4])
    return 1 - idle / total


def processor_times():
    with open("/proc/stat") as file:
        return [int(part) for part in file.readline().split()[1:9]]


async def throughput(lab, count, numbers):
    """Calls per second of `count` gateways; a call that fails counts as none."""
    end, done, failed = time.monotonic() + PHASE_SECONDS, 0, 0

    async def connection(gateway, number):
        nonlocal done, failed
        client = Client(gateway.port, f"scaling-{number}", "modern")
        while time.monotonic() < end:
            outcome, _, _ = await client.call(SERVER.tool, {"id": f"t{next(numbers)}", "delay_ms": TOOL_MS}, "scaling", 20)
            done, failed = done + (outcome == "result"), failed + (outcome != "result")
        client.http.close()

    gateways = list(lab.gateways.values())[:count]
    before = processor_times()
    await asyncio.gather(*(connection(gateway, number) for gateway in gateways for number in range(CONNECTIONS_PER_GATEWAY)))
    return done / PHASE_SECONDS, failed, busy_share(before, processor_times())


async def measure(options):
    lab, numbers, rounds = Lab(options.binary, gateways=GATEWAYS, is_direct=True), itertools.count(), []
    async with lab:
        await throughput(lab, 4, numbers)
        for _ in range(ROUNDS):
            figures = {}
            for count in (1, 2, 4):
                rate, failed, busy = await throughput(lab, count, numbers)
                figures[count] = {"per_second": rate, "failed": failed, "busy": busy}
            rounds.append(figures)
            print(", ".join(f"{count} gateways: {one['per_second']:.0f}/s ({one['busy']:.0%} busy, {one['failed']} failed)" for count, one in figures.items()), flush=True)
        await lab.stop_gateways()
    shares = {count: statistics.median(one[count]["per_second"] / (one[1]["per_second"] * count) for one in rounds) for count in (2, 4)}
    is_reached = all(share >= MIN_SHARE for share in shares.values())
    busy = statistics.median(one[4]["busy"] for one in rounds)
    if busy > MAX_BUSY:
        print(f"not conclusive: the machine was {busy:.0%} busy, so that the processor limits the throughput (wanted <= {MAX_BUSY:.0%})")
    print(f"share of linear: 2 gateways {shares[2]:.2f}, 4 gateways {shares[4]:.2f} (wanted >= {MIN_SHARE}), medians of {ROUNDS} rounds")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"rounds": rounds, "shares": shares, "busy": busy, "reached": is_reached}, file, indent=1)
    lab.remove()
    return 0 if is_reached else 1
