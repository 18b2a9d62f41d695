"""Starts `toolyard serve --http` with a scripted model and a real MCP server, in a temporary home folder, for scripts that try its HTTP API.

TOOLYARD_BIN is the binary and SCRIPTED_MODEL_SERVER the model server; by default, they are those of the target folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TOOLYARD = os.environ.get("TOOLYARD_BIN", str(TARGET / "release/toolyard"))
MODEL_SERVER = os.environ.get("SCRIPTED_MODEL_SERVER", str(TARGET / "debug/examples/scripted_model_server"))
PARTS = Path(os.environ.get("TOOLYARD_PARTS", Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "toolyard-parts"))
TOKEN = "a-token-of-more-than-thirty-two-characters"
START_TIMEOUT_SECONDS = 60


def scripted_answer(question: str, steps: list[dict], answer: str) -> list[dict]:
    """Rules of the model: the first request with this question is answered with a plan, the second with the answer."""
    rules = [{"contains": question, "nth": 1, "text": json.dumps({"steps": steps})}]
    return [*rules, {"contains": question, "nth": 2, "text": answer}]


class LocalGateway:
    """A gateway; `url` is its address without a path. `rules` are the model's, `settings` are added to the settings file."""

    def __init__(self, rules: list[dict], settings: str = "", arguments: tuple[str, ...] = ()) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="toolyard-"))
        self._rules, self._settings, self._arguments = rules, settings, arguments
        self._processes: list[subprocess.Popen] = []
        # A temporary home folder, so that nothing of the user's is changed.
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
        self._environment.update(HOME=str(self.home), TOKEN=TOKEN)

    def __enter__(self) -> LocalGateway:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def _start(self) -> None:
        script = self.home / "script.jsonl"
        script.write_text("".join(json.dumps(rule) + "\n" for rule in self._rules))
        self._spawn("model", [MODEL_SERVER, "--script", str(script), "--log", str(self.home / "requests.jsonl")])
        model = self._wait_for("model", r"http://127\.0\.0\.1:\d+/v1")
        folder = self.home / ".config/toolyard"
        folder.mkdir(parents=True)
        (folder / "toolyard.toml").write_text(f"""
[models.scripted]
url = "{model}"
model = "scripted"
tool_calling = "schema"

[servers.time]
command = "{PARTS}/time/bin/mcp-server-time"

{self._settings}
[serve]
token = "${{TOKEN}}"
remote_approval = true
""")
        # The tools of a server are known after its first use.
        self.run("servers", "test")
        self._spawn("serve", [TOOLYARD, "serve", "--http", "127.0.0.1:0", *self._arguments])
        self.url = self._wait_for("serve", r"http://127\.0\.0\.1:\d+")

    def run(self, *arguments: str) -> str:
        """Runs a command of Toolyard and returns its output."""
        done = subprocess.run([TOOLYARD, *arguments], cwd=self.home, env=self._environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"toolyard {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    def log(self) -> str:
        return (self.home / "serve.log").read_text()

    def _spawn(self, name: str, command: list[str]) -> None:
        with open(self.home / f"{name}.log", "w") as log:
            self._processes.append(subprocess.Popen(command, cwd=self.home, env=self._environment, stdout=log, stderr=log))

    def _wait_for(self, name: str, pattern: str) -> str:
        process, deadline = self._processes[-1], time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            found = re.search(pattern, (self.home / f"{name}.log").read_text())
            if found:
                return found[0]
            time.sleep(0.05)
        sys.exit(f"{name} did not start:\n{(self.home / f'{name}.log').read_text()}")


def build_typescript_client() -> Path:
    """Compiles clients/typescript and returns its module."""
    folder = ROOT / "clients/typescript"
    if (folder / "dist/index.js").exists():
        return folder / "dist/index.js"
    if not (folder / "node_modules/.bin/tsc").exists():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder, check=True, stdout=sys.stderr)
    subprocess.run(["node_modules/.bin/tsc"], cwd=folder, check=True, stdout=sys.stderr)
    return folder / "dist/index.js"
