#!/usr/bin/env python3
"""Runs the steps of .ci/steps.toml, which says what each one checks and when it runs.

By default, it runs each step of the tier `always`, and each step of the tier `changed` unless the same inputs passed before. The
inputs are the step's files, its command, the commands of the steps it needs, and the compiler; their hash is kept in the cache
folder. A step of the tier `nightly` runs only if it has paths, an earlier result, and inputs that differ from it. The steps see a
copy of the repository in the cache folder, in which only changed files are written, so that cargo compiles only what changed,
in a fresh clone too.
"""

import argparse
import datetime
import fcntl
import fnmatch
import hashlib
import json
import os
import signal
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ".ci/steps.toml"
# Results of `just nightly` that are committed: they count as passed on a machine that has never run these steps.
RESULTS = "docs/nightly"
SLOTS = 4
STEP_TIMEOUT_SECONDS = 45 * 60
NIGHTLY_STEP_TIMEOUT_SECONDS = 3 * 3600
END_GRACE_SECONDS = 10
MAX_REMEMBERED_HASHES = 50
TIERS = ("always", "changed", "nightly")
JOBS = ("builds", "lints", "tests", "black-box")
KEYS = {"name", "job", "tier", "checks", "run", "full", "needs", "paths", "slots"}
# In `paths`: the files of the measuring data.
DATA_PATH = "$TOOLYARD_DATA"
# What changes the result of a build, and so is part of every hash.
BUILD_VARIABLES = {
    # Benchmarks that count instructions share the dependencies of the search evaluation.
    "TOOLYARD_PROFILE": "ci",
    "TOOLYARD_MEASURED": "-p search-eval -p toolyard-hub -p toolyard-mcp --bin search-eval --bench instructions --bench wire",
    # Every build of CI starts from a commit: incremental state would be written and hardly ever read.
    "CARGO_INCREMENTAL": "0",
}
# Variables of the caller that the steps see. Others whose names start with TOOLYARD_ would change a test unnoticed, such as the seed
# of a simulation, and the result would be remembered as that of the usual test.
PASSED_ON = ("TOOLYARD_DATA", "TOOLYARD_PARTS")
# Flags of the caller that change every build are part of every hash.
COMPILER_VARIABLES = ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS")


class Step:
    def __init__(self, row: dict):
        unknown = row.keys() - KEYS
        if unknown or row.get("tier") not in TIERS or row.get("job") not in JOBS or not {"name", "checks", "run"} <= row.keys():
            sys.exit(f"steps: {TABLE}: the step {row.get('name')!r} has an unknown or missing field, tier or job: {sorted(unknown)}")
        self.name, self.job, self.tier, self.checks = row["name"], row["job"], row["tier"], row["checks"]
        self.run, self.full = row["run"], row.get("full", row["run"])
        self.needs, self.paths, self.slots = row.get("needs", []), row.get("paths", []), row.get("slots", 1)


def read_table() -> dict[str, Step]:
    with open(ROOT / TABLE, "rb") as file:
        table = tomllib.load(file)
    groups = table["paths"]

    def expand(entries: list[str]) -> list[str]:
        return [path for entry in entries for path in (expand(groups[entry[1:]]) if entry.startswith("@") else [entry])]

    steps: dict[str, Step] = {}
    for step in map(Step, table["step"]):
        step.paths = expand(step.paths)
        if step.name in steps:
            sys.exit(f"steps: {TABLE}: two steps are called `{step.name}`")
        if step.slots > SLOTS:
            sys.exit(f"steps: {TABLE}: the step `{step.name}` takes {step.slots} slots, but there are {SLOTS}")
        for need in step.needs:
            if need not in steps:
                sys.exit(f"steps: {TABLE}: the step `{step.name}` needs `{need}`, but no step above it is called so")
        steps[step.name] = step
    return steps


def all_needs(steps: dict[str, Step], names: set[str]) -> set[str]:
    """These steps and all that they need, directly or not."""
    chosen = set(names)
    # A step stands below what it needs.
    for step in reversed(steps.values()):
        if step.name in chosen:
            chosen |= set(step.needs)
    return chosen


