"""A scripted model behind an OpenAI-compatible endpoint."""

import asyncio
import json
import threading


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content)


async def start(reply):
    """A server and its port; it ends with the program. `reply` makes the text of a reply from a request; None is an error."""

    async def serve(reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
            writer.write(response(reply(json.loads(await reader.readexactly(length)))))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 22)
    return server, server.sockets[0].getsockname()[1]


def response(text):
    if text is None:
        body = b'{"error":{"message":"no rule fits this request"}}'
        head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
        return head + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
    events = "".join(f"data: {json.dumps(event)}\n\n" for event in (chunk, end)) + "data: [DONE]\n\n"
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + events.encode()


def start_thread(reply):
    """The same in a thread of its own, for programs without an event loop; returns the port."""
    started, ports = threading.Event(), []

    async def serve():
        server, port = await start(reply)
        ports.append(port)
        started.set()
        await server.serve_forever()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    started.wait(10)
    return ports[0]
