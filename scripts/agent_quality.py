"""Asks an agent of the release binary what agent_quality_cases.py has, and judges what it did; see scripts/agent-quality."""

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

from agent_quality_cases import SINGLES, TASKS, Single, Task, cells, is_right_call, problem_with, write_workbooks

HERE = pathlib.Path(__file__).resolve().parent
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
# Of all requests; what the project promises is 18 of 20 and 2 of 3.
FLOOR_SINGLES, FLOOR_TASKS = 0.9, 2 / 3
# One request in English, one in Chinese, one that writes.
SMOKE_SINGLES = [SINGLES[0], SINGLES[1], SINGLES[-1]]
# States in which a run may end; anything else is a bug.
ENDS = {"answered", "failed", "refused", "cancelled", "limit_reached", "planned", "suspended"}


@dataclass
class Did:
    """What an agent did with one request, from its event lines."""

    code: int
    seconds: float
    events: list[dict[str, Any]]
    talk: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ended: dict[str, Any] = field(default_factory=dict)
    written: int = 0

    def __post_init__(self) -> None:
        steps: dict[str, tuple[str, dict[str, Any]]] = {}
        for news in self.events:
            if news.get("update") == "usage_changed":
                self.written = news["usage"]["output"]
            event = news.get("event", {})
            match event.get("event") if isinstance(event, dict) else None:
                case "planned":
                    for step in event["plan"]["steps"]:
                        steps[step["id"]] = (step["tool_type"], step.get("arguments", {}))
                case "step_repaired":
                    steps[event["step"]] = (steps[event["step"]][0], event["arguments"])
                case "ended":
                    self.ended = event["end"]
        self.calls = list(steps.values())

    def shown(self) -> str:
        calls = ", ".join(f"{tool}({json.dumps(given, ensure_ascii=False)})" for tool, given in self.calls)
        said = self.ended.get("answer") or self.ended.get("message") or self.talk.strip()[-300:]
        return (calls or f"no call: {said}")[:700]


