"""Runs one task with the binary under test and judges what was done, and what the receipt of the run says of it."""

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

SUCCESS, WRONG, REFUSAL = "success", "wrong", "refusal"
# First words of the names of tools whose success changes the world, or leaves it as it is because it already was so.
CHANGING_WORDS = {"add", "append", "apply", "copy", "create", "delete", "edit", "git_add", "git_commit", "git_create", "insert", "merge", "move", "rename", "write"}


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
    review: str
    receipt_error: str
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
        text += 'timeout = "5m"\nextra_body = { seed = 7 }\n'
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
        answer, steps, usage, end = read_events(events)
        after = self.world.state()
        problem = task.problem(before, after, answer) or ""
        if done.returncode != 0:
            outcome = REFUSAL
            problem = problem or f"done, but exit code {done.returncode}"
        else:
            outcome = WRONG if problem else SUCCESS
        said = answer or done.stderr.strip()[-400:]
        review = (end.get("review") or {}).get("fulfilled", "")
        receipt_error = wrong_receipt(end.get("effects", []), before != after)
        tokens = (usage.get("input", 0), usage.get("output", 0))
        return Trial(task, half, outcome, problem, done.returncode, seconds, *tokens, said, review, receipt_error, steps)


def wrong_receipt(effects: list[dict[str, Any]], is_changed: bool) -> str:
    """What a receipt says that the world contradicts. It sees no more than whether anything changed."""
    done = [effect for effect in effects if effect["state"] == "done"]
    # A call that failed may have changed something before it did, and the receipt does not deny it.
    denies_all = all(effect["state"] == "not_done" and effect.get("cause") != "failed" for effect in effects)
    if is_changed and denies_all:
        return "nothing was changed, says the receipt, but something was"
    first_words = {"_".join(effect["tool"].split("_")[: 2 if effect["tool"].startswith("git_") else 1]) for effect in done}
    if not is_changed and first_words & CHANGING_WORDS:
        return f"{[effect['tool'] for effect in done]} done, says the receipt, but nothing changed"
    return ""


def read_events(events: list[dict[str, Any]]) -> tuple[str, list[str], dict[str, int], dict[str, Any]]:
    """The answer, a line per planned or changed step, the tokens used, and the last event."""
    answer, steps, usage, end = "", [], {}, {}
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
                end = event
                answer = event["end"].get("answer") or event["end"].get("message") or ""
    return answer, steps, usage, end
