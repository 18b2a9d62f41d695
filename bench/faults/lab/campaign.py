"""A campaign: load and faults at the same time, then quiet, then everything is stopped and judged."""

import asyncio
import glob
import json
import os
import re
import sys
import time

from checker import RECOVERY_SECONDS, check_all, summary
from faults import Faults, proxy_faults
from http_client import Broken, Connection
from plan import fault_window, fingerprint, make_plan
from report import count_faults, print_report, print_summary
from stack import HERE, Lab
from topology import RUN_LEASE

# After the last fault the load goes on: until everything must have recovered, and then for as long as that is judged. Runs of gateways that
# were killed are taken over meanwhile.
JUDGED_SECONDS = 2
QUIET_SECONDS = RECOVERY_SECONDS + JUDGED_SECONDS
assert QUIET_SECONDS > RUN_LEASE + 3
RUNS_SECONDS, QUIET_LOOKS, LOOK_SECONDS, READERS = 60, 4, 0.4, 8


async def campaign(options):
    rates = (3, 8) if options.seconds < 300 else (7, 5)
    small = rates[0] if options.small_per_second is None else options.small_per_second
    large = rates[1] if options.large_every is None else options.large_every
    plan = make_plan(options.seed, options.seconds, small, large, can_fill_disk=os.getuid() == 0, only=options.only,
                     workers=options.workers, has_upgrade=options.upgrade_to is not None)
    print(f"seed {options.seed}: {len(plan)} faults in {options.seconds} s, plan {fingerprint(plan)}", flush=True)
    lab = Lab(options.binary, plant=options.plant, workers=options.workers)
    with open(os.path.join(lab.folder, "plan.json"), "w") as file:
        json.dump(plan, file, indent=1)
    if options.plan_only:
        print(open(os.path.join(lab.folder, "plan.json")).read())
        lab.remove()
        return 0
    phases = Stopwatch()
    async with lab:
        phases.end("start")
        print(f"folder {lab.folder}, binary {options.binary}", flush=True)
        load = await start_load(lab, options)
        faults = asyncio.create_task(Faults(lab, options.upgrade_to).run(plan))
        began = time.monotonic()
        while not faults.done() or time.monotonic() - began < fault_window(options.seconds)[1]:
            await asyncio.sleep(0.2)
            for task in (faults, *lab.tasks):
                if task.done() and task.exception():
                    raise task.exception()
        lab.note("faults_over")
        load.stdin.write(b"faults are over\n")
        phases.end("faults")
        await asyncio.sleep(QUIET_SECONDS)
        phases.end("recovery")
        load.stdin.close()
        await load.wait()
        phases.end("last calls")
        runs = await settle_runs(lab)
        phases.end("runs")
        left = await lab.stop_gateways()
    phases.end("stop")
    about = {"seed": options.seed, "seconds": options.seconds, "plan": fingerprint(plan), "plant": options.plant, "planned": len(plan),
             "workers": options.workers, "phases": phases.seconds}
    observed = {"about": about, "runs": runs, "events": lab.events, "memory": lab.memory, "gateway_of_port": lab.gateway_of_port,
                "killed_pids": lab.killed_pids, "orphans": left, "panics": panics_of(lab)}
    with open(os.path.join(lab.folder, "observed.json"), "w") as file:
        json.dump(observed, file, indent=1, default=str)
    code = judge(lab.folder, options.json, options.details)
    if code or options.keep:
        print(f"logs: {lab.folder}")
    else:
        lab.remove()
    return code


class Stopwatch:
    """How long each phase took."""

    def __init__(self):
        self.seconds, self.began = {}, time.monotonic()

    def end(self, phase):
        now = time.monotonic()
        self.seconds[phase], self.began = round(now - self.began, 1), now


def judge(folder, json_file=None, has_details=True):
    """Judges the records in a folder, prints a summary or with details a report, and returns the exit code. Violations have details always."""
    records = read_records(folder)
    violations = check_all(records)
    result = {**records["about"], "faults": count_faults(records["events"], proxy_faults(folder)), **summary(records), "violations": violations}
    if json_file:
        with open(json_file, "w") as file:
            json.dump(result, file, indent=1)
    if violations or has_details:
        print_report(result, records["events"])
    else:
        print_summary(result, records["events"])
    return 1 if violations else 0


