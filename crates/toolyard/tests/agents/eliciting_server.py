"""An MCP server of the legacy era whose tool asks who signs before it goes on, and writes down what it was told."""
import json, sys

told = sys.argv[1]
# A longer title than any terminal is wide, where one is wanted.
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
        answer = json.loads(line)
        if answer.get("id") == "question":
            with open(told, "a") as file:
                file.write(json.dumps(answer.get("result", answer.get("error")), sort_keys=True) + "\n")
            return {"content": [{"type": "text", "text": "signed"}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    if request["method"] == "initialize":
        with open(told + ".client", "w") as file:
            file.write(json.dumps(request["params"]["capabilities"]))
        about = {"name": "signer", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    elif request["method"] == "tools/list":
        result = {"tools": [SIGN]}
    elif request["method"] == "tools/call":
        result = sign()
    else:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        continue
    send({"id": request["id"], "result": result})
