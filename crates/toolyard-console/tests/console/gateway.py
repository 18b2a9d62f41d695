"""Starts gateways with a console: real servers, fixture servers, a scripted model, and links to sign in."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from local_gateway import MODEL_SERVER, PARTS, TOKEN, TOOLYARD, LocalGateway

from console.http_probe import sign_in

FIXTURE_SERVER = Path(__file__).resolve().parent / "fixture_server.py"
EVERYTHING = PARTS / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
NODE = PARTS / "node/node_modules/.bin/node"
SIGN_IN_LINK = r"http://127\.0\.0\.1:\d+/console/sign-in\?code=[A-Za-z0-9_-]+"
WRITE_WORKBOOK = """
import json, sys, openpyxl
workbook = openpyxl.Workbook()
workbook.active.title = sys.argv[2]
for row in json.loads(sys.argv[3]):
    workbook.active.append(row)
workbook.save(sys.argv[1])
"""
READ_WORKBOOK = """
import json, sys, openpyxl
sheet = openpyxl.load_workbook(sys.argv[1])[sys.argv[2]]
print(json.dumps([[cell.value for cell in row] for row in sheet.iter_rows()]))
"""


class ConsoleGateway(LocalGateway):
    """A gateway whose settings are written by `settings`, which gets the home folder."""

    def __init__(
        self,
        rules: list[dict],
        settings: Callable[[Path], str] = lambda _: "",
        *,
        serve: str = "remote_approval = true",
        arguments: tuple[str, ...] = (),
        is_testing_servers: bool = True,
    ) -> None:
        super().__init__(rules, arguments=arguments)
        self._write_settings, self._serve, self._is_testing_servers = settings, serve, is_testing_servers

    def _start(self) -> None:
        script = self.home / "script.jsonl"
        script.write_text("".join(json.dumps(rule) + "\n" for rule in self._rules))
        self._spawn("model", [MODEL_SERVER, "--script", str(script), "--log", str(self.home / "requests.jsonl")])
        model = self._wait_for("model", r"http://127\.0\.0\.1:\d+/v1")
        folder = self.home / ".config/toolyard"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "toolyard.toml").write_text(f"""
[models.scripted]
url = "{model}"
model = "scripted"
tool_calling = "schema"
price = {{ input = 1.0, output = 4.0 }}

{self._write_settings(self.home)}
[serve]
token = "${{TOKEN}}"
{self._serve}
""")
        if self._is_testing_servers:
            self.run("servers", "test")
        self._spawn("serve", [TOOLYARD, "serve", "--http", "127.0.0.1:0", *self._arguments])
        self.url = self._wait_for("serve", r"http://127\.0\.0\.1:\d+")

    def sign_in_link(self) -> str:
        """A one-time link, from `toolyard open`."""
        command = [TOOLYARD, "open", "--no-browser"]
        done = subprocess.run(command, cwd=self.home, env=self._environment, capture_output=True, text=True, timeout=30)
        found = re.search(SIGN_IN_LINK, done.stdout)
        if not found:
            raise AssertionError(f"toolyard open: exit code {done.returncode}: {done.stderr.strip()[:300]}")
        return found[0]

    def session_from_terminal(self) -> str | None:
        """Follows the one-time link that a second gateway prints on a terminal; returns the session."""
        terminal, stderr = pty.openpty()
        process = subprocess.Popen([TOOLYARD, "serve", "--http", "127.0.0.1:0"], cwd=self.home, env=self._environment, stdout=stderr, stderr=stderr)
        os.close(stderr)
        printed, deadline = "", time.monotonic() + 20
        try:
            while time.monotonic() < deadline:
                printed += os.read(terminal, 4096).decode(errors="replace")
                found = re.search(SIGN_IN_LINK + r"(?=\s)", printed)
                if found:
                    return sign_in(found[0])[1].session()
        except OSError:
            pass
        finally:
            process.terminate()
            process.wait(20)
            os.close(terminal)
        return None


def real_servers(home: Path) -> str:
    """Settings of excel-mcp-server, server-everything and mcp-server-time."""
    return f"""
[servers.excel]
command = "{PARTS}/excel-0.1.8/bin/excel-mcp-server"
args = ["stdio"]
env = {{ EXCEL_FILES_PATH = "{home}" }}

[servers.everything]
command = "{NODE}"
args = ["{EVERYTHING}", "stdio"]

[servers.time]
command = "{PARTS}/time/bin/mcp-server-time"
trusted = true

[approvals]
allow = ["*@time", "echo@everything", "read_data_from_excel@excel"]
"""


def fixture_server(home: Path, name: str, specification: dict, *, key: str | None = None, extra: str = "") -> str:
    """Settings of a server that says what `specification` says; see fixture_server.py."""
    file = home / f"server-{len(list(home.glob('server-*.json')))}.json"
    file.write_text(json.dumps(specification))
    command, arguments = json.dumps(sys.executable), json.dumps([str(FIXTURE_SERVER), str(file)])
    return f"\n[servers.{json.dumps(key or name)}]\ncommand = {command}\nargs = {arguments}\n{extra}\n"


def write_workbook(path: Path, sheet: str, rows: list[list]) -> None:
    command = [PARTS / "excel-0.1.8/bin/python", "-c", WRITE_WORKBOOK, path, sheet, json.dumps(rows)]
    subprocess.run(command, check=True)


def read_workbook(path: Path, sheet: str) -> list[list]:
    command = [PARTS / "excel-0.1.8/bin/python", "-c", READ_WORKBOOK, path, sheet]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def wait_until(what: str, run: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not run():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not after {seconds} s")
        time.sleep(0.1)


__all__ = ["TOKEN", "ConsoleGateway", "fixture_server", "read_workbook", "real_servers", "wait_until", "write_workbook"]