class TestBed:
    """Servers, settings and workbooks in a folder of their own, and the binary that is asked."""

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
            for way in ("schema", "text"):
                text += f'\n[models.{name}-{way}]\nmodel = "{name}"\nurl = "{url}"\ntool_calling = "{way}"\n'
                text += 'first_token_timeout = "5m"\nbetween_tokens_timeout = "2m"\nextra_body = { seed = 7 }\n'
        self.settings.write_text(text)
        known = subprocess.run([self.binary, "servers", "test"], env=self.environment, capture_output=True, text=True)
        if known.returncode != 0:
            sys.exit(f"agent-quality: the servers do not answer:\n{known.stdout}{known.stderr}")

    def ask(self, model: str, request: str, *options: str, timeout: str = "10m") -> Did:
        command = [self.binary, "ask", "--agent", "clerk", "--model", model, "--json", "--timeout", timeout]
        begun = time.monotonic()
        done = subprocess.run([*command, *options, request], env=self.environment, capture_output=True, text=True)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return Did(done.returncode, time.monotonic() - begun, events, done.stderr)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


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
def local_model(name: str, threads: int, given: str | None):
    if given:
        yield given
        return
    command = [HERE / "local-model", name, "0", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            line = server.stdout.readline().split()
            if not line:
                sys.exit(f"agent-quality: the model {name} did not start; try: scripts/local-model {name} 0")
            yield line[0]
        finally:
            server.terminate()


def judge_single(bed: TestBed, model: str, single: Single, *options: str) -> tuple[str | None, Did]:
    """What is wrong, or nothing; a request is carried out, unless only a plan is wanted."""
    write_workbooks(bed.files)
    before = cells(bed.files)
    did = bed.ask(model, single.request, *options)
    if len(did.calls) != 1:
        return f"{len(did.calls)} calls", did
    if not is_right_call(single, *did.calls[0]):
        return "not the right call", did
    wanted = {} if "--plan-only" in options else single.changes
    return problem_with(before, cells(bed.files), wanted), did


def judge_task(bed: TestBed, model: str, task: Task) -> tuple[str | None, Did]:
    write_workbooks(bed.files)
    before = cells(bed.files)
    did = bed.ask(model, task.request, "--yes")
    return problem_with(before, cells(bed.files), task.changes), did


@dataclass
class Table:
    """Lines for people, and how many were right."""

    title: str
    right: int = 0
    asked: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        print(f"\n{self.title}", flush=True)

    def add(self, request: str, problem: str | None, did: Did) -> None:
        self.asked += 1
        self.right += problem is None
        self.seconds += did.seconds
        mark = "right" if problem is None else "WRONG"
        print(f"  {mark}  {did.seconds:6.1f} s  {did.written:4} tokens  {request}", flush=True)
        if problem is not None:
            print(f"           {problem}: {did.shown()}", flush=True)

    def end(self) -> "Table":
        each = self.seconds / max(self.asked, 1)
        print(f"  {self.right} of {self.asked} right, {each:.1f} s each", flush=True)
        return self


def measure_qwen(bed: TestBed, wanted: set[str], in_text: int, smoke: bool) -> list[str]:
    """What is below its floor."""
    short, summary = [], []
    if "singles" in wanted:
        table = Table("Single calls, held to a schema; what was written is looked at in the workbooks")
        for single in SMOKE_SINGLES if smoke else SINGLES:
            table.add(single.request, *judge_single(bed, "qwen-schema", single, "--yes"))
        summary.append(table.end())
        if table.right < math.ceil(FLOOR_SINGLES * table.asked):
            short.append(f"single calls: {table.right} of {table.asked}")
    if "tasks" in wanted:
        table = Table("Tasks of several steps, held to a schema")
        for task in TASKS[:1] if smoke else TASKS:
            table.add(task.request, *judge_task(bed, "qwen-schema", task))
        summary.append(table.end())
        if table.right < math.ceil(FLOOR_TASKS * table.asked):
            short.append(f"tasks: {table.right} of {table.asked}")
    if "text" in wanted:
        table = Table("Single calls, in text; only planned")
        for single in SINGLES[:: max(1, len(SINGLES) // in_text)][:in_text]:
            table.add(single.request, *judge_single(bed, "qwen-text", single, "--plan-only"))
        summary.append(table.end())
    print("\n| what | right | of | seconds each |\n|---|---|---|---|")
    for table in summary:
        print(f"| {table.title} | {table.right} | {table.asked} | {table.seconds / max(table.asked, 1):.1f} |")
    return short


def measure_smol(bed: TestBed) -> list[str]:
    """A model that is too weak: its words stream, and every run ends as one should."""
    print("\nA model that is too weak for tools")
    short = []
    requests = [("smol-text", "Say hello in one short sentence."), ("smol-text", SINGLES[0].request)]
    requests += [("smol-schema", SINGLES[1].request), ("smol-schema", TASKS[0].request)]
    for at, (model, request) in enumerate(requests):
        write_workbooks(bed.files)
        did = bed.ask(model, request, "--yes", timeout="30s")
        deltas = sum(news.get("update") == "answer_delta" for news in did.events)
        state = did.ended.get("state", "none")
        said = did.ended.get("answer") or did.ended.get("message") or did.talk.strip()
        print(f"  {state:9}  exit {did.code}  {deltas:3} pieces  {did.seconds:5.1f} s  {request}\n           {said[:200]!r}")
        if did.code not in range(7) or state not in ENDS or not said:
            short.append(f"{model}: `{request}` ended as {state} with exit code {did.code}")
        if at == 0 and state == "answered" and deltas < 2:
            short.append("the answer of smol-text did not stream")
    return short


def main() -> None:
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent / "target"))
    parser = argparse.ArgumentParser(prog="scripts/agent-quality", description=__doc__)
    parser.add_argument("--toolyard", type=pathlib.Path, default=target / "release" / "toolyard", help="the binary")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="for the model; 1 on a busy machine")
    parser.add_argument("--only", nargs="+", choices=["singles", "tasks", "text", "smol"], help="only these parts")
    parser.add_argument("--text", type=int, default=len(SINGLES), help="so many single calls are asked for in text")
    parser.add_argument("--smoke", action="store_true", help="three single calls, as CI does")
    parser.add_argument("--qwen", metavar="URL", help="a model that runs already, such as http://127.0.0.1:8080/v1")
    options = parser.parse_args()
    wanted = set(options.only or (["singles"] if options.smoke else ["singles", "tasks", "text", "smol"]))
    short = []
    with tempfile.TemporaryDirectory() as temporary:
        bed = TestBed(pathlib.Path(temporary), options.toolyard.resolve())
        with excel_server(bed.files) as excel:
            if wanted & {"singles", "tasks", "text"}:
                with local_model("qwen", options.threads, options.qwen) as url:
                    bed.write_settings(excel, {"qwen": url})
                    short += measure_qwen(bed, wanted, max(1, options.text), options.smoke)
            if "smol" in wanted:
                with local_model("smol", options.threads, None) as url:
                    bed.write_settings(excel, {"smol": url})
                    short += measure_smol(bed)
    if short:
        sys.exit("agent-quality: too little: " + "; ".join(short))


if __name__ == "__main__":
    main()
