"""A scripted model that tells everything it was shown: all canaries of its prompt are in its reply, so that a leak into a prompt
(examples, shapes, history) reaches the client as bytes.

A question says what to do: `trial echo WORD` calls a tool with the word, `trial recall WORD` answers at once.
"""

import asyncio
import json
import re

TASK = re.compile(r"trial (echo|fields|write|long|recall) (quazo[a-z]+)")
CANARY = re.compile(r"quazo[a-z]+")
TOOLS = {"echo": "h_echo", "fields": "h_fields", "write": "h_write_note", "long": "h_long_text"}


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content)


def reply(request):
    texts = [text_of(message) for message in request["messages"]]
    found = TASK.findall(texts[-1])
    shown = " ".join(sorted(set(CANARY.findall(json.dumps(request)))))
    if not found:
        return f"I was shown: {shown}."
    task, word = found[-1]
    if "response_format" not in request:
        return f"The result is {word}. I was shown: {shown}."
    if task == "recall":
        return json.dumps({"steps": [], "answer": f"I was shown: {shown}."})
    step = {"id": "s1", "tool_type": TOOLS[task], "arguments": {"text": word}, "description": f"{task} for: {shown}"}
    return json.dumps({"steps": [step]})


async def serve(reader, writer):
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
        text = reply(json.loads(await reader.readexactly(length)))
        chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
        events = "".join(f"data: {json.dumps(event)}\n\n" for event in (chunk, end)) + "data: [DONE]\n\n"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + events.encode())
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def start():
    """The port of a server that ends with the program."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 22)
    return server, server.sockets[0].getsockname()[1]
