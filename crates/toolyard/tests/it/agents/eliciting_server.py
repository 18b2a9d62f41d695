"""A legacy MCP server whose tool elicits who signs, and records the response: eliciting_server.py RECORD [EXTRA_WORDS]"""
import json, sys

record = sys.argv[1]
# EXTRA_WORDS make the title longer than a terminal is wide.
title = "Your name" + " and more" * int(sys.argv[2] if len(sys.argv) > 2 else 0)
QUESTION = {
    "message": "Who signs this?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "title": title}, "sure": {"type": "boolean"}},
        "required": ["name"],
    },
}
SIGN = {
    "name": "sign_paper",
    "description": "Sign a paper",
    "inputSchema": {"type": "object", "properties": {"paper": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def sign():
    send({"id": "question", "method": "elicitation/create", "params": QUESTION})
    for line in sys.stdin:
        response = json.loads(line)
        if response.get("id") == "question":
            with open(record, "a") as file:
                file.write(json.dumps(response.get("result", response.get("error")), sort_keys=True) + "\n")
            return {"content": [{"type": "text", "text": "signed"}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    if request["method"] == "initialize":
        server_info = {"name": "signer", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server_info}
    elif request["method"] == "tools/list":
        result = {"tools": [SIGN]}
    elif request["method"] == "tools/call":
        result = sign()
    else:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        continue
    send({"id": request["id"], "result": result})
