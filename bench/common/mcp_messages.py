"""Messages of both families of MCP revisions over HTTP: headers and bodies of requests, and reading responses. Pure functions."""

import json

MODERN, LEGACY = "2026-07-28", "2025-11-25"
ACCEPT = ("Accept", "application/json, text/event-stream")


def initialize_message(client, capabilities=None):
    """The first request of a legacy session."""
    params = {"protocolVersion": LEGACY, "capabilities": capabilities or {}, "clientInfo": {"name": client, "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def legacy_headers(session):
    return [ACCEPT, ("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)]


def modern_headers(method, name=None):
    """`name` is that of the tool, prompt or resource which the request is about."""
    return [ACCEPT, ("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), *([("Mcp-Name", name)] if name else [])]


def modern_meta(client, capabilities=None):
    """`_meta` of a request, which says what a legacy client says once per session."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
    }


def last_message(content):
    """The response in a JSON body or in the last event of an event stream; `{}` if there is none."""
    text = content.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return json.loads(text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return json.loads(data[-1]) if data else {}


def result_text(result):
    """The text of the result of a tool call."""
    return "".join(block.get("text", "") for block in result.get("content", []))


def answer_text(message):
    """The first text of a tool's result; the whole message as JSON if there is none."""
    content = message.get("result", {}).get("content") or [{}]
    return content[0].get("text", json.dumps(message))
