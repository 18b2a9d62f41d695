"""An MCP server whose tool `record` writes every executed call to a file: what is there happened, as often as it is there.

usage: ledger_server.py PORT FILE
"""

import asyncio
import json
import os
import sys

TOOL = {
    "name": "record",
    "description": "Record an entry in the ledger; the entry is written first, then the call takes `delay_ms` milliseconds",
    "inputSchema": {
        "type": "object",
        "properties": {"entry": {"type": "string"}, "delay_ms": {"type": "integer"}},
        "required": ["entry"],
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False},
}


async def answer(message, ledger):
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "ledger", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        arguments = params["arguments"]
        os.write(ledger, f"{arguments['entry']}\n".encode())
        await asyncio.sleep(arguments.get("delay_ms", 0) / 1000)
        return {"content": [{"type": "text", "text": arguments["entry"]}]}
    return {} if method == "ping" else None


async def serve(reader, writer, ledger):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
            message = json.loads(await reader.readexactly(length) or "{}")
            if not head.startswith("post"):
                writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
            elif "id" not in message:
                writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            else:
                result = await answer(message, ledger)
                outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "method not found"}}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    ledger = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    server = await asyncio.start_server(lambda *stream: serve(*stream, ledger), "127.0.0.1", int(sys.argv[1]), backlog=4096)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
