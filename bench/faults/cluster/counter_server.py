"""A stateful MCP server on stdio (2025-06-18): `count` counts its own calls, `ask` asks the user for a word and returns it."""

import json
import os
import sys

TOOLS = [
    {"name": "count", "description": "Counts its calls.", "inputSchema": {"type": "object"}},
    {"name": "ask", "description": "Asks the user for a word.", "inputSchema": {"type": "object"}},
]
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main():
    counter, asked, waiting = 0, 0, {}
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "counter", "version": "1"}}
            send({"id": number, "result": result})
        elif method == "tools/list":
            send({"id": number, "result": {"tools": TOOLS}})
        elif method == "ping":
            send({"id": number, "result": {}})
        elif method == "tools/call" and message["params"]["name"] == "count":
            counter += 1
            send({"id": number, "result": {"content": [{"type": "text", "text": f"{os.getpid()} {counter}"}]}})
        elif method == "tools/call":
            asked += 1
            waiting[f"question-{asked}"] = number
            send({"id": f"question-{asked}", "method": "elicitation/create", "params": {"message": "Which word?", "requestedSchema": SCHEMA}})
        elif method is None and number in waiting:
            word = message.get("result", {}).get("content", {}).get("word", "no answer")
            send({"id": waiting.pop(number), "result": {"content": [{"type": "text", "text": word}]}})
        elif method and number is not None:
            send({"id": number, "error": {"code": -32601, "message": "no such method"}})


main()
