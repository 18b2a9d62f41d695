"""An MCP server of one revision that records the trace context of each request: upstream.py REVISION RECORD"""
import json, sys

revision, record = sys.argv[1:]
is_modern = revision == "2026-07-28"


def tool(name):
    return {
        "name": name,
        "description": "Add numbers" if name == "add" else "Fail",
        "inputSchema": {"type": "object", "properties": {"a": {}}},
        "annotations": {"readOnlyHint": True},
    }


def answer(method, params):
    if method == "server/discover" and is_modern:
        return {"supportedVersions": [revision], "capabilities": {"tools": {}}, "resultType": "complete"}
    if method == "initialize" and not is_modern:
        info = {"name": "upstream", "version": "1"}
        return {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [tool("add"), tool("fail")], "ttlMs": 1000, "cacheScope": "public", "resultType": "complete"}
    if method == "tools/call":
        is_error = params["name"] == "fail"
        content = [{"type": "text", "text": "it broke" if is_error else "3"}]
        return {"content": content, "isError": is_error, "resultType": "complete"}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    params = request.get("params", {})
    with open(record, "a") as file:
        file.write(json.dumps({"method": request["method"], "meta": params.get("_meta", {})}) + "\n")
    result = answer(request["method"], params)
    response = {"result": result} if result else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **response}), flush=True)
