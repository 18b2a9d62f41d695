"""Replays a small tool list: `replay_server.py LIST [ROOT]`. `LIST` is a name in tool_lists.json beside this file, or `hang` for a
server that never answers. Calls are recorded in `calls`, one `LIST TOOL` per line."""
import hashlib, json, os, sys, time

folder = os.path.dirname(os.path.abspath(__file__))
name, root = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
if name == "hang":
    time.sleep(600)
with open(os.path.join(folder, "tool_lists.json")) as file:
    tools = json.load(file)[name]


def call(tool, arguments):
    with open(os.path.join(folder, "calls"), "a") as calls:
        calls.write(f"{name} {tool}\n")
    if tool == "read_text_file":
        path = os.path.realpath(arguments["path"])
        if not path.startswith(os.path.realpath(root) + "/"):
            return f"Access denied: {path} is outside {root}", True
        with open(path) as file:
            return file.read(), False
    if tool == "whoami":
        token = os.environ.get(f"{name.upper()}_TOKEN", "")
        return f"token {hashlib.sha256(token.encode()).hexdigest()[:8]}", False
    return f"{name} did {tool}", False


for line in sys.stdin:
    request = json.loads(line)
    method, parameters = request.get("method"), request.get("params") or {}
    if "id" not in request:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        result = {"tools": [{"name": tool, "description": text, "inputSchema": schema} for tool, text in tools.items()]}
    elif method == "tools/call":
        text, is_error = call(parameters["name"], parameters.get("arguments") or {})
        result = {"content": [{"type": "text", "text": text}], "isError": is_error}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
