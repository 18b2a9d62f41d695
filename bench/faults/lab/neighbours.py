"""Healthy servers beside broken ones: while 5 of 20 upstream servers hang, flood or answer with 8 MiB, are calls of the others slower?

Phases with and without broken servers alternate, because the machine is noisy; each pair gives one ratio of the 99th percentiles. The broken
servers need processor time, too: a machine that is busy says little about the gateways.
"""

import asyncio
import itertools
import json
import os
import random
import statistics
import time

from client import Client
from scaling import busy_share, processor_times
from stack import Lab
from topology import BY_NAME, DEADLINE, SERVERS

BROKEN = {"h03": "hang", "h04": "flood", "h05": "huge", "h06": "hang", "h10": "flood"}
# What is wrong in a phase: one thing with all five, and a mixture, which is what the goal is about.
WRONG = {"hang": dict.fromkeys(BROKEN, "hang"), "flood": dict.fromkeys(BROKEN, "flood"), "huge": dict.fromkeys(BROKEN, "huge"), "mixed": BROKEN}
HEALTHY = [server for server in SERVERS if server.name not in BROKEN and server.kind != "slow" and server.isolation == "shared"]
PHASE_SECONDS, PAIRS, CLIENTS, PAUSE = 8, 2, 8, 0.08
# Not measured: connections of broken servers open and close.
SETTLE_SECONDS = 2
MAX_RATIO = 1.10


class Measured:
    def __init__(self, lab):
        self.lab, self.times, self.outcomes, self.is_over = lab, [], {}, False
        self.numbers = itertools.count()

    async def healthy(self, number):
        client, rng = Client(self.lab.port, f"healthy-{number % 2}", ("modern", "legacy", "api")[number % 3]), random.Random(number)
        while not self.is_over:
            server, start = rng.choice(HEALTHY), time.monotonic()
            outcome, text, _ = await client.call(server.tool, {"id": f"n{next(self.numbers)}"}, "healthy", 20)
            self.times.append((start, time.monotonic() - start))
            if outcome != "result":
                self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
            await asyncio.sleep(rng.uniform(0.5, 1.5) * PAUSE)
        client.http.close()

    async def at_broken(self, name, number):
        """Keeps one call at a broken server all the time; at the same servers while they are healthy, at a low rate."""
        client = Client(self.lab.port, f"unlucky-{number}", "modern")
        while not self.is_over:
            outcome, _, _ = await client.call(BY_NAME[name].tool, {"id": f"b{next(self.numbers)}"}, "broken", 20)
            await asyncio.sleep(0.5)
        client.http.close()

    def percentile(self, start, end, share=0.99):
        own = sorted(seconds for at, seconds in self.times if start <= at <= end)
        return own[min(len(own) - 1, int(len(own) * share))] * 1000


def set_modes(lab, modes):
    for name in BROKEN:
        path = os.path.join(lab.folder, "ledgers", f"{name}.mode")
        if name in modes:
            with open(path, "w") as file:
                file.write(modes[name])
        elif os.path.exists(path):
            os.remove(path)


async def one_pair(lab, measured, modes):
    """A phase without and one with broken servers."""
    figures = {}
    for name, current in (("before", {}), ("during", modes)):
        set_modes(lab, current)
        # Servers that flood or hang keep their connections until the deadline of the call.
        await asyncio.sleep(SETTLE_SECONDS if current else SETTLE_SECONDS + DEADLINE)
        start, times = time.monotonic(), processor_times()
        await asyncio.sleep(PHASE_SECONDS)
        for share in (50, 99):
            figures[f"p{share}_{name}_ms"] = measured.percentile(start, time.monotonic(), share / 100)
        figures[f"busy_{name}"] = busy_share(times, processor_times())
    return {**figures, "ratio": figures["p99_during_ms"] / figures["p99_before_ms"]}


async def measure(options):
    lab = Lab(options.binary, is_direct=True)
    pairs, rss = [], []
    async with lab:
        measured = Measured(lab)
        tasks = [asyncio.create_task(measured.healthy(number)) for number in range(CLIENTS)]
        tasks += [asyncio.create_task(measured.at_broken(name, number)) for name in BROKEN for number in range(2)]
        await asyncio.sleep(5)
        for _ in range(PAIRS):
            for wrong, modes in WRONG.items():
                pair = await one_pair(lab, measured, modes)
                pairs.append({"wrong": wrong, **pair})
                print(f"{wrong}: p99 {pair['p99_before_ms']:.1f} ms -> {pair['p99_during_ms']:.1f} ms (x{pair['ratio']:.2f}), p50 {pair['p50_before_ms']:.1f} -> "
                      f"{pair['p50_during_ms']:.1f} ms, machine {pair['busy_before']:.0%} -> {pair['busy_during']:.0%} busy", flush=True)
        set_modes(lab, {})
        measured.is_over = True
        await asyncio.gather(*tasks)
        rss = [sample["kib"] for sample in lab.memory]
        await lab.stop_gateways()
    ratios = {wrong: statistics.median(pair["ratio"] for pair in pairs if pair["wrong"] == wrong) for wrong in WRONG}
    ratio = ratios["mixed"]
    is_reached = ratio <= MAX_RATIO and not measured.outcomes
    print(f"healthy servers beside 5 broken ones: p99 {', '.join(f'{wrong} x{one:.2f}' for wrong, one in ratios.items())}, medians of {PAIRS} pairs (wanted <= {MAX_RATIO} for mixed); "
          f"failed calls of healthy servers: {measured.outcomes or 'none'}; largest gateway {max(rss) // 1024} MiB")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"pairs": pairs, "ratios": ratios, "failed": measured.outcomes, "reached": is_reached}, file, indent=1)
    lab.remove()
    return 0 if is_reached else 1
