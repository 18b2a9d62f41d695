"""A caller of the laboratory: MCP of both revision families, and the HTTP API; failures of all three become kinds of one list."""

import json
import re

from http_client import Broken, Connection
from mcp_messages import ACCEPT, initialize_message, last_message, legacy_headers, modern_headers, modern_meta, result_text

# Errors reach MCP clients as text; the HTTP API has codes. Both become the code of the API.
TEXTS = (
    (re.compile(r"session with the server is gone"), "session_lost"),
    (re.compile(r"may have taken effect"), "outcome_unknown"),
    (re.compile(r"offers another definition|awaits approval"), "tool_not_approved"),
    (re.compile(r"did not answer|deadline passed"), "tool_timeout"),
    (re.compile(r"circuit|repeated failures|consecutive failures"), "circuit_open"),
    (re.compile(r"store does not say|cannot be reached|cannot reach the server|; retry in|nothing was sent|unavailable|not reachable|cannot be started|could not be"), "source_unavailable"),
    (re.compile(r"lost|connection|closed|reset|invalid response|unusable"), "response_lost"),
)


def kind_of_text(text):
    return next((kind for pattern, kind in TEXTS if pattern.search(text)), "other_error")


class Client:
    """A caller that the proxy has identified. `call` returns the outcome (`result` or a kind of failure), its text, and the gateway."""

    def __init__(self, port, caller, protocol):
        self.port, self.caller, self.protocol = port, caller, protocol
        self.http, self.session, self.number = Connection(port, key=None), None, 0

    def _headers(self, call_id, more=()):
        return [("X-Forwarded-User", self.caller), ("X-Lab-Call", call_id), *more]

    async def call(self, tool, arguments, call_id, timeout):
        try:
            if self.protocol == "api":
                return await self._call_api(tool, arguments, call_id, timeout)
            return await self._call_mcp(tool, arguments, call_id, timeout)
        except Broken as error:
            return ("no_response" if error.is_silent else "connection_error"), str(error), ""
        except (ValueError, KeyError, TypeError) as error:
            return "unusable_response", f"{type(error).__name__}: {error}", ""

    async def _call_api(self, tool, arguments, call_id, timeout):
        status, fields, content = await self.http.request(
            "POST", f"/api/v1/tools/{tool}/call", self._headers(call_id, [ACCEPT]), {"arguments": arguments}, timeout=timeout)
        gateway = fields.get("x-gateway", "")
        if not content.lstrip().startswith(b"{"):
            return f"http_{status}", content[:200].decode("utf-8", "replace"), gateway
        answer = json.loads(content)
        if status == 200:
            return ("tool_error" if answer["is_error"] else "result"), answer["output"], gateway
        return answer["error"].get("code") or f"http_{status}", answer["error"]["message"], gateway

    async def _call_mcp(self, tool, arguments, call_id, timeout):
        if self.protocol == "legacy" and self.session is None:
            refused = await self._open_session(timeout)
            if refused:
                return refused
        self.number += 1
        params = {"name": tool, "arguments": arguments}
        if self.protocol == "legacy":
            more = legacy_headers(self.session)
        else:
            params["_meta"] = modern_meta("lab")
            more = modern_headers("tools/call", tool)
        body = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params}
        status, fields, content = await self.http.request("POST", "/mcp", self._headers(call_id, more), body, timeout=timeout)
        gateway = fields.get("x-gateway", "")
        if status == 404 and self.protocol == "legacy":
            self.session = None
        message = last_message(content) if content.lstrip()[:1] in (b"{", b"d", b"e", b":", b"i") else {}
        if status != 200 or not message:
            return f"http_{status}", content[:200].decode("utf-8", "replace"), gateway
        if message.get("id") != self.number:
            return "crossed_message", str(message)[:300], gateway
        if "error" in message:
            return "protocol_error", str(message["error"])[:300], gateway
        text = result_text(message["result"])
        return (kind_of_text(text) if message["result"].get("isError") else "result"), text, gateway

    async def _open_session(self, timeout):
        status, fields, content = await self.http.request("POST", "/mcp", self._headers("initialize", [ACCEPT]), initialize_message("lab"), timeout=timeout)
        if status != 200 or "mcp-session-id" not in fields:
            return "not_initialized", f"HTTP {status}: {content[:200]}", fields.get("x-gateway", "")
        self.session = fields["mcp-session-id"]
        return None
