"""Runs a module that drives the browser, and turns what it prints into checks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from local_gateway import PARTS, TOKEN

from console.report import Report

FOLDER = Path(__file__).resolve().parent
TIMEOUT_SECONDS = 1200


def run_in_browser(report: Report, module: str, url: str, **fields: Any) -> list[dict]:
    """Runs `module`.mjs with a task. Lines with a `check` are added to the report; the other JSON lines are returned."""
    node = PARTS / "node/node_modules/.bin/node"
    packages = PARTS / "browser/node_modules"
    task = {
        "playwright": str(packages / "playwright-core/index.mjs"),
        "axe": str(packages / "@axe-core/playwright/dist/index.mjs"),
        "chromium": shutil.which("chromium"),
        "url": url,
        "token": TOKEN,
        "quick": report.is_quick,
        "screenshots": report.screenshots and str(report.screenshots),
        **fields,
    }
    others = []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(task, file)
        file.flush()
        command = [str(node) if node.exists() else "node", str(FOLDER / f"{module}.mjs"), file.name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        for line in process.stdout:
            try:
                value = json.loads(line)
            except ValueError:
                print(line, end="", file=sys.stderr)
                continue
            if "check" in value:
                report.add(value["check"], value["ok"], value["detail"])
            else:
                others.append(value)
        try:
            code = process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = "none after the time limit"
    if code != 0:
        report.add(f"{module}.mjs", False, f"exit code {code}")
    return others