async def start_load(lab, options):
    settings = {"port": lab.port, "seed": options.seed, "callers": options.callers, "pause": options.pause, "runs_every": options.runs_every, "has_workers": options.workers > 0}
    with open(os.path.join(lab.folder, "load.log"), "ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-B", f"{HERE}/load.py", lab.folder, json.dumps(settings), stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log)


def read_lines(path):
    try:
        with open(path, errors="replace") as file:
            return [json.loads(line) for line in file if line.strip()]
    except OSError:
        return []


def read_ledgers(folder):
    return [entry for path in sorted(glob.glob(f"{folder}/ledgers/???")) for entry in read_lines(path)]


def read_records(folder):
    with open(os.path.join(folder, "observed.json")) as file:
        observed = json.load(file)
    observed["killed_pids"] = {int(pid): at for pid, at in observed["killed_pids"].items()}
    return {"calls": read_lines(f"{folder}/calls.jsonl"), "ledger": read_ledgers(folder), "nginx": read_lines(f"{folder}/nginx.access"), **observed}


def panics_of(lab):
    panics = []
    for name, gateway in lab.processes().items():
        with open(gateway.log, errors="replace") as file:
            panics += [(name, line.strip()[:300]) for line in file if "panicked at" in line]
    return panics


class Operator:
    """Requests with the gateway's own token, which sees all runs."""

    def __init__(self, port):
        self.http = Connection(port)

    async def request(self, method, path, body=None):
        """The answer as JSON; tries again while the gateways recover."""
        for _ in range(20):
            try:
                status, _, content = await self.http.request(method, f"/api/v1{path}", body=body, timeout=10)
                if status < 500:
                    return status, json.loads(content)
            except (Broken, ValueError):
                pass
            await asyncio.sleep(1)
        raise RuntimeError(f"{method} {path}: no answer within 20 attempts")


async def settle_runs(lab):
    """Waits for runs to end, decides on steps with an unknown outcome by looking at the ledger, and reads all runs."""
    operator, until, quiet = Operator(lab.port), time.monotonic() + RUNS_SECONDS, 0
    # A resumed run is not `running` at once: several quiet looks in a row.
    while quiet < QUIET_LOOKS and time.monotonic() < until:
        resolved = await resolve_unknown(operator, {entry["id"] for entry in read_ledgers(lab.folder)})
        _, page = await operator.request("GET", "/runs?state=running&limit=500")
        quiet = 0 if resolved or page["runs"] else quiet + 1
        await asyncio.sleep(LOOK_SECONDS)
    ids, after = [], ""
    while after is not None:
        _, page = await operator.request("GET", f"/runs?limit=200{after}")
        ids += [run["run"] for run in page["runs"]]
        after = None if page.get("next") is None else f"&after={page['next']}"
    parts = await asyncio.gather(*(read_runs(Operator(lab.port), ids[first::READERS]) for first in range(READERS)))
    return [run for part in parts for run in part]


async def read_runs(operator, ids):
    return [await read_run(operator, run_id) for run_id in ids]


async def resolve_unknown(operator, executed):
    status, page = await operator.request("GET", "/unknown-steps")
    for step in page["steps"]:
        outcome = "done" if effect_of(step) in executed else "not_done"
        await operator.request("POST", "/unknown-steps", {"run": step["run"], "step": step["step"], "outcome": outcome})
    return len(page["steps"])


def name_of(question):
    return question.split()[1]


async def read_run(operator, run_id):
    _, run = await operator.request("GET", f"/runs/{run_id}")
    name, servers = name_of(run["question"]), run["question"].split()[2].split(",")
    steps = [{"id": step["id"], "state": step["state"], "effect": effect_of(step), "notes": step.get("notes"), "error": step.get("error")} for step in run["steps"]]
    return {"run": run_id, "name": name, "state": run["state"], "message": run.get("message"), "steps": steps,
            "waits_for": [run.get("pending_approvals"), run.get("unknown_steps")],
            "wanted": [f"{name}.s{number}" for number in range(len(servers))]}


def effect_of(step):
    """The id in the arguments of a step, which is the same if the step belongs to a later plan."""
    text = step.get("arguments_text") or json.dumps(step.get("arguments"))
    found = re.search(r'"id":\s*"([^"]+)"', text)
    return found[1] if found else None
