"""Runs one task with the binary under test and judges it: success, false success or wrong refusal."""

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servers import server_settings
from task import Task
from world import World

SUCCESS, FALSE_SUCCESS, WRONG_REFUSAL = "success", "false success", "wrong refusal"


@dataclass
class Trial:
    """What became of one task."""

    task: Task
    half: str
    outcome: str
    problem: str
    code: int
    seconds: float
    input_tokens: int
    output_tokens: int
    answer: str
    steps: list[str]

    def row(self) -> dict[str, Any]:
        fields = {key: value for key, value in vars(self).items() if key != "task"}
        return {"task": self.task.name, "language": self.task.language, "request": self.task.request, **fields}


class Bench:
    """The binary with its settings in a home folder of its own."""

    def __init__(self, world: World, binary: Path, timeout: str) -> None:
        self.world, self.binary, self.timeout = world, binary, timeout
        home = world.root / "home"
        self.settings = home / "config/toolyard/toolyard.toml"
        self.settings.parent.mkdir(parents=True)
        self.settings.write_text(server_settings(world))
        self.environment = {**os.environ, "HOME": str(home)}
        for kind in ("config", "data", "cache", "state"):
            self.environment[f"XDG_{kind.upper()}_HOME"] = str(home / kind)

    def set_model(self, name: str, url: str) -> None:
        """Sets the only model of the settings."""
        text = server_settings(self.world) + f'[models.{name}]\nmodel = "{name}"\nurl = "{url}"\ntool_calling = "schema"\n'
        text += 'first_token_timeout = "5m"\nbetween_tokens_timeout = "2m"\nextra_body = { seed = 7 }\n'
        self.settings.write_text(text)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The person works in the documents folder.
        return subprocess.run(
            [self.binary, *arguments], env=self.environment, cwd=self.world.docs, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )

    def meet_servers(self) -> None:
        """Starts all servers once, so that their tools are known."""
        tested = self.command("servers", "test")
        if tested.returncode != 0:
            raise SystemExit(f"agent-tasks: the servers do not answer:\n{tested.stdout}{tested.stderr}")

    def run(self, task: Task, half: str, model: str) -> Trial:
        self.world.reset()
        for prepare in task.given:
            prepare(self.world)
        before = self.world.state()
        start = time.monotonic()
        done = self.command("ask", "--yes", "--json", "--model", model, "--timeout", self.timeout, self.world.fill(task.request))
        seconds = time.monotonic() - start
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        answer, steps, usage = read_events(events)
        problem = task.problem(before, self.world.state(), answer) or ""
        if done.returncode != 0:
            outcome = WRONG_REFUSAL
            problem = problem or f"done, but exit code {done.returncode}"
        else:
            outcome = FALSE_SUCCESS if problem else SUCCESS
        said = answer or done.stderr.strip()[-400:]
        return Trial(task, half, outcome, problem, done.returncode, seconds, usage.get("input", 0), usage.get("output", 0), said, steps)


def read_events(events: list[dict[str, Any]]) -> tuple[str, list[str], dict[str, int]]:
    """The answer, a line per planned or changed step, and the tokens used."""
    answer, steps, usage = "", [], {}
    for update in events:
        if update.get("update") == "usage_changed":
            usage = update["usage"]
        event = update.get("event", {})
        if not isinstance(event, dict):
            continue
        match event.get("event"):
            case "planned":
                for step in event["plan"]["steps"]:
                    steps.append(f"{step['id']}: {step['tool_type']} {json.dumps(step.get('arguments', {}), ensure_ascii=False)}")
            case "plan_rejected":
                steps.append(f"rejected: {json.dumps(event.get('problems'), ensure_ascii=False)}")
            case "step_repaired":
                steps.append(f"{event['step']} again: {json.dumps(event['arguments'], ensure_ascii=False)}")
            case "step_ended":
                steps.append(f"{event['step']} ended: {json.dumps(event.get('outcome'), ensure_ascii=False)[:300]}")
            case "ended":
                answer = event["end"].get("answer") or event["end"].get("message") or ""
    return answer, steps, usage
