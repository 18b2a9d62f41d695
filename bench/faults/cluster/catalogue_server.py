"""An MCP server over stdio whose tools are in a file, one definition per line; it announces changes of the file.

usage: catalogue_server.py TOOLS STARTS
"""

import json
import os
import sys
import threading
import time

TOOLS, STARTS = sys.argv[1:]
OUTPUT = threading.Lock()


def send(message):
    with OUTPUT:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tools():
    with open(TOOLS) as file:
        lines = [line.split(" ", 1) for line in file.read().splitlines() if line]
    schema = {"type": "object", "properties": {}}
    return [{"name": name, "description": text, "inputSchema": schema, "annotations": {"readOnlyHint": True}} for name, text in lines]


def watch():
    before = os.stat(TOOLS).st_mtime_ns
    while True:
        time.sleep(0.02)
        now = os.stat(TOOLS).st_mtime_ns
        if now != before:
            before = now
            send({"method": "notifications/tools/list_changed"})


def answer(method):
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "catalogue", "version": "1"}}
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": str(os.getpid())}]}
    return {} if method == "ping" else None


with open(STARTS, "a") as file:
    file.write(f"{os.getpid()}\n")
time.sleep(0.5)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        if message.get("method") == "notifications/initialized":
            threading.Thread(target=watch, daemon=True).start()
        continue
    result = answer(message.get("method"))
    send({"id": message["id"], **({"result": result} if result is not None else {"error": {"code": -32601, "message": "method not found"}})})
