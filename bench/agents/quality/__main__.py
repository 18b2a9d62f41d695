"""Sends the requests of cases.py to an agent of the release binary and judges its calls and changes; `just agent-quality` runs this."""

import argparse
import contextlib
import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from typing import Any

from cases import SINGLES, TASKS, Single, Task, cells, is_right_call, problem_with, write_workbooks

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "bench/common"))
from processes import free_port  # noqa: E402

PARTS = pathlib.Path(os.environ["TOOLYARD_PARTS"])
TOOLS = [
    "read_data_from_excel",
    "write_data_to_excel",
    "apply_formula",
    "create_worksheet",
    "create_workbook",
    "get_workbook_metadata",
    "calculate",
    "get_current_time",
    "convert_time",
]
# Minimum shares of right requests; the project promises 18 of 20 single calls and 2 of 3 tasks.
MIN_RIGHT_SINGLES, MIN_RIGHT_TASKS = 0.9, 2 / 3
# One request in English, one in Chinese, one that writes.
SMOKE_SINGLES = [SINGLES[0], SINGLES[1], SINGLES[-1]]
# States in which a run may end; anything else is a bug.
FINAL_STATES = {"answered", "failed", "refused", "cancelled", "limit_reached", "planned", "suspended"}


@dataclass
class AgentRun:
    """What an agent did with one request, read from the events it printed."""

    code: int
    seconds: float
    events: list[dict[str, Any]]
    stderr: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)
    output_tokens: int = 0

    def __post_init__(self) -> None:
        steps: dict[str, tuple[str, dict[str, Any]]] = {}
        for update in self.events:
            if update.get("update") == "usage_changed":
                self.output_tokens = update["usage"]["output"]
            event = update.get("event", {})
            match event.get("event") if isinstance(event, dict) else None:
                case "planned":
                    for step in event["plan"]["steps"]:
                        steps[step["id"]] = (step["tool_type"], step.get("arguments", {}))
                case "step_repaired":
                    steps[event["step"]] = (steps[event["step"]][0], event["arguments"])
                case "ended":
                    self.ended = event["end"]
        self.calls = list(steps.values())

    def summary(self) -> str:
        calls = ", ".join(f"{tool}({json.dumps(given, ensure_ascii=False)})" for tool, given in self.calls)
        answer = self.ended.get("answer") or self.ended.get("message") or self.stderr.strip()[-300:]
        return (calls or f"no call: {answer}")[:700]


class TestBed:
    """Servers, settings and workbooks in a temporary folder, and the binary under test."""

    def __init__(self, folder: pathlib.Path, binary: pathlib.Path) -> None:
        self.files = folder / "files"
        self.files.mkdir()
        self.binary = binary
        self.settings = folder / "config" / "toolyard" / "toolyard.toml"
        self.settings.parent.mkdir(parents=True)
        self.environment = {**os.environ, "HOME": str(folder)}
        for kind in ("config", "data", "cache", "state"):
            self.environment[f"XDG_{kind.upper()}_HOME"] = str(folder / kind)

    def write_settings(self, excel: str, models: dict[str, str]) -> None:
        text = f'[servers.excel]\nurl = "{excel}"\n\n[servers.time]\ncommand = "{PARTS / "time/bin/mcp-server-time"}"\n'
        text += f"\n[agents.clerk]\ntools = {json.dumps(TOOLS)}\n"
        for name, url in models.items():
            for mode in ("schema", "text"):
                text += f'\n[models.{name}-{mode}]\nmodel = "{name}"\nurl = "{url}"\ntool_calling = "{mode}"\n'
                text += 'timeout = "5m"\nextra_body = { seed = 7 }\n'
        self.settings.write_text(text)
        tested = subprocess.run([self.binary, "servers", "test"], env=self.environment, capture_output=True, text=True)
        if tested.returncode != 0:
            sys.exit(f"agent-quality: the servers do not answer:\n{tested.stdout}{tested.stderr}")

    def ask(self, model: str, request: str, *options: str, timeout: str = "10m") -> AgentRun:
        command = [self.binary, "ask", "--agent", "clerk", "--model", model, "--json", "--timeout", timeout]
        start = time.monotonic()
        finished = subprocess.run([*command, *options, request], env=self.environment, capture_output=True, text=True)
        events = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
        return AgentRun(finished.returncode, time.monotonic() - start, events, finished.stderr)


