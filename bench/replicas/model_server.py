"""A scripted model behind an OpenAI-compatible endpoint: a question `record NAME STEPS DELAY` becomes a chain of that many calls of `record`."""

import asyncio
import json
import re

QUESTION = re.compile(r"record ([\w-]+) (\d+) (\d+)")


def reply(request):
    last = request["messages"][-1]["content"]
    text = last if isinstance(last, str) else json.dumps(last)
    found = QUESTION.search(text)
    if not found:
        return None
    name, steps, delay = found[1], int(found[2]), int(found[3])
    if "response_format" not in request:
        return f"{name} is recorded."
    plan = [
        {
            "id": f"s{number}",
            "tool_type": "record",
            "arguments": {"entry": f"{name}.s{number}", "delay_ms": delay},
            "dependencies": [f"s{number - 1}"] if number else [],
        }
        for number in range(steps)
    ]
    return json.dumps({"steps": plan})


async def serve(reader, writer):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
        text = reply(json.loads(await reader.readexactly(length)))
        if text is None:
            body = b'{"error":{"message":"no rule fits this request"}}'
            head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
            writer.write(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        else:
            chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
            events = "".join(f"data: {json.dumps(event)}\n\n" for event in (chunk, end)) + "data: [DONE]\n\n"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + events.encode())
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def start():
    """The port of a server that ends with the program."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]
