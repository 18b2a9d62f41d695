#!/usr/bin/env python3
"""Leak trial: many callers use one gateway at the same time, and every byte that one receives is searched for words of others.

Exits with 1 if a canary crossed, with 2 if too many operations failed for the trial to prove anything.
"""

import argparse
import asyncio
import json
import os
import sys
import time

# What the trials share; before the imports that need it.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common"))

from caller import Caller, Findings
from canaries import Canaries
from deployment import TOKEN, Deployment
from operations import Board

# A trial in which more operations fail proves little.
MAX_FAILED_SHARE = 0.01


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the toolyard to try")
    parser.add_argument("--callers", type=int, default=100, help="callers with an API key each, at most 999")
    parser.add_argument("--calls", type=int, default=100, help="operations of each caller; most are one request, some are many")
    parser.add_argument("--plant", choices=["server", "key"], help="plant a leak: a server that mixes up texts, or one key for two callers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


async def trial(options):
    canaries, findings = Canaries(options.seed), Findings()
    leak_every = 7 if options.plant == "server" else 0
    async with Deployment(options.binary, leak_every) as deployment:
        board = Board(deployment.is_isolated)
        names = [f"caller{number}" for number in range(options.callers)]
        keys = [deployment.add_caller(name) for name in names]
        if options.plant == "key":
            keys[1] = keys[0]
        callers = [Caller(number, name, key, deployment, canaries, board, findings) for number, (name, key) in enumerate(zip(names, keys))]
        operator = Caller(options.callers, "operator", TOKEN, deployment, canaries, board, findings, is_operator=True)
        # The operator's data is there first, so that callers could find it.
        await operator.work(min(options.calls, 40))
        began = time.monotonic()
        await asyncio.gather(*(caller.work(options.calls) for caller in callers), operator.work(min(options.calls, 40)))
        seconds = time.monotonic() - began
    return {
        "callers": options.callers,
        "calls_per_caller": options.calls,
        "isolated_server": board.is_isolated,
        "planted": options.plant,
        "seconds": round(seconds, 1),
        "operations": dict(findings.operations.most_common()),
        "operations_in_all": findings.operations.total(),
        "responses": sum(caller.responses for caller in callers),
        "responses_with_own_canaries": sum(caller.own for caller in callers),
        "bytes": sum(caller.bytes for caller in callers),
        "canaries": sum(map(len, canaries.issued.values())),
        "crossed": findings.crossed.total(),
        "crossed_in": dict(findings.crossed),
        "crossed_examples": findings.examples,
        "failed": dict(findings.failures),
        "failed_examples": findings.failure_examples,
    }


def main():
    given = options()
    figures = asyncio.run(trial(given))
    if given.json:
        with open(given.json, "w") as file:
            json.dump(figures, file, indent=2)
    for example in figures["crossed_examples"] + figures["failed_examples"]:
        print(example, file=sys.stderr)
    failed = sum(figures["failed"].values())
    print(f"{figures['callers']} callers, {figures['operations_in_all']:,} operations in {figures['seconds']} s, "
          f"{figures['responses']:,} responses with {figures['bytes']:,} bytes, {figures['responses_with_own_canaries']:,} of them with "
          f"canaries of their own caller; {failed} operations failed; {figures['crossed']} canaries crossed")
    if figures["crossed"]:
        sys.exit(1)
    if failed > MAX_FAILED_SHARE * figures["operations_in_all"]:
        sys.exit(2)


main()