@contextlib.contextmanager
def excel_server(files: pathlib.Path):
    """excel-mcp-server over HTTP; file names are relative to a folder."""
    port = free_port()
    environment = os.environ | {
        "EXCEL_FILES_PATH": str(files),
        "FASTMCP_HOST": "127.0.0.1",
        "FASTMCP_PORT": str(port),
    }
    command = [PARTS / "excel-0.1.8/bin/excel-mcp-server", "streamable-http"]
    with subprocess.Popen(
        command, env=environment, cwd=files.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            for _ in range(600):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


@contextlib.contextmanager
def local_model(name: str, threads: int, running_url: str | None):
    if running_url:
        yield running_url
        return
    command = [ROOT / "scripts/local-model", name, "0", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            line = server.stdout.readline().split()
            if not line:
                sys.exit(f"agent-quality: the model {name} did not start; try: scripts/local-model {name} 0")
            yield line[0]
        finally:
            server.terminate()


def judge_single(bed: TestBed, model: str, single: Single, *options: str) -> tuple[str | None, AgentRun]:
    """The problem, if any, and the run. The request is carried out, unless the options ask for a plan only."""
    write_workbooks(bed.files)
    before = cells(bed.files)
    run = bed.ask(model, single.request, *options)
    if len(run.calls) != 1:
        return f"{len(run.calls)} calls", run
    if not is_right_call(single, *run.calls[0]):
        return "not the right call", run
    expected = {} if "--plan-only" in options else single.changes
    return problem_with(before, cells(bed.files), expected), run


def judge_task(bed: TestBed, model: str, task: Task) -> tuple[str | None, AgentRun]:
    write_workbooks(bed.files)
    before = cells(bed.files)
    run = bed.ask(model, task.request, "--yes")
    return problem_with(before, cells(bed.files), task.changes), run


@dataclass
class Table:
    """Prints a line per request, and counts the right ones."""

    title: str
    right: int = 0
    asked: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        print(f"\n{self.title}", flush=True)

    def add(self, request: str, problem: str | None, run: AgentRun) -> None:
        self.asked += 1
        self.right += problem is None
        self.seconds += run.seconds
        mark = "right" if problem is None else "WRONG"
        print(f"  {mark}  {run.seconds:6.1f} s  {run.output_tokens:4} tokens  {request}", flush=True)
        if problem is not None:
            print(f"           {problem}: {run.summary()}", flush=True)

    def end(self) -> "Table":
        each = self.seconds / max(self.asked, 1)
        print(f"  {self.right} of {self.asked} right, {each:.1f} s each", flush=True)
        return self


def measure_qwen(bed: TestBed, parts: set[str], text_requests: int, smoke: bool) -> list[str]:
    """The parts that are below their minimum."""
    below_minimum, summary = [], []
    if "singles" in parts:
        table = Table("Single calls, constrained by a schema; the workbooks are checked afterwards")
        for single in SMOKE_SINGLES if smoke else SINGLES:
            table.add(single.request, *judge_single(bed, "qwen-schema", single, "--yes"))
        summary.append(table.end())
        if table.right < math.ceil(MIN_RIGHT_SINGLES * table.asked):
            below_minimum.append(f"single calls: {table.right} of {table.asked}")
    if "tasks" in parts:
        table = Table("Tasks of several steps, constrained by a schema")
        for task in TASKS[:1] if smoke else TASKS:
            table.add(task.request, *judge_task(bed, "qwen-schema", task))
        summary.append(table.end())
        if table.right < math.ceil(MIN_RIGHT_TASKS * table.asked):
            below_minimum.append(f"tasks: {table.right} of {table.asked}")
    if "text" in parts:
        table = Table("Single calls, written as text; planned only")
        for single in SINGLES[:: max(1, len(SINGLES) // text_requests)][:text_requests]:
            table.add(single.request, *judge_single(bed, "qwen-text", single, "--plan-only"))
        summary.append(table.end())
    print("\n| what | right | of | seconds each |\n|---|---|---|---|")
    for table in summary:
        print(f"| {table.title} | {table.right} | {table.asked} | {table.seconds / max(table.asked, 1):.1f} |")
    return below_minimum


def measure_smol(bed: TestBed) -> list[str]:
    """A model that is too weak for tools: its answer must be streamed, and every run must end in a known state."""
    print("\nA model that is too weak for tools")
    below_minimum = []
    requests = [("smol-text", "Say hello in one short sentence."), ("smol-text", SINGLES[0].request)]
    requests += [("smol-schema", SINGLES[1].request), ("smol-schema", TASKS[0].request)]
    for at, (model, request) in enumerate(requests):
        write_workbooks(bed.files)
        run = bed.ask(model, request, "--yes", timeout="30s")
        deltas = sum(update.get("update") == "answer_delta" for update in run.events)
        state = run.ended.get("state", "none")
        answer = run.ended.get("answer") or run.ended.get("message") or run.stderr.strip()
        print(f"  {state:9}  exit {run.code}  {deltas:3} pieces  {run.seconds:5.1f} s  {request}\n           {answer[:200]!r}")
        if run.code not in range(7) or state not in FINAL_STATES or not answer:
            below_minimum.append(f"{model}: `{request}` ended as {state} with exit code {run.code}")
        if at == 0 and state == "answered" and deltas < 2:
            below_minimum.append("the answer of smol-text did not stream")
    return below_minimum


def main() -> None:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser = argparse.ArgumentParser(prog="just agent-quality", description=__doc__)
    parser.add_argument("--toolyard", type=pathlib.Path, default=os.environ.get("TOOLYARD_BIN", target / "release" / "toolyard"), help="the binary")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="for the model; 1 on a busy machine")
    parser.add_argument("--only", nargs="+", choices=["singles", "tasks", "text", "smol"], help="only these parts")
    parser.add_argument("--text", type=int, default=len(SINGLES), help="number of single calls that are requested as text")
    parser.add_argument("--smoke", action="store_true", help="three single calls, as CI does")
    parser.add_argument("--qwen", metavar="URL", help="URL of a running model, such as http://127.0.0.1:8080/v1")
    options = parser.parse_args()
    parts = set(options.only or (["singles"] if options.smoke else ["singles", "tasks", "text", "smol"]))
    below_minimum = []
    with tempfile.TemporaryDirectory() as temporary:
        bed = TestBed(pathlib.Path(temporary), options.toolyard.resolve())
        with excel_server(bed.files) as excel:
            if parts & {"singles", "tasks", "text"}:
                with local_model("qwen", options.threads, options.qwen) as url:
                    bed.write_settings(excel, {"qwen": url})
                    below_minimum += measure_qwen(bed, parts, max(1, options.text), options.smoke)
            if "smol" in parts:
                with local_model("smol", options.threads, None) as url:
                    bed.write_settings(excel, {"smol": url})
                    below_minimum += measure_smol(bed)
    if below_minimum:
        sys.exit("agent-quality: below the minimum: " + "; ".join(below_minimum))


if __name__ == "__main__":
    main()
