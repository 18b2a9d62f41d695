"""Two replicas on one PostgreSQL behind nginx with default settings, under load of both revision families, and faults.

Prints a table fault → figure → measured → wanted → reached. The exit code is 1 if something is not reached.
"""

import argparse
import asyncio
import os
import resource
import sys
import time

# What the trials share; before the imports that need it.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common"))

from checks import Report, check_ledger
from deployment import Deployment
from faults import kill, postgres_outage, rolling_restart
from load import Load
from processes import tail
from runs import orphaned_runs
from upstream import hog, upstream_outage


async def steady(yard, report, options):
    """No fault: what the others are compared with."""
    before, lost_before, _ = await yard.audit_counts()
    async with Load(yard.port, options.clients, options.pause) as load:
        await asyncio.sleep(2)
    failed = len(load.failed())
    report.check("none, 2 s", f"failed calls of {len(load.calls)}", failed, 0, failed == 0, load.summary())
    check_ledger(report, "none, 2 s", load, yard.entries(load.name + "-"))
    await asyncio.sleep(0.5)
    records, lost, _ = await yard.audit_counts()
    executed = len(yard.entries(load.name + "-"))
    report.check("none, 2 s", "audit records + recorded losses", f"{records - before} + {lost - lost_before}", executed,
                 records - before + lost - lost_before == executed)


async def runs_term(yard, report, options):
    await orphaned_runs(yard, report, options, "SIGTERM")


async def runs_kill(yard, report, options):
    await orphaned_runs(yard, report, options, "kill -9")


FAULTS = {
    "steady": steady,
    "rolling": rolling_restart,
    "kill": kill,
    "postgres": postgres_outage,
    "runs-term": runs_term,
    "runs-kill": runs_kill,
    "upstream": upstream_outage,
    "hog": hog,
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the release binary of toolyard")
    parser.add_argument("--only", metavar="FAULT", action="append", choices=FAULTS, help=f"one of {', '.join(FAULTS)}; may be repeated")
    parser.add_argument("--quick", action="store_true", help="shorter outages and fewer repetitions")
    parser.add_argument("--json", metavar="FILE", help="write the rows to a file, too")
    parser.add_argument("--clients", type=int, default=16, help="clients of the load, half of each revision family (default: 16)")
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two calls of a client (default: 0.01)")
    return parser.parse_args()


QUICK_RUN_LEASE = 10

# Faults that share a deployment in a quick trial; the groups run at the same time.
QUICK_GROUPS = [["steady", "rolling", "kill"], ["runs-kill", "runs-term", "hog"], ["postgres", "upstream"]]


async def try_faults(names, report, options):
    """One deployment, and one fault after the other."""
    async with Deployment(options.binary, QUICK_RUN_LEASE if options.quick else None) as yard:
        for name in names:
            began = time.monotonic()
            await yard.forget_failures()
            try:
                await FAULTS[name](yard, report, options)
            except (AssertionError, OSError, RuntimeError, TimeoutError) as error:
                report.check(name, "the trial itself", f"{type(error).__name__}: {error}", "no error", False)
                for replica in yard.replicas:
                    print(f"-- log of replica {replica.name}:\n{tail(replica.log, 1500)}")
                    if replica.process.poll() is not None:
                        await replica.start()
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


async def main():
    options, report = parse_arguments(), Report()
    if options.only:
        groups = [options.only]
    else:
        groups = QUICK_GROUPS if options.quick else [list(FAULTS)]
    began = time.monotonic()
    await asyncio.gather(*(try_faults(names, report, options) for names in groups))
    print(f"\n{time.strftime('%Y-%m-%d %H:%M')}, {time.monotonic() - began:.0f} s, {os.cpu_count()} cores\n\n{report.markdown()}")
    if options.json:
        with open(options.json, "w") as file:
            file.write(report.json())
    return 0 if report.is_reached() else 1


if __name__ == "__main__":
    # Each slow call of a caller is a connection of its own, here and at nginx.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    sys.exit(asyncio.run(main()))
