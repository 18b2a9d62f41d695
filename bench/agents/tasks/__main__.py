"""Gives tasks to an agent that has real MCP servers, and checks files and data afterwards. README.md describes the suite.

usage: just agent-tasks [--model scripted|qwen]… [--half dev|fresh] [--only NAME]… [--list] [--json FILE]

The binary is `TOOLYARD_BIN`. The exit code is 1 if a receipt says what is not so, or if the scripted model does not succeed everywhere.
"""

import argparse
import contextlib
import importlib
import json
import os
import pkgutil
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from report import print_table, print_trial  # noqa: E402
from scripted_model import ScriptedModel  # noqa: E402
from servers import local_model, local_site  # noqa: E402
from task import Task  # noqa: E402
from trial import SUCCESS, Bench, Trial  # noqa: E402
from world import World  # noqa: E402

HALVES = ("dev", "fresh")


def all_tasks() -> list[tuple[str, Task]]:
    """Each module below tasks/HALF has a list `TASKS`."""
    found = []
    for half in HALVES:
        for module in sorted(pkgutil.iter_modules([str(HERE / "tasks" / half)]), key=lambda module: module.name):
            found += [(half, task) for task in importlib.import_module(f"tasks.{half}.{module.name}").TASKS]
    names = [task.name for _, task in found]
    if len(set(names)) < len(names):
        sys.exit(f"agent-tasks: names used twice: {sorted(name for name in set(names) if names.count(name) > 1)}")
    return found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="just agent-tasks", description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=["scripted", "qwen"], help="default: both; repeatable")
    parser.add_argument("--half", choices=HALVES, help="only tasks that were used for development, or only fresh ones")
    parser.add_argument("--only", action="append", metavar="NAME", help="only tasks whose name contains NAME; repeatable")
    parser.add_argument("--list", action="store_true", help="list the tasks and run none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one object per task to FILE as well")
    parser.add_argument("--qwen", metavar="URL", help="URL of a running model, such as http://127.0.0.1:8080/v1")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="for the model")
    parser.add_argument("--folder", type=Path, help="make the world in this folder, which is emptied first, and keep it")
    parser.add_argument("--site-port", type=int, default=0, help="port of the web site (default: any)")
    parser.add_argument("--timeout", default="10m", help="for each task (default 10m)")
    parser.add_argument("--verbose", action="store_true", help="print the steps of each task")
    return parser.parse_args()


def measure(options: argparse.Namespace, tasks: list[tuple[str, Task]]) -> dict[str, list[Trial]]:
    models = options.model or ["scripted", "qwen"]
    trials: dict[str, list[Trial]] = {}
    binary = Path(os.environ["TOOLYARD_BIN"]).resolve()
    if not binary.is_file():
        sys.exit(f"agent-tasks: no binary at {binary}\n  hint: cargo build --release -p toolyard, or set TOOLYARD_BIN")
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agent-tasks-")))
        shutil.rmtree(folder, ignore_errors=True)
        world = World(folder.resolve())
        world.reset()
        scripted = ScriptedModel(world)
        world.site_url = stack.enter_context(local_site(world, options.site_port))
        bench = Bench(world, binary, options.timeout)
        bench.meet_servers()
        for model in models:
            trials[model] = run_all(bench, tasks, model, scripted, options)
    return trials


def run_all(bench: Bench, tasks: list[tuple[str, Task]], model: str, scripted: ScriptedModel, options: argparse.Namespace) -> list[Trial]:
    def run() -> list[Trial]:
        trials = []
        for half, task in tasks:
            scripted.task = task
            trials.append(bench.run(task, half, model))
            print_trial(trials[-1], options.verbose)
        return trials

    print(f"\n{model}", flush=True)
    if model == "scripted":
        bench.set_model(model, scripted.url)
        return run()
    with local_model(model, options.threads, options.qwen) as url:
        bench.set_model(model, url)
        return run()


def main() -> int:
    options = parse_arguments()
    tasks = [
        (half, task)
        for half, task in all_tasks()
        if options.half in (None, half) and (not options.only or any(name in task.name for name in options.only))
    ]
    if options.list:
        for half, task in tasks:
            print(f"{half:<6} {task.language}  {task.name:<28} {task.request}")
        return 0
    trials = measure(options, tasks)
    print_table(trials)
    if options.json:
        options.json.write_text(json.dumps({model: [trial.row() for trial in all] for model, all in trials.items()}, indent=1, ensure_ascii=False))
    every = [trial for all in trials.values() for trial in all]
    failed = any(trial.receipt_error for trial in every) or any(trial.outcome != SUCCESS for trial in trials.get("scripted", []))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
