"""Part `live`: how soon the plan shows an event, and how a plan of 200 steps is drawn."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from console.browser import run_in_browser
from console.gateway import ConsoleGateway, fixture_server
from console.report import Report

SMALL_QUESTION = "Wait twenty times."
LARGE_QUESTION = "Wait two hundred times."
CONTENDED_QUESTION = "Wait twenty times, all at once."
PAUSE = {
    "name": "pause",
    "description": "Waits for a number of milliseconds.",
    "inputSchema": {"type": "object", "properties": {"ms": {"type": "integer"}, "label": {"type": "string"}}, "required": ["ms", "label"]},
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}


def pause_step(layer: int, column: int, width: int, milliseconds: int) -> dict:
    """A step that depends on two of the layer before."""
    dependencies = [f"s{layer - 1}_{column}", f"s{layer - 1}_{(column + 1) % width}"] if layer else []
    arguments = {"ms": milliseconds, "label": f"{layer}-{column}"}
    fields = {"id": f"s{layer}_{column}", "tool_type": "pause", "arguments": arguments, "dependencies": list(dict.fromkeys(dependencies))}
    return {**fields, "description": f"Wait in row {layer + 1}, column {column + 1}"}


def plan(layers: int, width: int, milliseconds: int) -> str:
    return json.dumps({"steps": [pause_step(layer, column, width, milliseconds + 30 * column) for layer in range(layers) for column in range(width)]})


def rules() -> list[dict]:
    plans = {SMALL_QUESTION: plan(5, 4, 350), LARGE_QUESTION: plan(25, 8, 5), CONTENDED_QUESTION: plan(1, 20, 400)}
    # The plan arrives after the page was opened, so that it is drawn live.
    rules = [{"contains": question, "nth": 1, "text": text, "delay_ms": 1500} for question, text in plans.items()]
    return rules + [{"contains": question, "text": "Waited."} for question in plans]


def settings(home: Path) -> str:
    return fixture_server(home, "pauses", {"tools": [PAUSE]}, extra="trusted = true")


def check_script(report: Report) -> None:
    """The script of the page with a simulated clock and network."""
    answer = subprocess.run(["node", Path(__file__).with_name("live_script.mjs")], check=True, capture_output=True, text=True)
    for line in answer.stdout.splitlines():
        found = json.loads(line)
        report.add(found["check"], found["ok"], found["detail"])


def run(report: Report) -> None:
    check_script(report)
    with ConsoleGateway(rules(), settings) as gateway:
        questions = {"small": SMALL_QUESTION, "large": LARGE_QUESTION, "contended": CONTENDED_QUESTION}
        run_in_browser(report, "live", gateway.url, link=gateway.sign_in_link(), questions=questions)
