"""MCP clients of both revision families over HTTP and stdio, written from the specification of the protocol."""

import http.client
import json
import threading
import urllib.parse

from sandbox import TOKEN

LEGACY, MODERN = "2025-06-18", "2026-07-28"


class Answer:
    """An HTTP response: status, headers, text, and the JSON-RPC messages in it."""

    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text
        self.messages = []
        for line in text.split("\n") if "event-stream" in headers.get("content-type", "") else [text]:
            line = line.removeprefix("data:").strip()
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                self.messages.append(message)

    @property
    def final(self):
        return next((message for message in reversed(self.messages) if "result" in message or "error" in message), {})

    @property
    def result(self):
        return self.final.get("result", {})

    @property
    def succeeded(self):
        """Whether a tool call succeeded."""
        return self.status == 200 and "result" in self.final and not self.result.get("isError")

    def __repr__(self):
        return f"HTTP {self.status}: {self.text[:300]}"


def http_request(base, method, path, body=None, headers=None, timeout=30):
    """One HTTP request; returns an `Answer`."""
    address = urllib.parse.urlsplit(base)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    try:
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        connection.request(method, path, data, headers or {})
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, text)
    finally:
        connection.close()


def authorized(token=TOKEN, **more):
    return {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **more,
    }


class ModernClient:
    """A client of the stateless revision."""

    family = "modern"

    def __init__(self, base, path="/mcp", name="client", token=TOKEN, capabilities=None):
        self.base, self.path, self.name, self.token = base, path, name, token
        self.capabilities = capabilities or {}

    def request(self, method, params=None, headers=None, timeout=30):
        params = dict(params or {})
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            **params.get("_meta", {}),
        }
        mirrored = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        named = params.get("name") or params.get("uri")
        if named:
            mirrored["Mcp-Name"] = named if named.isascii() and named.isprintable() else encoded_header(named)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = authorized(self.token, **mirrored, **(headers or {}))
        return http_request(self.base, "POST", self.path, body, headers, timeout)

    def call(self, tool, arguments=None, timeout=30, **more):
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more}, timeout=timeout)

    def tools(self):
        return [tool["name"] for tool in self.request("tools/list").result.get("tools", [])]

    def close(self):
        pass


def encoded_header(text):
    import base64

    return "=?base64?" + base64.b64encode(text.encode()).decode() + "?="


def accepted(params, text="secret answer"):
    """A consenting answer that fits the schema of a question."""
    content = {}
    for key, schema in params.get("requestedSchema", {}).get("properties", {}).items():
        options = schema.get("enum") or [option.get("const") for option in schema.get("oneOf", [])]
        consent = [option for option in options if any(word in str(option).lower() for word in ("approve", "yes", "allow"))]
        content[key] = (consent or options or [True if schema.get("type") == "boolean" else text])[0]
    return content


class LegacyClient:
    """A client with `initialize` and a session, and a GET stream for messages of the server."""

    family = "legacy"

    def __init__(self, base, path="/mcp", name="client", token=TOKEN, capabilities=None, revision=LEGACY, answer="secret answer"):
        self.base, self.path, self.token, self.answer = base, path, token, answer
        self.session, self.revision = None, revision
        self.heard, self.next_id = [], 0
        started = self.request(
            "initialize",
            {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": {"name": name, "version": "1"}},
        )
        self.started = started
        self.session = started.headers.get("mcp-session-id")
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def headers(self):
        session = {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.revision} if self.session else {}
        return authorized(self.token, **session)

    def post(self, body, timeout=30):
        return http_request(self.base, "POST", self.path, body, self.headers(), timeout)

    def request(self, method, params=None, timeout=30):
        """Sends a request and answers the questions that arrive in its stream."""
        self.next_id += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params or {}})
        address = urllib.parse.urlsplit(self.base)
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
        try:
            connection.request("POST", self.path, body.encode(), self.headers())
            response = connection.getresponse()
            headers = {key.lower(): value for key, value in response.getheaders()}
            if "event-stream" not in headers.get("content-type", ""):
                return Answer(response.status, headers, response.read().decode(errors="replace"))
            lines = []
            for line in response:
                text = line.decode(errors="replace")
                lines.append(text)
                if text.startswith("data:"):
                    self.react(text[5:].strip())
            return Answer(response.status, headers, "".join(lines))
        finally:
            connection.close()

    def react(self, text):
        try:
            message = json.loads(text)
        except ValueError:
            return
        self.heard.append(text)
        if "method" in message and "id" in message:
            result = {"action": "accept", "content": accepted(message.get("params", {}), self.answer)}
            self.post({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def listen(self):
        """Reads the stream of the session in the background."""
        address = urllib.parse.urlsplit(self.base)
        self.stream = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        headers = {**self.headers(), "Accept": "text/event-stream"}
        self.stream.request("GET", self.path, headers=headers)
        response = self.stream.getresponse()

        def read():
            try:
                for line in response:
                    if line.startswith(b"data:"):
                        self.react(line[5:].decode(errors="replace").strip())
            except (OSError, http.client.HTTPException, AttributeError, ValueError):
                pass

        threading.Thread(target=read, daemon=True).start()

    def call(self, tool, arguments=None, timeout=30, **more):
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more}, timeout)

    def tools(self):
        return [tool["name"] for tool in self.request("tools/list").result.get("tools", [])]

    def close(self):
        stream = getattr(self, "stream", None)
        if stream and stream.sock:
            stream.sock.close()


class StdioClient:
    """A client that starts the gateway as its child."""

    family = "stdio"

    def __init__(self, process, name="client", capabilities=None, answer="secret answer"):
        self.process, self.answer, self.heard, self.next_id = process, answer, [], 0
        self.started = self.request(
            "initialize",
            {"protocolVersion": LEGACY, "capabilities": capabilities or {}, "clientInfo": {"name": name, "version": "1"}},
        )
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params=None, timeout=30):
        self.next_id += 1
        self.write({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params or {}})
        timer = threading.Timer(timeout, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                text = line.decode(errors="replace")
                self.heard.append(text)
                message = json.loads(text)
                if message.get("id") == self.next_id and "method" not in message:
                    return Answer(200, {}, text)
                if "method" in message and "id" in message:
                    result = {"action": "accept", "content": accepted(message.get("params", {}), self.answer)}
                    self.write({"jsonrpc": "2.0", "id": message["id"], "result": result})
            return Answer(0, {}, "the gateway ended")
        finally:
            timer.cancel()

    def call(self, tool, arguments=None, timeout=30, **more):
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more}, timeout)

    def tools(self):
        return [tool["name"] for tool in self.request("tools/list").result.get("tools", [])]

    def close(self):
        self.process.stdin.close()


def clients_of(sandbox, base, path="/mcp"):
    """One client of each revision family at a gateway."""
    return [LegacyClient(base, path), LegacyClient(base, path, revision="2025-11-25"), ModernClient(base, path)]
