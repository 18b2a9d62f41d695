"""An asynchronous MCP client of one revision family."""

from http_client import Broken
from mcp_messages import ACCEPT, initialize_message, last_message, legacy_headers, modern_headers, modern_meta, result_text


class McpClient:
    """A client of one revision family: legacy with a session, modern without."""

    def __init__(self, connection, legacy, name="trial"):
        self.connection, self.legacy, self.name = connection, legacy, name
        self.session, self.number = None, 0

    async def call(self, tool, arguments, path="/mcp", progress=False, timeout=None):
        """"ok" or the kind of the failure, and the text of the result or the detail of the failure."""
        params = {"name": tool, "arguments": arguments}
        status, content = await self.post("tools/call", params, tool, path, progress, timeout)
        message = last_message(content)
        if status != 200 or not message:
            return f"HTTP {status}", content[:300].decode("utf-8", "replace")
        if message.get("id") != self.number:
            return "wrong id", str(message)[:300]
        if "error" in message:
            return "protocol error", str(message["error"])[:300]
        return ("tool error" if message["result"].get("isError") else "ok"), result_text(message["result"])

    async def list_tools(self, timeout=60):
        """Waits for the servers that were never seen before, too."""
        status, content = await self.post("tools/list", {}, timeout=timeout)
        return [tool["name"] for tool in last_message(content)["result"]["tools"]] if status == 200 else []

    async def send(self, method, params, name=None, path="/mcp"):
        """The response as JSON; `{}` if there is none."""
        return last_message((await self.post(method, params, name, path))[1])

    async def open_session(self, path="/mcp"):
        body = initialize_message(self.name)
        status, fields, content = await self.connection.request("POST", path, [ACCEPT], body, "initialize")
        if status != 200 or "mcp-session-id" not in fields:
            raise Broken(f"initialize: HTTP {status}: {content[:200]}")
        self.session = fields["mcp-session-id"]

    async def post(self, method, params, name=None, path="/mcp", progress=False, timeout=None):
        """Status and content of the response to a request."""
        if self.legacy and self.session is None:
            await self.open_session(path)
        self.number += 1
        meta = {"progressToken": self.number} if progress else {}
        if not self.legacy:
            meta |= modern_meta(self.name)
        headers = legacy_headers(self.session) if self.legacy else modern_headers(method, name)
        if meta:
            params = dict(params, _meta=meta)
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        status, _, content = await self.connection.request("POST", path, headers, body, f"{method} {name or ''}", timeout)
        return status, content
