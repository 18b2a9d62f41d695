"""A small HTTP/1.1 client and the two families of MCP revisions on top of it, for the trials."""

import asyncio
import json
import socket

TOKEN = "a-token-of-more-than-thirty-two-characters"
MODERN, LEGACY = "2026-07-28", "2025-11-25"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Broken(Exception):
    """The connection ended before the response did."""


class Connection:
    """One keep-alive connection; it is opened again after the peer closed it. `inspect` gets every byte that arrives."""

    def __init__(self, port, key=TOKEN, inspect=None, timeout=30):
        self.port, self.key, self.inspect, self.timeout = port, key, inspect, timeout
        self.reader = self.writer = None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, path, headers=(), body=None, what="", timeout=None):
        """Status, headers (lower case) and content. Raises Broken; a request is never sent twice."""
        timeout = timeout or self.timeout
        try:
            status, fields, head, content = await asyncio.wait_for(self._request(method, path, headers, body), timeout)
        except asyncio.TimeoutError:
            self.close()
            raise Broken(f"{method} {path}: no response within {timeout} s") from None
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise Broken(f"{method} {path}: {type(error).__name__}: {error}") from None
        if self.inspect:
            self.inspect(head + content, what or f"{method} {path}")
        return status, fields, content

    async def _request(self, method, path, headers, body):
        if self.writer is None or self.reader.at_eof():
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        text = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self.key}"]
        lines += [f"{name}: {value}" for name, value in headers]
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
        return int(first.split()[1]), fields, head, content

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


class McpClient:
    """A client of one revision family: legacy with a session, modern without."""

    def __init__(self, connection, legacy, name="trial"):
        self.connection, self.legacy, self.name = connection, legacy, name
        self.session, self.number = None, 0

    async def call(self, tool, arguments, path="/mcp", progress=False, timeout=None):
        """"ok" or the kind of the failure, and the text of the result or the detail of the failure."""
        params = {"name": tool, "arguments": arguments}
        status, content = await self.post("tools/call", params, tool, path, progress, timeout)
        message = parse(content)
        if status != 200 or not message:
            return f"HTTP {status}", content[:300].decode("utf-8", "replace")
        if message.get("id") != self.number:
            return "wrong id", str(message)[:300]
        if "error" in message:
            return "protocol error", str(message["error"])[:300]
        result = message["result"]
        text = "".join(block.get("text", "") for block in result.get("content", []))
        return ("tool error" if result.get("isError") else "ok"), text

    async def list_tools(self, timeout=60):
        """Waits for the servers that were never seen before, too."""
        status, content = await self.post("tools/list", {}, timeout=timeout)
        return [tool["name"] for tool in parse(content)["result"]["tools"]] if status == 200 else []

    async def send(self, method, params, name=None, path="/mcp"):
        """The response as JSON; `{}` if there is none."""
        return parse((await self.post(method, params, name, path))[1])

    async def open_session(self, path="/mcp"):
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": self.name, "version": "1"}}
        headers = [("Accept", "application/json, text/event-stream")]
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        status, fields, content = await self.connection.request("POST", path, headers, body, "initialize")
        if status != 200 or "mcp-session-id" not in fields:
            raise Broken(f"initialize: HTTP {status}: {content[:200]}")
        self.session = fields["mcp-session-id"]

    async def post(self, method, params, name=None, path="/mcp", progress=False, timeout=None):
        """Status and content of the response to a request."""
        if self.legacy and self.session is None:
            await self.open_session(path)
        self.number += 1
        meta = {"progressToken": self.number} if progress else {}
        headers = [("Accept", "application/json, text/event-stream")]
        if self.legacy:
            headers += [("Mcp-Session-Id", self.session), ("MCP-Protocol-Version", LEGACY)]
        else:
            meta |= {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers += [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)]
            headers += [("Mcp-Name", name)] if name else []
        if meta:
            params = dict(params, _meta=meta)
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        status, _, content = await self.connection.request("POST", path, headers, body, f"{method} {name or ''}", timeout)
        return status, content


def parse(content):
    """The response in a JSON body or in the last event of an event stream; `{}` if there is none."""
    text = content.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return json.loads(text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return json.loads(data[-1]) if data else {}
