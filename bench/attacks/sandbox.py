"""A machine of its own for each attack: home folder, settings, hostile servers, gateway, terminal; all in a temporary folder."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOKEN = "attacker-knows-not-this-token-0123456789"


class Outcome:
    """What a command did: exit code, stdout, stderr."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def text(self):
        return self.out + self.err

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}: {self.text[-300:]!r}"


class HostileServer:
    """A server whose script the attacker may rewrite at any time."""

    def __init__(self, folder, name, script, options):
        self.name, self.options = name, options
        self.path = folder / f"{name}.json"
        self.script = script
        self.write()

    def write(self):
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.script))
        part.rename(self.path)

    def change(self, **script):
        self.script.update(script)
        self.write()

    def command(self):
        return [sys.executable, "-S", "-E", str(HERE / "hostile_server.py"), str(self.path)]

    def toml(self):
        program, *args = self.command()
        lines = [f"[servers.{self.name}]", f"command = {json.dumps(program)}", f"args = {json.dumps(args)}"]
        return "\n".join(lines + [f"{key} = {toml_value(value)}" for key, value in self.options.items()])

    def received(self):
        try:
            return [json.loads(line) for line in Path(f"{self.path}.log").read_text().splitlines()]
        except FileNotFoundError:
            return []

    def calls(self, tool=None):
        """The calls that reached the server."""
        calls = [message["params"] for message in self.received() if message.get("method") == "tools/call"]
        return [call for call in calls if tool in (None, call["name"])]

    def starts(self):
        return sum("started" in message for message in self.received())


def toml_value(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def tool(name, description="Does something", properties=None, required=(), **more):
    """A tool definition."""
    schema = {"type": "object", "properties": properties or {}, **({"required": list(required)} if required else {})}
    return {"name": name, "description": description, "inputSchema": schema, **more}


READ_ONLY = {"annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}}


class Sandbox:
    """A home folder with settings, and the commands that run in it."""

    def __init__(self, binary):
        self.binary = str(binary)
        self.path = Path(tempfile.mkdtemp(prefix="attack-"))
        self.home = self.path / "home"
        self.project = self.path / "project"
        self.config = self.home / ".config/toolyard/toolyard.toml"
        self.config.parent.mkdir(parents=True)
        self.project.mkdir()
        self.servers, self.processes, self.extra_env = {}, [], {}
        self.top = self.tables = ""

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.path, ignore_errors=True)

    def environment(self, extra=None):
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
        return {**kept, "HOME": str(self.home), "TOKEN": TOKEN, **self.extra_env, **(extra or {})}

    def server(self, name, tools=(), options=None, **script):
        """Adds a hostile server to the operator's settings."""
        script = {"tools": list(tools), **script}
        self.servers[name] = HostileServer(self.path, name, script, options or {})
        self.save()
        return self.servers[name]

    def settings(self, tables="", top=""):
        """Sets the operator's settings beside the servers."""
        self.tables, self.top = tables, top
        self.save()

    def save(self):
        servers = "\n\n".join(server.toml() for server in self.servers.values())
        serve = "" if "[serve]" in self.tables else '\n[serve]\ntoken = "${TOKEN}"\nsurface = "full"\n'
        self.config.write_text(f"{self.top}\n{servers}\n{serve}\n{self.tables}\n")

    def run(self, *args, stdin=None, timeout=60, env=None, cwd=None):
        done = subprocess.run(
            [self.binary, *map(str, args)],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env=self.environment(env),
            cwd=cwd or self.project,
            **({"stdin": subprocess.DEVNULL} if stdin is None else {}),
        )
        return Outcome(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def call(self, name, arguments=None, *options, **more):
        return self.run("call", name, "--args", json.dumps(arguments or {}), *options, **more)

    def meet(self):
        """Starts all servers once, so that their tools are known and pinned."""
        return self.run("servers", "test")

    def give_name(self, server, tool):
        """Decides that a name that several servers have means the tool of this one; undecided, it reaches none."""
        return self.run("servers", "approve", server, tool, "--take-names", "--yes")

    def serve(self, *options, env=None, cwd=None):
        """Starts a gateway on HTTP and returns its base address."""
        log = open(self.path / f"serve-{len(self.processes)}.log", "wb+")
        process = subprocess.Popen(
            [self.binary, "serve", "--http", "127.0.0.1:0", *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=self.environment(env),
            cwd=cwd or self.project,
        )
        self.processes.append(process)
        for _ in range(600):
            text = Path(log.name).read_text(errors="replace")
            found = re.search(r"http://127\.0\.0\.1:\d+", text)
            if found:
                self.gateway, self.gateway_log = process, Path(log.name)
                return found.group(0)
            if process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"the gateway did not start: {text}")

    def serve_stdio(self, *options):
        process = subprocess.Popen(
            [self.binary, "serve", "--stdio", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment(),
            cwd=self.project,
        )
        self.processes.append(process)
        return process

    def at_terminal(self, *args, answers=(), typed_ahead="", timeout=30, env=None, cwd=None):
        """Runs a command at a pseudo-terminal and types each answer once its text was written. Returns all output.

        An answer may be a function: the attacker acts while the question is on the screen, then the answer is typed.
        """
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(cwd or self.project)
            os.execve(self.binary, [self.binary, *map(str, args)], self.environment({"TERM": "xterm-256color", **(env or {})}))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        if typed_ahead:
            os.write(terminal, typed_ahead.encode())
        answers, output, searched = list(answers), b"", 0
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    piece = os.read(terminal, 1 << 16)
                except OSError:
                    break
                if not piece:
                    break
                output += piece
            elif answers and answers[0][0].encode() in output[searched:]:
                searched = len(output)
                answer = answers.pop(0)[1]
                os.write(terminal, (answer() if callable(answer) else answer).encode())
        else:
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return Outcome(code, output.decode(errors="surrogateescape"), "")

    def stored(self):
        """Everything that Toolyard has written below the home folder, and an export of the store, as one text."""
        export = self.path / f"export-{time.monotonic_ns()}.jsonl"
        self.run("store", "export", export)
        texts = [export.read_text(errors="replace") if export.exists() else ""]
        for blob in re.findall(r"[0-9a-f]{40,}", texts[0]):
            texts.append(bytes.fromhex(blob[: len(blob) // 2 * 2]).decode(errors="replace"))
        for folder in (".local", ".cache", ".config", ".state"):
            for file in sorted((self.home / folder).rglob("*")):
                if file.is_file() and file != self.config and not file.is_symlink():
                    texts.append(file.read_bytes().decode(errors="replace"))
        return "\n".join(texts)


def wait_until(condition, timeout=10.0):
    """Waits until a condition holds; returns whether it did."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def documents(*patterns, files=("SECURITY.md",)):
    """Whether the documents of the project admit something: each pattern occurs."""
    text = " ".join((HERE.parents[1] / file).read_text() for file in files)
    text = re.sub(r"\s+", " ", text)
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
