"""An MCP server (legacy, stdio) with the tool `wait`, which takes 20 ms. Calls do not wait for each other."""

import json
import sys
import threading
import time

TOOL = {
    "name": "wait",
    "description": "Waits 20 ms",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
lock = threading.Lock()


def respond(request, result):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()


def call(request):
    time.sleep(0.02)
    respond(request, {"content": [{"type": "text", "text": "done"}]})


for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    if "id" not in request:
        continue
    if method == "initialize":
        info = {"name": "waiting", "version": "1"}
        respond(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        respond(request, {"tools": [TOOL]})
    elif method == "tools/call":
        threading.Thread(target=call, args=(request,), daemon=True).start()
    else:
        respond(request, {})
