"""Small cases that campaigns found. Each is deterministic and takes seconds.

- A server refuses connections for 0.3 s. The server and its sessions live on, so counters must go on, or callers must be told.
- A server fails to list its tools in a new session, and is restarted. Calls must work afterwards.
- A firewall forgets the connections of a gateway to PostgreSQL. New ones work, so the gateway must use them soon.
"""

import asyncio
import itertools
import json
import os
import signal
import time

from client import Client
from http_client import Connection
from processes import is_listening, wait_until
from stack import Lab
from topology import BY_NAME, SERVERS

REFUSED_SECONDS, HALF_OPEN_SECONDS = 0.3, 40
NUMBERS = itertools.count()


async def count(client, server):
    """The outcome of a call of a counter, and its answer."""
    call_id = f"sessions-{next(NUMBERS)}"
    outcome, text, _ = await client.call(server.tool, {"id": call_id}, call_id, 20)
    answer = json.loads(text) if outcome == "result" else None
    print(f"  {client.caller}: {outcome} {answer['count'] if answer else text[:140]}")
    return outcome, answer


async def short_refusal(lab, server):
    """Two callers; only one of them calls during the refusal."""
    print(f"{server.name} ({server.isolation or 'one session per caller'}): connections are cut, new ones are refused for {REFUSED_SECONDS} s")
    callers, problems = [Client(lab.port, name, "api") for name in ("ada", "bob")], []
    before = {client.caller: (await count(client, server))[1] for client in callers}
    await lab.disturb({"target": server.name, "fault": "cut_all", "number": 1})
    await lab.disturb({"target": server.name, "fault": "refuse", "seconds": REFUSED_SECONDS, "number": 2})
    await count(callers[0], server)
    await asyncio.sleep(2)
    for client in callers:
        outcome, after = await count(client, server)
        if after and after["instance"] != before[client.caller]["instance"]:
            problems.append(f"{server.name}: {client.caller} has another session and was not told")
        elif outcome not in ("result", "session_lost"):
            problems.append(f"{server.name}: {client.caller}: {outcome}")
    return problems


async def failed_list(lab, server):
    """A caller whose first call meets a server that cannot list its tools; then the server is restarted and healthy."""
    print(f"{server.name}: `tools/list` fails once, then the server is restarted")
    client, mode = Client(lab.port, "eve", "api"), os.path.join(lab.folder, "ledgers", f"{server.name}.mode")
    with open(mode, "w") as file:
        file.write("unlisted")
    outcome, _ = await count(client, server)
    problems = [f"{server.name}: a failed list is reported as {outcome}"] if outcome == "tool_not_approved" else []
    os.remove(mode)
    lab.servers[server.name].send_signal(signal.SIGKILL)
    await asyncio.sleep(0.5)
    await wait_until(lambda: is_listening(lab.server_ports[server.name]), 10, f"server {server.name} listens")
    for _ in range(8):
        outcome, _ = await count(client, server)
        await asyncio.sleep(1)
    return problems + ([f"{server.name}: calls fail with {outcome} 8 s after the restart"] if outcome != "result" else [])


async def half_open_store(lab):
    """Nothing arrives any more on the open connections of a gateway to PostgreSQL; then a server is restarted, and runs are started."""
    print(f"gateway a: its open connections to PostgreSQL are mute; after {HALF_OPEN_SECONDS} s:")
    gateway, server = lab.gateways["a"], BY_NAME["h04"]
    await lab.disturb({"target": "postgres-a", "fault": "mute_all", "number": 3})
    client, http = Client(gateway.port, "eve", "api"), Connection(gateway.port)
    lab.servers[server.name].send_signal(signal.SIGKILL)
    until, run, outcome, status = time.monotonic() + HALF_OPEN_SECONDS, 0, "", 0
    while time.monotonic() < until and (outcome, status) != ("result", 202):
        outcome, text, _ = await client.call(server.tool, {"id": f"half-open-{next(NUMBERS)}"}, "half-open", 20)
        body, run = {"question": f"lab half-open-{run} h05 0"}, run + 1
        status, _, _ = await http.request("POST", "/api/v1/runs", body=body, timeout=20)
        await asyncio.sleep(1)
    ready, _, content = await http.request("GET", "/readyz")
    print(f"  call of a server that was restarted: {outcome} {text[:100] if outcome != 'result' else ''}\n  start of a run: {status}\n  /readyz: {ready} {content.decode()[:120]}")
    problems = [f"gateway with half-open connections to PostgreSQL: calls of {server.name}: {outcome} after {HALF_OPEN_SECONDS} s"] if outcome != "result" else []
    return problems + ([f"gateway with half-open connections to PostgreSQL: start of a run: {status} after {HALF_OPEN_SECONDS} s"] if status != 202 else [])


async def measure(options):
    lab, problems = Lab(options.binary), []
    async with lab:
        for server in SERVERS:
            if server.is_counter and server.transport == "http":
                problems += await short_refusal(lab, server)
        problems += await failed_list(lab, BY_NAME["h01"])
        problems += await half_open_store(lab)
    print("\n".join(problems) or "no problems")
    lab.remove()
    return 1 if problems else 0