def git(*arguments: str, root: Path = ROOT, **variables: str) -> str:
    # In a hook of git, GIT_DIR and others are set, which would lead every command to the repository of the hook.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, stdout=subprocess.PIPE, text=True, env={**inherited, **variables}
    ).stdout.strip()


def snapshot() -> str:
    """A commit of the working tree as it is, with changes and new files that are not ignored."""
    if not git("status", "--porcelain"):
        return git("rev-parse", "HEAD")
    with tempfile.TemporaryDirectory() as folder:
        index = f"{folder}/index"
        shutil.copy(git("rev-parse", "--path-format=absolute", "--git-path", "index"), index)
        git("add", "--all", GIT_INDEX_FILE=index)
        tree = git("write-tree", GIT_INDEX_FILE=index)
    author = ["-c", "user.name=steps", "-c", "user.email=steps@example.invalid"]
    # Dated as HEAD, so that the same files make the same commit.
    date = git("log", "-1", "--format=%cI")
    return git(*author, "commit-tree", tree, "-p", "HEAD", "-m", "working tree", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)


def check_out(commit: str, tree: Path) -> None:
    """Makes `tree` hold exactly this commit. Git leaves unchanged files alone, with the times by which cargo knows them."""
    if not (tree / ".git").exists():
        tree.mkdir(parents=True, exist_ok=True)
        git("init", "--quiet", root=tree)
    # Without --update-shallow, git fetches nothing from a shallow clone and reports success.
    git("fetch", "--quiet", "--no-tags", "--update-shallow", str(ROOT), f"+{commit}:refs/steps/tree", root=tree)
    git("checkout", "--quiet", "--force", "--detach", commit, root=tree)
    # Packages of node stay where they are; their lock files say whether they are old.
    git("clean", "-ffdxq", "--exclude=node_modules", root=tree)


