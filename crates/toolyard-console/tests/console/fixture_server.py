"""A small MCP server on stdio that says what a JSON file says: fixture_server.py FILE.

Fields of the file: `server_info`, `instructions`, `tools`, `prompts`, `prompt_text`, `results` and `errors` by the name of a tool, and `stderr`, lines
that are written at the start and at each call. A call with the argument `ms` lasts that long; calls are answered concurrently.
"""

from __future__ import annotations

import json
import sys
import threading
import time

with open(sys.argv[1]) as file:
    SPECIFICATION = json.load(file)
OUTPUT = threading.Lock()


def respond(request: dict, **fields: object) -> None:
    with OUTPUT:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **fields}), flush=True)


def log() -> None:
    for line in SPECIFICATION.get("stderr", []):
        print(line, file=sys.stderr, flush=True)


def call(request: dict) -> None:
    parameters = request["params"]
    name, arguments = parameters["name"], parameters.get("arguments") or {}
    log()
    time.sleep(arguments.get("ms", 0) / 1000)
    if name in SPECIFICATION.get("errors", {}):
        respond(request, error={"code": -32000, "message": SPECIFICATION["errors"][name]})
        return
    default = {"content": [{"type": "text", "text": f"waited {arguments.get('ms', 0)} ms"}]}
    respond(request, result=SPECIFICATION.get("results", {}).get(name, default))


def initialize() -> dict:
    capabilities = {"tools": {}, "prompts": {}}
    fields = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": SPECIFICATION.get("server_info", {"name": "fixture", "version": "1"})}
    if "instructions" in SPECIFICATION:
        fields["instructions"] = SPECIFICATION["instructions"]
    return fields


def answer(request: dict) -> None:
    method = request.get("method")
    if method == "tools/call":
        threading.Thread(target=call, args=(request,), daemon=True).start()
    elif method == "initialize":
        respond(request, result=initialize())
    elif method == "tools/list":
        respond(request, result={"tools": SPECIFICATION["tools"]})
    elif method == "prompts/list":
        respond(request, result={"prompts": SPECIFICATION.get("prompts", [])})
    elif method == "prompts/get":
        message = {"role": "user", "content": {"type": "text", "text": SPECIFICATION.get("prompt_text", "")}}
        respond(request, result={"messages": [message]})
    elif method == "ping":
        respond(request, result={})
    else:
        respond(request, error={"code": -32601, "message": "Method not found"})


log()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer(message)
