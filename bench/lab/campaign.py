"""A campaign: load and faults at the same time, then quiet, then everything is stopped and judged."""

import asyncio
import glob
import json
import os
import re
import sys
import time

from checker import check_all, summary
from faults import Faults, proxy_faults
from http_client import Broken, Connection
from plan import fingerprint, make_plan
from report import count_faults, print_report
from stack import HERE, Lab

# After the last fault the load goes on, so that the recovery can be judged; then runs are taken over.
QUIET_SECONDS, TAKE_OVER_SECONDS = 14, 6
RUNS_SECONDS = 60


async def campaign(options):
    rates = (3, 8) if options.seconds < 300 else (7, 5)
    small = rates[0] if options.small_per_second is None else options.small_per_second
    large = rates[1] if options.large_every is None else options.large_every
    plan = make_plan(options.seed, options.seconds, small, large, can_fill_disk=os.getuid() == 0, only=options.only)
    print(f"seed {options.seed}: {len(plan)} faults in {options.seconds} s, plan {fingerprint(plan)}", flush=True)
    lab = Lab(options.binary, plant=options.plant, workers=options.workers)
    with open(os.path.join(lab.folder, "plan.json"), "w") as file:
        json.dump(plan, file, indent=1)
    if options.plan_only:
        print(open(os.path.join(lab.folder, "plan.json")).read())
        lab.remove()
        return 0
    async with lab:
        print(f"folder {lab.folder}, binary {options.binary}", flush=True)
        load = await start_load(lab, options)
        faults = asyncio.create_task(Faults(lab, options.upgrade_to).run(plan))
        began = time.monotonic()
        while not faults.done() or time.monotonic() - began < options.seconds:
            await asyncio.sleep(1)
            for task in (faults, *lab.tasks):
                if task.done() and task.exception():
                    raise task.exception()
        lab.note("faults_over")
        await asyncio.sleep(QUIET_SECONDS)
        load.stdin.close()
        await load.wait()
        await asyncio.sleep(TAKE_OVER_SECONDS)
        runs = await settle_runs(lab)
        left = await lab.stop_gateways()
    about = {"seed": options.seed, "seconds": options.seconds, "plan": fingerprint(plan), "plant": options.plant, "planned": len(plan)}
    observed = {"about": about, "runs": runs, "events": lab.events, "memory": lab.memory, "gateway_of_port": lab.gateway_of_port,
                "killed_pids": lab.killed_pids, "orphans": left, "panics": panics_of(lab)}
    with open(os.path.join(lab.folder, "observed.json"), "w") as file:
        json.dump(observed, file, indent=1, default=str)
    code = judge(lab.folder, options.json)
    if code or options.keep:
        print(f"logs: {lab.folder}")
    else:
        lab.remove()
    return code


def judge(folder, json_file=None):
    """Judges the records in a folder, prints the report, and returns the exit code."""
    records = read_records(folder)
    violations = check_all(records)
    result = {**records["about"], "faults": count_faults(records["events"], proxy_faults(folder)), **summary(records), "violations": violations}
    if json_file:
        with open(json_file, "w") as file:
            json.dump(result, file, indent=1)
    print_report(result, records["events"])
    return 1 if violations else 0


async def start_load(lab, options):
    settings = {"port": lab.port, "seed": options.seed, "callers": options.callers, "pause": options.pause, "runs_every": options.runs_every}
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
    for name, gateway in lab.gateways.items():
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
    while quiet < 4 and time.monotonic() < until:
        resolved = await resolve_unknown(operator, {entry["id"] for entry in read_ledgers(lab.folder)})
        _, page = await operator.request("GET", "/runs?state=running&limit=500")
        quiet = 0 if resolved or page["runs"] else quiet + 1
        await asyncio.sleep(1)
    runs, after = [], ""
    while True:
        _, page = await operator.request("GET", f"/runs?limit=200{after}")
        for run in page["runs"]:
            runs.append(await read_run(operator, run["run"]))
        if page.get("next") is None:
            return runs
        after = f"&after={page['next']}"


async def resolve_unknown(operator, executed):
    status, page = await operator.request("GET", "/runs/unknown")
    for step in page["steps"]:
        outcome = "done" if effect_of(step) in executed else "not_done"
        await operator.request("POST", f"/runs/{step['run']}/resolve", {"step": step["step"], "outcome": outcome})
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
    """The id in the arguments of a step, which is the same if the step belongs to a later plan; arguments are a preview, as text or JSON."""
    text = step.get("arguments") if isinstance(step.get("arguments"), str) else json.dumps(step.get("arguments"))
    found = re.search(r'"id":\s*"([^"]+)"', text or "")
    return found[1] if found else None