class Inputs:
    """Hashes the inputs of steps from the blobs of a commit."""

    def __init__(self, steps: dict[str, Step], commit: str, data: Path | None):
        self.steps = steps
        self.toolchain = subprocess.run(["rustc", "-vV"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
        rows = [line.split("\t", 1) for line in git("ls-tree", "-r", commit).splitlines()]
        self.commit = commit
        # Mode, type and hash of each file.
        self.blobs = {path: attributes for attributes, path in rows}
        files = sorted(file for file in data.rglob("*") if file.is_file()) if data else []
        self.data = {f"{DATA_PATH}/{file.relative_to(data)}": hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    def files(self, step: Step) -> dict[str, str]:
        """A pattern is a file, a folder or a glob; one that starts with `!` takes files out again; `FILE#KEY` is a part of a TOML file."""
        chosen: dict[str, str] = {}
        for pattern in step.paths:
            if pattern == DATA_PATH:
                chosen |= self.data
                continue
            if "#" in pattern:
                file, key = pattern.split("#")
                chosen[pattern] = json.dumps(tomllib.loads(git("show", f"{self.commit}:{file}"))[key])
                continue
            wanted = pattern.lstrip("!")
            found = set(fnmatch.filter(self.blobs, wanted)) | set(fnmatch.filter(self.blobs, f"{wanted}/*"))
            # A file that was moved away would no longer be watched, and the step would be skipped from then on.
            if not found:
                sys.exit(f"steps: {TABLE}: the step `{step.name}`: no file matches `{wanted}`")
            if pattern.startswith("!"):
                chosen = {path: blob for path, blob in chosen.items() if path not in found}
            else:
                chosen |= {path: self.blobs[path] for path in found}
        return chosen

    def hash(self, step: Step) -> str:
        """The same for `run` and `full`, so that a failure of one takes back a success of the other."""
        needs = all_needs(self.steps, set(step.needs))
        commands = [other.run for other in self.steps.values() if other.name in needs]
        flags = [os.environ.get(name) for name in COMPILER_VARIABLES]
        text = json.dumps([self.toolchain, BUILD_VARIABLES, flags, step.run, step.full, commands, sorted(self.files(step).items())])
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Passed:
    """Which inputs each step has passed with: in the cache of this machine, and in the committed results of `just nightly`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.committed: dict[str, dict[str, str]] = {}
        for file in sorted((ROOT / RESULTS).glob("*.json")):
            for row in json.loads(file.read_text())["steps"]:
                if row.get("inputs"):
                    self.committed.setdefault(row["name"], {})[row["inputs"]] = f"{RESULTS}/{file.name}" if row["outcome"] == "passed" else ""

    def rows(self, name: str) -> dict[str, str]:
        """When or where each of the last inputs passed; empty text if they failed, so that no earlier success of them counts."""
        return self.committed.get(name, {}) | self.local(name)

    def local(self, name: str) -> dict[str, str]:
        file = self.folder / f"{name}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def is_known(self, name: str) -> bool:
        return bool(self.rows(name))

    def when(self, name: str, inputs: str) -> str:
        return self.rows(name).get(inputs, "")

    def record(self, name: str, inputs: str, has_passed: bool) -> None:
        rows = self.local(name)
        rows.pop(inputs, None)
        rows[inputs] = datetime.datetime.now().isoformat(" ", "minutes") if has_passed else ""
        write_json(self.folder / f"{name}.json", dict(list(rows.items())[-MAX_REMEMBERED_HASHES:]))


class Runner:
    """Runs the chosen steps, as many at a time as fit into the slots: of the steps that are ready, the first ones of the table."""

    def __init__(self, steps: dict[str, Step], chosen: set[str], is_nightly: bool, folder: Path, inputs: Inputs, passed: Passed):
        self.folder, self.is_nightly, self.passed = folder, is_nightly, passed
        self.environment = environment(is_nightly)
        self.waiting = [step for step in steps.values() if step.name in chosen]
        self.commands = {step.name: step.full if is_nightly else step.run for step in self.waiting}
        self.inputs = {step.name: inputs.hash(step) for step in self.waiting}
        self.outcomes: dict[str, str] = {}
        self.seconds: dict[str, int] = {}
        self.free = SLOTS
        self.changed = threading.Condition()
        self.processes: set[subprocess.Popen] = set()
        self.start = time.monotonic()

    def run(self) -> None:
        with self.changed:
            while self.waiting:
                step = self.next_ready()
                if step is None:
                    self.changed.wait()
                    continue
                self.waiting.remove(step)
                if any(self.outcomes[need] != "passed" for need in step.needs if need in self.outcomes):
                    self.outcomes[step.name] = "not run"
                    say(f"NOT RUN  {step.name}: a step it needs failed")
                    continue
                self.free -= step.slots
                threading.Thread(target=self.run_step, args=(step,), daemon=True).start()
            while self.free < SLOTS:
                self.changed.wait()

    def next_ready(self) -> Step | None:
        pending = {step.name for step in self.waiting}
        for step in self.waiting:
            if any(need in pending or self.outcomes.get(need) == "running" for need in step.needs):
                continue
            if step.slots <= self.free:
                self.outcomes[step.name] = "running"
                return step
            # A step that needs the whole machine would otherwise wait until all small ones are done.
            if step.slots == SLOTS:
                return None
        return None

    def run_step(self, step: Step) -> None:
        has_passed = False
        began = time.monotonic()
        try:
            has_passed = self.try_step(step, began)
        except Exception as error:
            say(f"FAILED   {step.name}: steps: {error}")
        finally:
            # A step without an outcome would keep the runner waiting.
            with self.changed:
                self.seconds[step.name] = round(time.monotonic() - began)
                self.outcomes[step.name] = "passed" if has_passed else "failed"
                self.free += step.slots
                self.changed.notify_all()

    def try_step(self, step: Step, began: float) -> bool:
        """Runs the step, shows its result and remembers it. Returns whether it passed."""
        log = self.folder / "logs" / f"{step.name}.log"
        say(f"start    {step.name} (after {began - self.start:.0f} s)")
        with tempfile.TemporaryDirectory(prefix="steps-", ignore_cleanup_errors=True) as scratch:
            # PostgreSQL and some attacks run as another user.
            Path(scratch).chmod(0o755)
            code = self.execute(step, log, scratch)
        text = log.read_text(errors="replace")
        seconds = round(time.monotonic() - began)
        if step.paths:
            self.passed.record(step.name, self.inputs[step.name], code == 0)
        if code == 0:
            last = [line for line in text.splitlines() if line.strip()][-1:]
            say(f"passed   {step.name} in {seconds} s" + "".join(f": {line.strip()[:160]}" for line in last))
        else:
            say(f"FAILED   {step.name} in {seconds} s, exit code {code}\n---- output of {step.name}\n{text}---- end of {step.name}")
        return code == 0

    def execute(self, step: Step, log: Path, scratch: str) -> int:
        log.parent.mkdir(parents=True, exist_ok=True)
        timeout = NIGHTLY_STEP_TIMEOUT_SECONDS if self.is_nightly else STEP_TIMEOUT_SECONDS
        with open(log, "wb") as output:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", self.commands[step.name]],
                cwd=self.folder / "tree",
                env={**self.environment, "TMPDIR": scratch},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.processes.add(process)
            try:
                return process.wait(timeout)
            except subprocess.TimeoutExpired:
                output.write(f"steps: ended after {timeout} s\n".encode())
                return 124
            finally:
                # Servers that a step left behind would take ports and processor time of the others.
                end_groups([process])
                self.processes.discard(process)

    def stop(self) -> None:
        end_groups(list(self.processes))


def say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        pass  # The steps go on without a reader; `--result` and the logs have the outcome.


def end_groups(processes: list[subprocess.Popen]) -> None:
    """Ends what is left of the processes of steps, with time for their scripts to stop engines that have groups of their own."""
    until = time.monotonic() + END_GRACE_SECONDS
    left = [process for process in processes if has_signalled(process, signal.SIGTERM)]
    while left and time.monotonic() < until:
        time.sleep(0.1)
        left = [process for process in left if process.poll() is None or has_signalled(process, 0)]
    for process in left:
        has_signalled(process, signal.SIGKILL)


def has_signalled(process: subprocess.Popen, sign: int) -> bool:
    """Sends a signal to the group of a process. Returns whether the group still exists."""
    try:
        os.killpg(process.pid, sign)
        return True
    except (ProcessLookupError, PermissionError):
        return False


def select(steps: dict[str, Step], arguments, inputs: Inputs, passed: Passed) -> tuple[set[str], dict[str, str]]:
    """The steps to run, and why the others are skipped. Builds run only for a step that needs them."""
    if arguments.steps:
        return all_needs(steps, set(arguments.steps)), {}
    run, skipped = set(), {}
    for step in steps.values():
        if step.job == "builds" or (arguments.job and step.job != arguments.job):
            continue
        when = passed.when(step.name, inputs.hash(step))
        if arguments.nightly or step.tier == "always":
            run.add(step.name)
        elif when:
            skipped[step.name] = f"its inputs passed already ({when})"
        elif step.tier == "nightly" and not step.paths:
            skipped[step.name] = "runs in `just nightly` only"
        elif step.tier == "nightly" and not passed.is_known(step.name):
            # It may take longer than all others together, and perhaps its inputs did not change.
            skipped[step.name] = "runs in `just nightly`, of which there is no result yet"
        else:
            run.add(step.name)
    return all_needs(steps, run), skipped


def write_result(file: Path, runner: Runner, steps: dict[str, Step], commit: str) -> None:
    rows = []
    for name, outcome in runner.outcomes.items():
        log = runner.folder / "logs" / f"{name}.log"
        text = log.read_text(errors="replace") if outcome in ("passed", "failed") and log.exists() else ""
        rows.append({
            "name": name, "checks": steps[name].checks, "command": runner.commands[name], "outcome": outcome,
            "seconds": runner.seconds.get(name, 0), "inputs": runner.inputs[name], "output": text.splitlines()[-40:],
        })
    write_json(file, {"date": datetime.date.today().isoformat(), "commit": commit, "machine": f"{os.cpu_count()} cores", "steps": rows})
    say(f"results: {file}")


def write_json(file: Path, value: object) -> None:
    """Replaces the file at once: a process that is killed leaves the old one or the new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.new")
    new.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    new.replace(file)


def measuring_data() -> Path | None:
    """The test sets lie beside the clone where there are any; nothing of them is committed."""
    named = os.environ.get("TOOLYARD_DATA")
    data = Path(named) if named else ROOT.parent / "shared" / "data"
    if named and not data.is_dir():
        sys.exit(f"steps: TOOLYARD_DATA names {named}, which is no folder")
    return data if data.is_dir() else None


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def environment(is_nightly: bool) -> dict[str, str]:
    target = os.environ.get("CARGO_TARGET_DIR") or str(cache_folder() / "toolyard-target")
    parts = os.environ.get("TOOLYARD_PARTS") or str(cache_folder() / "toolyard-parts")
    inherited = {name: value for name, value in os.environ.items() if name in PASSED_ON or not name.startswith("TOOLYARD_")}
    variables = {
        **inherited,
        **BUILD_VARIABLES,
        "CARGO_TERM_COLOR": "never",
        # Node compiles the conformance suite and the browser driver once, not for each of hundreds of runs.
        "NODE_COMPILE_CACHE": f"{parts}/node-compile-cache",
        "CARGO_TARGET_DIR": target,
        "TOOLYARD_PARTS": parts,
        # The program of the tests is compiled already; nightly, every step starts the published one.
        "TOOLYARD_BIN": f"{target}/{'dist' if is_nightly else 'debug'}/toolyard",
        "SEARCH_EVAL": f"{target}/ci/search-eval",
        "PATH": f"{parts}/cargo/bin:{parts}/python/bin:{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if data := measuring_data():
        variables["TOOLYARD_DATA"] = str(data)
    return variables


def lock(folder: Path):
    """Held until the process ends: two runs would change the files under each other's steps."""
    folder.mkdir(parents=True, exist_ok=True)
    file = open(folder / "lock", "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"steps: another run uses {folder}\n  hint: wait until it ends, or set XDG_CACHE_HOME to another folder")
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="run these steps and the builds they need, whatever their tier")
    parser.add_argument("--nightly", action="store_true", help="run every step, in full")
    parser.add_argument("--job", choices=JOBS[1:], help="only the steps of one job")
    parser.add_argument("--list", action="store_true", help="print the table, with the number of files each step depends on")
    parser.add_argument("--plan", action="store_true", help="print what would run and what would be skipped, and why")
    parser.add_argument("--result", type=Path, metavar="FILE", help="write outcome, time, inputs and last output of each step as JSON")
    arguments = parser.parse_args()
    # The last lines of a step may have letters that the terminal has not.
    sys.stdout.reconfigure(errors="backslashreplace")

    steps = read_table()
    unknown = set(arguments.steps) - steps.keys()
    if unknown:
        sys.exit(f"steps: no step is called {', '.join(sorted(unknown))}\n  hint: .ci/run --list")
    folder = cache_folder() / "toolyard-ci"
    commit = snapshot()
    inputs, passed = Inputs(steps, commit, measuring_data()), Passed(folder / "passed")
    if arguments.list:
        for step in steps.values():
            print(f"{step.name:22} {step.job:10} {step.tier:8} {len(inputs.files(step)):5} files  {step.checks}")
        return 0
    chosen, skipped = select(steps, arguments, inputs, passed)
    for name, reason in skipped.items():
        say(f"skip     {name}: {reason}")
    if arguments.plan:
        for name in steps:
            if name in chosen:
                say(f"run      {name}")
        return 0

    held = lock(folder)
    check_out(commit, folder / "tree")
    runner = Runner(steps, chosen, arguments.nightly, folder, inputs, passed)
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, lambda *_: sys.exit(143))
    try:
        runner.run()
    finally:
        runner.stop()
        if arguments.result:
            write_result(arguments.result, runner, steps, commit)
        held.close()

    say("\ntime of each step")
    for name, seconds in sorted(runner.seconds.items(), key=lambda row: -row[1]):
        say(f"{seconds:5} s  {name}")
    say(f"{time.monotonic() - runner.start:5.0f} s  in all")
    outcomes = list(runner.outcomes.values())
    failed = len(outcomes) - outcomes.count("passed")
    say(f"steps: {outcomes.count('passed')} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
