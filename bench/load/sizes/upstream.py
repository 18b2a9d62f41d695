"""One process that is all MCP servers of a catalogue (2025-11-25, HTTP without sessions): server N answers at /N."""

import asyncio
import json
import sys

import catalogue

REVISION = "2025-11-25"


def result_of(number, method, params):
    """The result of a request as JSON; none for an unknown method."""
    if method == "initialize":
        about = {"name": catalogue.server_id(number), "version": "1"}
        return json.dumps({"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": about})
    if method == "tools/list":
        return '{"tools":[' + ",".join(catalogue.tools(number)) + "]}"
    if method == "tools/call":
        return json.dumps({"content": [{"type": "text", "text": f"{number} {params['name']}"}]})
    return "{}" if method == "ping" else None


async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *rest = head.decode("latin-1").split("\r\n")
            fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            method, path, _ = first.split()
            status, text = "405 Method Not Allowed", ""
            if method == "POST":
                message = json.loads(body)
                status, text = "202 Accepted", ""
                if "id" in message:
                    status, result = "200 OK", result_of(int(path.strip("/")), message["method"], message.get("params"))
                    outcome = f'"result":{result}' if result else '"error":{"code":-32601,"message":"no such method"}'
                    text = f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{outcome}}}'
            content = text.encode()
            writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 20, backlog=1024)
    async with server:
        await server.serve_forever()


asyncio.run(main())
