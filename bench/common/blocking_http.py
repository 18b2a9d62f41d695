"""HTTP without an event loop, for trials with threads: JSON requests, and MCP responses as they arrive."""

import http.client
import json

from http_client import TOKEN
from mcp_messages import modern_headers, modern_meta


def open_response(port, method, path, body=None, headers=(), connection=None):
    """Sends a request; returns the connection and the response, whose body is still to be read."""
    connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json", **dict(headers)})
    return connection, connection.getresponse()


def request_json(port, method, path, body=None, headers=(("Authorization", f"Bearer {TOKEN}"),), connection=None):
    """Status and JSON of the response; None if it has no body. A connection that is given stays open."""
    used, response = open_response(port, method, path, body, headers, connection)
    try:
        text = response.read()
        return response.status, json.loads(text) if text else None
    finally:
        if connection is None:
            used.close()


def messages_of(response):
    """The JSON-RPC messages of a response, as they arrive."""
    if "event-stream" not in (response.headers.get("Content-Type") or ""):
        text = response.read()
        if text:
            yield json.loads(text)
        return
    for line in response:
        if line.startswith(b"data: ") and line.strip() != b"data:":
            yield json.loads(line[6:])


def modern_request(port, client, method, params, name=None, headers=(), capabilities=None, number=1, connection=None):
    """The response to a request of the modern revision. A connection that is given stays open."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": modern_meta(client, capabilities)}}
    used, response = open_response(port, "POST", "/mcp", message, [*modern_headers(method, name), *headers], connection)
    try:
        return list(messages_of(response))[-1]
    finally:
        if connection is None:
            used.close()
