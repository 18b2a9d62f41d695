"""A client of the official Python SDK that does one thing through a door and prints what came of it as JSON.

    python client.py legacy|modern URL call|progress|cancel|elicitation|thinking|list_changed TOOL ARGUMENTS
"""

import asyncio
import json
import sys

from mcp.client.client import Client
from mcp_types import ElicitResult

ERA, URL, ASPECT, TOOL, ARGUMENTS = sys.argv[1:6]
KNOWN = {"name": "Ada", "place": "London", "check": True}
seen = {"progress": [], "asked": [], "told": []}


async def asked(_context, params):
    fields = params.requested_schema["properties"]
    seen["asked"].append(params.message)
    if ASPECT == "thinking":
        await asyncio.sleep(5)
    return ElicitResult(action="accept", content={key: value for key, value in KNOWN.items() if key in fields})


async def progressed(progress, total, message):
    seen["progress"].append([progress, total, message])


changed = asyncio.Event()


async def told(message):
    method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
    seen["told"].append(str(method))
    if method == "notifications/tools/list_changed":
        changed.set()


def said(result):
    return {"text": "\n".join(block.text for block in result.content if block.type == "text"), "error": result.is_error}


async def main():
    mode = "legacy" if ERA == "legacy" else "2026-07-28"
    client = Client(URL, mode=mode, elicitation_callback=asked, message_handler=told, cache=None)
    async with client:
        seen["version"] = client.protocol_version
        arguments = json.loads(ARGUMENTS)
        if ASPECT == "cancel":
            call = asyncio.create_task(client.call_tool(TOOL, arguments))
            await asyncio.sleep(2)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            # The same client goes on undisturbed, and the tool says what became of the other call.
            for _ in range(50):
                answer = said(await client.call_tool("cancelled", {}))
                if answer["text"] != "0":
                    break
                await asyncio.sleep(0.2)
            seen["answer"] = answer
        elif ASPECT == "list_changed":
            before = {tool.name for tool in (await client.list_tools()).tools}
            if ERA == "legacy":
                await client.call_tool(TOOL, arguments)
                await asyncio.wait_for(changed.wait(), 30)
            else:
                async with client.listen(tools_list_changed=True) as subscription:
                    await client.call_tool(TOOL, arguments)
                    await asyncio.wait_for(anext(aiter(subscription)), 30)
            after = {tool.name for tool in (await client.list_tools()).tools}
            seen["new"] = sorted(after - before)
        else:
            await client.list_tools()
            result = await client.call_tool(TOOL, arguments, progress_callback=progressed)
            seen["answer"] = said(result)
    print(json.dumps(seen))


asyncio.run(main())
