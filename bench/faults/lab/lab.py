"""Fault laboratory: three gateways on PostgreSQL and NATS behind nginx, 20 upstream servers, load, faults, and a checker.

`campaign` (the default) runs load under a seeded plan of faults and exits with 1 if a promise was broken. The other commands measure:
`neighbours` healthy servers beside hanging and flooding ones, `outages` PostgreSQL and NATS away, `scaling` throughput of 1, 2 and 4 gateways.
`cases` are small cases that campaigns found. `check` judges the kept folder of a campaign again.
"""

import argparse
import asyncio
import os
import random
import resource
import signal
import sys

# What the trials share; before the imports that need it.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common"))

from campaign import campaign, judge
from plan import LARGE, OF_WORKERS, SMALL


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", default="campaign", choices=("campaign", "neighbours", "outages", "scaling", "cases", "check"))
    parser.add_argument("--binary", required=True, help="the release binary of toolyard")
    parser.add_argument("--seed", type=int, help="of plan and load; random if absent, and printed")
    parser.add_argument("--seconds", type=float, default=60, help="length of the campaign or of a phase of a measurement (default: 60)")
    parser.add_argument("--small-per-second", type=float, help="faults of connections and upstream servers (default: 3; 7 from 300 s on)")
    parser.add_argument("--large-every", type=float, help="seconds between faults of the platform's processes (default: 8; 5 from 300 s on)")
    parser.add_argument("--only", action="append", choices=[name for name, _ in SMALL + LARGE + OF_WORKERS], help="only these faults; may be repeated")
    parser.add_argument("--callers", type=int, default=15, help="callers, a third of each: 2025-11-25, 2026-07-28, HTTP API (default: 15)")
    parser.add_argument("--pause", type=float, default=0.25, help="mean seconds between two calls of a lane; a caller has two (default: 0.25)")
    parser.add_argument("--runs-every", type=float, default=2, help="mean seconds between runs of an agent; 0: none (default: 2)")
    parser.add_argument("--plant", choices=("repeat", "cross", "lose"), help="plant a defect in the path of the gateways, which the checker must find")
    parser.add_argument("--upgrade-to", metavar="PATH", help="another binary, which a rolling upgrade installs in the middle of the campaign")
    parser.add_argument("--workers", type=int, default=0, help="workers of one group, with three servers of their own (default: 0)")
    parser.add_argument("--plan-only", action="store_true", help="print the plan and stop")
    parser.add_argument("--json", metavar="FILE", help="write the result to a file, too")
    parser.add_argument("--folder", help="for `check`: the folder of a campaign, which is judged again")
    parser.add_argument("--details", action="store_true", help="print the whole report even if nothing was violated")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs even if nothing was violated")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1 << 32)
    return options


async def main():
    options = parse_arguments()
    if options.command == "campaign":
        return await campaign(options)
    if options.command == "check":
        return judge(options.folder, options.json)
    module = __import__(options.command)
    return await module.measure(options)


async def interruptible():
    """SIGTERM and SIGINT stop everything that the laboratory started."""
    task, loop = asyncio.create_task(main()), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 130


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    sys.exit(asyncio.run(interruptible()))
