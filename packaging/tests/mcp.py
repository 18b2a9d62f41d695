"""Uses an installed program as its users do: its version, MCP over stdio, MCP over HTTP."""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from processes import free_port

TIMEOUT_SECONDS = 30
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "packages", "version": "1"}}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


class Program:
    """A command that starts the program, with its environment and the folder that it has as home."""

    def __init__(self, command: list, home: Path, inner_home: str | None = None, **variables: str):
        self.command = [str(part) for part in command]
        self.home = home
        self.environment = {"PATH": os.environ["PATH"], "HOME": inner_home or str(home), **variables}

    def popen(self, *arguments: str, **options) -> subprocess.Popen:
        return subprocess.Popen([*self.command, *arguments], env=self.environment, cwd="/", **options)

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        options = {"capture_output": True, "text": True, "timeout": TIMEOUT_SECONDS, "stdin": subprocess.DEVNULL}
        return subprocess.run([*self.command, *arguments], env=self.environment, cwd="/", **options)


def check_version(program: Program, version: str) -> None:
    printed = program.run("--version")
    expect(printed.stdout.strip() == f"toolyard {version}", f"--version printed {printed.stdout!r} {printed.stderr!r}")
    wrong = program.run("frobnicate")
    expect(wrong.returncode == 2, f"a wrong command ended with {wrong.returncode}")


def check_stdio(program: Program) -> None:
    """MCP over the standard streams: stdout has messages only, and the program ends with its input."""
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "calculate", "arguments": {"expression": "6*7"}}},
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = program.popen("serve", "--stdio", **pipes)
    answers = {}
    try:
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            while "id" in message and message["id"] not in answers:
                line = process.stdout.readline()
                expect(line, f"the program ended: {process.stderr.read() if not line else ''}")
                answer = json.loads(line)
                answers[answer.get("id")] = answer
        process.stdin.close()
        expect(process.wait(TIMEOUT_SECONDS) == 0, f"stdio ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
    names = [tool["name"] for tool in answers[2]["result"]["tools"]]
    expect("calculate" in names, f"tools over stdio: {names}")
    expect(answers[3]["result"]["content"][0]["text"] == "42", f"call over stdio: {answers[3]}")


class Gateway:
    """A gateway over HTTP at a free port; stops with SIGTERM."""

    def __init__(self, program: Program, *arguments: str, port: int | None = None, command: list[str] | None = None, streams: dict | None = None):
        self.port = port or free_port()
        self.program = program
        # Not a pipe: a process that is left behind would keep it open.
        self.log = tempfile.TemporaryFile()
        command = command or ["serve", "--http", f"127.0.0.1:{self.port}"]
        self.process = program.popen(*command, *arguments, **({"stdin": subprocess.DEVNULL, "stderr": self.log} | (streams or {})))

    def __enter__(self) -> "Gateway":
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                status = self.get("/readyz")
                expect(status["status"] == "ready", f"not ready: {status}")
                return self
            except (urllib.error.URLError, ConnectionError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.process.kill()
                    raise AssertionError(f"the gateway did not start: {self.messages()}") from None
                time.sleep(0.05)

    def __exit__(self, *_) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the gateway did not stop after SIGTERM") from None
        expect(code == 0, f"the gateway ended with {code}: {self.messages()}")

    def messages(self) -> str:
        self.log.seek(0)
        return self.log.read().decode()

    def get(self, path: str) -> dict:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=TIMEOUT_SECONDS) as answer:
            return json.loads(answer.read())

    def token(self) -> str:
        return (self.program.home / ".local/share/toolyard/serve/token").read_text().strip()

    def tools(self) -> list[str]:
        session, _ = self.post(None, 1, "initialize", INITIALIZE)
        self.post(session, None, "notifications/initialized", {})
        _, answer = self.post(session, 2, "tools/list", {})
        return [tool["name"] for tool in answer["result"]["tools"]]

    def post(self, session: str | None, number: int | None, method: str, params: dict) -> tuple[str | None, dict | None]:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
        headers = HEADERS | {"Authorization": f"Bearer {self.token()}"} | ({"Mcp-Session-Id": session} if session else {})
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/mcp", json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            text = answer.read().decode()
            session = answer.headers.get("Mcp-Session-Id") or session
        # An event stream or one message.
        events = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
        found = [json.loads(event) for event in events if event] or ([json.loads(text)] if text.strip() else [])
        return session, next((item for item in found if item.get("id") == number), None)


def check_http(program: Program, *arguments: str, **options) -> None:
    with Gateway(program, *arguments, **options) as gateway:
        expect("calculate" in gateway.tools(), "tools over HTTP")


def check_all(program: Program, version: str) -> None:
    check_version(program, version)
    check_stdio(program)
    check_http(program)


def expect(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)
