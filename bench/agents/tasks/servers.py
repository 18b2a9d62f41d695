"""The real MCP servers of the suite, the site that one of them reads, and the settings that name them."""

import contextlib
import functools
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from world import World

PARTS = Path(os.environ["TOOLYARD_PARTS"])
SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


def server_settings(world: World) -> str:
    """Servers as a person has them: over stdio, each with the folder or file it works on, trusted."""
    node = PARTS / "node/node_modules/.bin"
    commands = {
        "excel": [PARTS / "excel-0.1.8/bin/excel-mcp-server", "stdio"],
        "filesystem": ["node", node / "mcp-server-filesystem", world.docs],
        "git": [PARTS / "git/bin/mcp-server-git", "--repository", world.project],
        "memory": ["node", node / "mcp-server-memory"],
        "sqlite": [PARTS / "sqlite/bin/mcp-server-sqlite", "--db-path", world.database],
        "time": [PARTS / "time/bin/mcp-server-time"],
        # It refuses addresses of this machine by default.
        "fetch": [PARTS / "fetch/bin/mcp-server-fetch", "--allow-private-ips", "--ignore-robots-txt"],
    }
    text = ""
    for name, (program, *arguments) in commands.items():
        text += f"[servers.{name}]\ncommand = {json.dumps(str(program))}\nargs = {json.dumps([str(each) for each in arguments])}\n"
        text += "trusted = true\n"
        if name == "memory":
            text += f"env = {{ MEMORY_FILE_PATH = {json.dumps(str(world.memory))} }}\n"
        text += "\n"
    return text


@contextlib.contextmanager
def local_site(world: World, port: int) -> Iterator[str]:
    """Serves the site of the world; port 0 is any that is free."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=world.site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextlib.contextmanager
def local_model(name: str, threads: int, running_url: str | None) -> Iterator[str]:
    """The address of a local model, started unless it runs already."""
    if running_url:
        yield running_url
        return
    command = [SCRIPTS / "local-model", name, "0", str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            line = server.stdout.readline().split()
            if not line:
                raise SystemExit(f"agent-tasks: the model {name} did not start\n  hint: scripts/local-model {name} 0")
            yield line[0]
        finally:
            server.terminate()
