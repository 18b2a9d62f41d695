"""A defect on purpose, in the path of the gateways: a hop between nginx and each gateway that crosses or loses a few calls.

usage: planted_defect.py cross|lose PORTS      PORTS is JSON: {"PORT": GATEWAY_PORT, …}
`lose` answers some calls by itself with the right value, and the gateway never sees them. `cross` exchanges the results of two calls.
"""

import asyncio
import json
import random
import sys

from topology import value_of

SHARE = 0.02
waiting = []


async def read_message(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head, await reader.readexactly(length)


def call_of(body):
    """The id of a JSON-RPC tool call and the id in its arguments."""
    try:
        message = json.loads(body)
        return message["id"], message["params"]["arguments"]["id"]
    except (ValueError, KeyError, TypeError):
        return None


def own_answer(number, call_id):
    text = json.dumps({"id": call_id, "value": value_of(call_id), "instance": "none", "count": 1, "pid": 0})
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}}).encode()


def http(body):
    return b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def exchange_results(response):
    """Waits for a second call and exchanges the results; gives up after a second."""
    head, _, body = response.partition(b"\r\n\r\n")
    try:
        message = json.loads(body)
        message["result"]["content"]
    except (ValueError, KeyError, TypeError):
        return response
    if waiting:
        other = waiting.pop()
        own, theirs = message["result"], other[0]["result"]
        message["result"] = theirs
        other[1].set_result(own)
        return http(json.dumps(message).encode())
    future = asyncio.get_running_loop().create_future()
    waiting.append((message, future))
    try:
        message["result"] = await asyncio.wait_for(future, 1)
    except asyncio.TimeoutError:
        waiting[:] = [entry for entry in waiting if entry[1] is not future]
    return http(json.dumps(message).encode())


async def serve(reader, writer, plant, gateway_port):
    try:
        head, body = await read_message(reader)
        call = call_of(body) if random.random() < SHARE else None
        if plant == "lose" and call:
            writer.write(http(own_answer(*call)))
        else:
            upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", gateway_port)
            upstream.write(head + body)
            response = await upstream_reader.read(-1)
            upstream.close()
            writer.write(await exchange_results(response) if plant == "cross" and call else response)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main():
    plant, ports = sys.argv[1], json.loads(sys.argv[2])
    random.seed(1)
    for port, gateway_port in ports.items():
        await asyncio.start_server(lambda *stream, to=gateway_port: serve(*stream, plant, to), "127.0.0.1", int(port))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
