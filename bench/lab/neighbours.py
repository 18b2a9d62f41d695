"""Healthy servers beside broken ones: while 5 of 20 upstream servers hang, flood or answer with 8 MiB, are calls of the others slower?

Phases with and without broken servers alternate, because the machine is noisy; each pair gives one ratio of the 99th percentiles.
"""

import asyncio
import itertools
import json
import os
import random
import statistics
import time

from stack import Lab
from topology import BY_NAME, SERVERS
from wire import Client

BROKEN = {"h03": "hang", "h04": "flood", "h05": "huge", "h06": "hang", "h10": "flood"}
HEALTHY = [server for server in SERVERS if server.name not in BROKEN and server.kind != "slow" and server.isolation == "shared"]
PHASE_SECONDS, PAIRS, CLIENTS, PAUSE = 12, 5, 8, 0.08
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
        return own[min(len(own) - 1, int(len(own) * share))] * 1000, len(own)


def set_modes(lab, modes):
    for name in BROKEN:
        path = os.path.join(lab.folder, "ledgers", f"{name}.mode")
        if name in modes:
            with open(path, "w") as file:
                file.write(modes[name])
        elif os.path.exists(path):
            os.remove(path)


async def measure(options):
    lab = Lab(options.binary)
    pairs, rss = [], []
    async with lab:
        measured = Measured(lab)
        tasks = [asyncio.create_task(measured.healthy(number)) for number in range(CLIENTS)]
        tasks += [asyncio.create_task(measured.at_broken(name, number)) for name in BROKEN for number in range(2)]
        await asyncio.sleep(5)
        for _ in range(PAIRS):
            pair = []
            for modes in ({}, BROKEN):
                set_modes(lab, modes)
                if not modes:
                    # Servers that flood or hang keep their connections until the deadline of the call.
                    await asyncio.sleep(6)
                await asyncio.sleep(SETTLE_SECONDS)
                start = time.monotonic()
                await asyncio.sleep(PHASE_SECONDS)
                pair.append((measured.percentile(start, time.monotonic()), measured.percentile(start, time.monotonic(), 0.5)))
            (before, count), (during, _) = pair[0][0], pair[1][0]
            pairs.append({"p99_before_ms": before, "p99_during_ms": during, "p50_before_ms": pair[0][1][0], "p50_during_ms": pair[1][1][0], "ratio": during / before, "calls": count})
            print(f"p99 {before:.1f} ms -> {during:.1f} ms (x{during / before:.2f}), p50 {pair[0][1][0]:.1f} -> {pair[1][1][0]:.1f} ms, {count} calls in a phase", flush=True)
        set_modes(lab, {})
        measured.is_over = True
        await asyncio.gather(*tasks)
        rss = [sample["kib"] for sample in lab.memory]
        await lab.stop_gateways()
    ratio = statistics.median(pair["ratio"] for pair in pairs)
    is_reached = ratio <= MAX_RATIO and not measured.outcomes
    print(f"healthy servers beside 5 broken ones: p99 x{ratio:.2f} in the median of {PAIRS} pairs (wanted <= {MAX_RATIO}); "
          f"failed calls of healthy servers: {measured.outcomes or 'none'}; largest gateway {max(rss) // 1024} MiB")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"pairs": pairs, "ratio": ratio, "failed": measured.outcomes, "reached": is_reached}, file, indent=1)
    lab.remove()
    return 0 if is_reached else 1
