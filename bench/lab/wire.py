"""HTTP/1.1 and the two families of MCP revisions as clients of the laboratory speak them; no request is ever sent twice."""

import asyncio
import json
import re

from topology import LEGACY, MODERN


class Broken(Exception):
    """There is no whole response. `is_silent`: nothing came within the time."""

    def __init__(self, text, is_silent=False):
        super().__init__(text)
        self.is_silent = is_silent


class Http:
    """One keep-alive connection; a new one is opened after it ended."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, path, headers=(), body=None, timeout=30):
        """Status, headers (lower case) and content; raises Broken."""
        try:
            return await asyncio.wait_for(self._request(method, path, headers, body), timeout)
        except asyncio.TimeoutError:
            self.close()
            raise Broken(f"no response within {timeout} s", is_silent=True) from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            self.close()
            raise Broken(f"{type(error).__name__}: {error}") from None

    async def _request(self, method, path, headers, body):
        if self.writer is None or self.reader.at_eof() or self.writer.is_closing():
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        text = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers)]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        await self.writer.drain()
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        content = await self._content(fields)
        if fields.get("connection", "").lower() == "close":
            self.close()
        return int(first.split()[1]), fields, content

    async def _content(self, fields):
        if "content-length" in fields:
            return await self.reader.readexactly(int(fields["content-length"]))
        if fields.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                parts.append(await self.reader.readexactly(size))
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
            return b"".join(parts)
        content = await self.reader.read(-1)
        self.close()
        return content


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


def last_message(content):
    """The response in a JSON body or in the last event of an event stream."""
    text = content.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return json.loads(text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return json.loads(data[-1]) if data else {}


class Client:
    """A caller that the proxy has identified. `call` returns the outcome (`result` or a kind of failure), its text, and the gateway."""

    def __init__(self, port, caller, protocol):
        self.port, self.caller, self.protocol = port, caller, protocol
        self.http, self.session, self.number = Http(port), None, 0

    def _headers(self, call_id, more=()):
        return [("X-Forwarded-User", self.caller), ("X-Lab-Call", call_id), ("Accept", "application/json, text/event-stream"), *more]

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
            "POST", f"/api/v1/tools/{tool}/call", self._headers(call_id), {"arguments": arguments}, timeout)
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
        params, more = {"name": tool, "arguments": arguments}, []
        if self.protocol == "legacy":
            more = [("Mcp-Session-Id", self.session), ("MCP-Protocol-Version", LEGACY)]
        else:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "lab", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            more = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)]
        body = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params}
        status, fields, content = await self.http.request("POST", "/mcp", self._headers(call_id, more), body, timeout)
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
        text = "".join(block.get("text", "") for block in message["result"].get("content", []))
        return (kind_of_text(text) if message["result"].get("isError") else "result"), text, gateway

    async def _open_session(self, timeout):
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "lab", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        status, fields, content = await self.http.request("POST", "/mcp", self._headers("initialize"), body, timeout)
        if status != 200 or "mcp-session-id" not in fields:
            return "not_initialized", f"HTTP {status}: {content[:200]}", fields.get("x-gateway", "")
        self.session = fields["mcp-session-id"]
        return None
