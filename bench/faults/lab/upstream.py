"""One upstream MCP server of the laboratory, on stdio or HTTP, of one revision family.

usage: upstream.py NAME stdio|http:PORT REVISION KIND LEDGER
Every executed call is a line of the ledger, written before the answer: what is there happened, as often as it is there.
SIGUSR1: garbage precedes the next answer. SIGUSR2: the process dies in the middle of the next answer.
A file LEDGER.mode makes an HTTP server misbehave while it exists: `hang` (answers no call), `flood` (answers calls without
end), `huge` (answers calls with 8 MiB), `unlisted` (ends the connection in place of an answer to `tools/list`).
"""

import hashlib
import json
import os
import signal
import sys
import threading
import time

NAME, TRANSPORT, REVISION, KIND, LEDGER = sys.argv[1:6]
IS_MODERN = REVISION == "2026-07-28"
HUGE_BYTES = 8 << 20
LEDGER_FILE = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
pending = {"garbage": False, "die": False}


class State:
    """What a session remembers."""

    def __init__(self):
        self.instance, self.count = os.urandom(6).hex(), 0


def tool():
    hints = {"readOnlyHint": KIND == "read", "idempotentHint": KIND in ("read", "put"), "destructiveHint": False, "openWorldHint": False}
    properties = {"id": {"type": "string"}, "delay_ms": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["id"]}
    texts = {"counter": "Count the calls of this session", "read": "Read the value of an id", "put": "Store an id; repeating it changes nothing"}
    description = texts.get(KIND, "Record an id in the ledger")
    return {"name": f"{KIND}_{NAME}", "description": description, "inputSchema": schema, "annotations": hints}


def execute(state, arguments):
    """Takes effect; returns the answer, which the caller sends after the delay."""
    call_id = arguments["id"]
    entry = {"id": call_id, "server": NAME, "pid": os.getpid(), "instance": state.instance, "at": time.monotonic()}
    os.write(LEDGER_FILE, (json.dumps(entry) + "\n").encode())
    state.count += 1
    value = "v" + hashlib.sha256(f"lab {call_id}".encode()).hexdigest()[:12]
    return {"id": call_id, "value": value, "instance": state.instance, "count": state.count, "pid": os.getpid()}


def result_of(state, method, params):
    if method == ("server/discover" if IS_MODERN else "initialize"):
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": NAME, "version": "1"}}
        if IS_MODERN:
            return {"supportedVersions": [REVISION], "resultType": "complete", **about}
        return {"protocolVersion": REVISION, **about}
    if method == "tools/list":
        return {"tools": [tool()], **({"ttlMs": 600_000, "cacheScope": "public", "resultType": "complete"} if IS_MODERN else {})}
    if method == "tools/call":
        content = [{"type": "text", "text": json.dumps(execute(state, params["arguments"]))}]
        return {"content": content, **({"resultType": "complete"} if IS_MODERN else {})}
    return {} if method == "ping" else None


def answer_to(state, request):
    try:
        result = result_of(state, request["method"], request.get("params") or {})
    except OSError as error:
        # The effect did not happen, and the caller must learn it.
        result = {"content": [{"type": "text", "text": f"not recorded: {error}"}], "isError": True}
    outcome = {"error": {"code": -32601, "message": "method not found"}} if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome})


def delay_of(request):
    if request["method"] != "tools/call":
        return 0
    return (request["params"].get("arguments") or {}).get("delay_ms", 0) / 1000


def take(flag):
    was = pending[flag]
    pending[flag] = False
    return was


def serve_stdio():
    state, lock = State(), threading.Lock()

    def send(line):
        data = line.encode() + b"\n"
        if take("die"):
            os.write(1, data[: len(data) // 2])
            os._exit(9)
        if take("garbage"):
            data = b"\x00\xffgarbage {]\n" + data
        with lock:
            while data:
                data = data[os.write(1, data):]

    buffer = b""
    while True:
        try:
            chunk = os.read(0, 65536)
        except InterruptedError:
            continue
        if not chunk:
            # The gateway is gone. Threads with slow answers must not keep the process alive.
            os._exit(0)
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in filter(None, lines):
            request = json.loads(line)
            if "id" not in request or "method" not in request:
                continue
            answer, delay = answer_to(state, request), delay_of(request)
            if delay:
                timer = threading.Timer(delay, send, [answer])
                timer.daemon = True
                timer.start()
            else:
                send(answer)


def serve_http(port):
    # Imported here: processes on stdio start often, and this import takes longer than the rest.
    import asyncio

    sessions, only = {}, State()

    def misbehaviour():
        try:
            with open(LEDGER + ".mode") as file:
                return file.read()
        except OSError:
            return ""

    async def flood(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(b": " + b"x" * 65536 + b"\n\n")
            await writer.drain()
            # Without end, but at 6 MB/s: the machine has two cores for everything.
            await asyncio.sleep(0.01)

    async def respond(writer, status, body=b"", session=None):
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json\r\n" if body else ""
        head += f"Mcp-Session-Id: {session}\r\n" if session else ""
        data = head.encode() + b"\r\n" + body
        if body and take("die"):
            writer.write(data[: len(data) // 2])
            await writer.drain()
            os._exit(9)
        if body and take("garbage"):
            data = os.urandom(40) + data
        writer.write(data)
        await writer.drain()

    async def answer_post(writer, request, session):
        if "id" not in request:
            return await respond(writer, "202 Accepted")
        method = request.get("method")
        mode = misbehaviour() if method in ("tools/call", "tools/list") else ""
        if mode == "unlisted" and method == "tools/list":
            raise ConnectionError("no list")
        if method != "tools/call":
            mode = ""
        if mode == "hang":
            await asyncio.sleep(3600)
        if mode == "flood":
            await flood(writer)
        if not IS_MODERN:
            if request["method"] == "initialize":
                session = os.urandom(12).hex()
                sessions[session] = State()
            elif request["method"] != "server/discover" and session not in sessions:
                return await respond(writer, "404 Not Found")
        answer, delay = answer_to(only if IS_MODERN else sessions.get(session, only), request), delay_of(request)
        if delay:
            await asyncio.sleep(delay)
        body = answer.encode()
        if mode == "huge":
            body += b" " * HUGE_BYTES
        await respond(writer, "200 OK", body, None if IS_MODERN else session)

    async def serve(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])}
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                session = fields.get("mcp-session-id")
                if head.startswith("POST"):
                    await answer_post(writer, json.loads(body), session)
                elif head.startswith("DELETE"):
                    sessions.pop(session, None)
                    await respond(writer, "200 OK")
                else:
                    await respond(writer, "405 Method Not Allowed")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError, KeyError):
            pass
        finally:
            writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=1024, limit=1 << 20)
        async with server:
            await server.serve_forever()

    asyncio.run(main())


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda *_: pending.update(garbage=True))
    signal.signal(signal.SIGUSR2, lambda *_: pending.update(die=True))
    if TRANSPORT == "stdio":
        serve_stdio()
    else:
        serve_http(int(TRANSPORT.split(":")[1]))
