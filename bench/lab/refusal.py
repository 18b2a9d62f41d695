"""Sessions of legacy HTTP servers that refuse connections for 0.3 s: the server and its sessions live on, so counters must go on.

A small case that campaigns found; each counter is used by two callers, and only one of them calls during the refusal.
"""

import asyncio
import itertools
import json

from stack import Lab
from topology import SERVERS
from wire import Client

REFUSED_SECONDS = 0.3


async def measure(options):
    lab, numbers, problems = Lab(options.binary), itertools.count(), []
    async with lab:
        for server in (server for server in SERVERS if server.is_counter and server.transport == "http"):
            callers = [Client(lab.port, name, "api") for name in ("ada", "bob")]

            async def count(client, server=server):
                call_id = f"refusal-{next(numbers)}"
                outcome, text, _ = await client.call(server.tool, {"id": call_id}, call_id, 20)
                answer = json.loads(text) if outcome == "result" else None
                print(f"  {client.caller}: {outcome} {answer['count'] if answer else text[:120]}")
                return outcome, answer

            print(f"{server.name} ({server.isolation or 'one session per caller'}):")
            before = {client.caller: (await count(client))[1] for client in callers}
            await lab.disturb({"target": server.name, "fault": "cut_all", "number": 1})
            await lab.disturb({"target": server.name, "fault": "refuse", "seconds": REFUSED_SECONDS, "number": 2})
            print(f"  connections are cut, new ones are refused for {REFUSED_SECONDS} s")
            await count(callers[0])
            await asyncio.sleep(2)
            for client in callers:
                outcome, after = await count(client)
                if after and after["instance"] != before[client.caller]["instance"]:
                    problems.append(f"{server.name}: {client.caller} has another session and was not told")
                elif outcome not in ("result", "session_lost"):
                    problems.append(f"{server.name}: {client.caller}: {outcome}")
    print("\n".join(problems) or "no session was lost silently")
    lab.remove()
    return 1 if problems else 0
