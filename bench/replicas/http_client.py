"""A small HTTP/1.1 client and the two families of MCP revisions on top of it."""

import asyncio
import json

TOKEN = "a-token-of-more-than-thirty-two-characters"
MODERN, LEGACY = "2026-07-28", "2025-11-25"


class Broken(Exception):
    """The connection ended before the response did."""


class Connection:
    """One keep-alive connection; it is opened again after the peer closed it."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, path, headers=(), body=None, timeout=30):
        """Status, headers (lower case) and body. Raises Broken; a request is never sent twice."""
        try:
            return await asyncio.wait_for(self._request(method, path, headers, body), timeout)
        except asyncio.TimeoutError:
            self.close()
            raise Broken(f"no response within {timeout} s") from None
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            raise Broken(f"{type(error).__name__}: {error}") from None

    async def _request(self, method, path, headers, body):
        if self.writer is None or self.reader.at_eof():
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        for name, value in headers:
            head += f"{name}: {value}\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + text)
        await self.writer.drain()
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split()[1])
        fields = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        content = await self._content(fields)
        if fields.get("connection", "").lower() == "close":
            self.close()
        return status, fields, content

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

    def __init__(self, port, legacy, name="trial"):
        self.connection = Connection(port)
        self.legacy, self.name, self.session, self.number = legacy, name, None, 0

    async def call(self, tool, arguments, timeout=30):
        """The text of the result, and "ok" or the kind of the failure with its detail."""
        params = {"name": tool, "arguments": arguments}
        status, _, body = await self._send("tools/call", params, tool, timeout)
        message = parse(body)
        if status != 200 or message is None:
            return f"HTTP {status}", body[:300].decode("utf-8", "replace")
        if message.get("id") != self.number:
            return "wrong id", str(message)[:300]
        if "error" in message:
            return "protocol error", str(message["error"])[:300]
        result = message["result"]
        text = "".join(block.get("text", "") for block in result.get("content", []))
        return ("tool error" if result.get("isError") else "ok"), text

    async def list_tools(self, timeout=60):
        """Waits for the servers that were never seen before, too."""
        status, _, body = await self._send("tools/list", {}, None, timeout)
        return [tool["name"] for tool in parse(body)["result"]["tools"]] if status == 200 else []

    async def open_session(self):
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": self.name, "version": "1"}}
        status, fields, body = await self._send("initialize", hello, None, 30)
        if status != 200 or "mcp-session-id" not in fields:
            raise Broken(f"initialize: HTTP {status}: {body[:200]}")
        self.session = fields["mcp-session-id"]

    async def _send(self, method, params, name, timeout):
        if self.legacy and self.session is None and method != "initialize":
            await self.open_session()
        self.number += 1
        headers = [("Accept", "application/json, text/event-stream")]
        if not self.legacy:
            params = dict(params, _meta={
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            })
            headers += [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)]
            headers += [("Mcp-Name", name)] if name else []
        elif self.session:
            headers += [("Mcp-Session-Id", self.session), ("MCP-Protocol-Version", LEGACY)]
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return await self.connection.request("POST", "/mcp", headers, body, timeout)


def parse(body):
    """The response in a JSON body or in the last event of an event stream."""
    text = body.decode("utf-8", "replace")
    if text.lstrip().startswith("{"):
        return json.loads(text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
    return json.loads(data[-1]) if data else None
