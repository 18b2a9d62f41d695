"""A client with the official Python SDK that makes one call through the gateway and prints what it observes as JSON.

    python client.py legacy|modern URL call|progress|cancel|elicitation|thinking|list_changed TOOL ARGUMENTS
"""

import asyncio
import json
import sys

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

FAMILY, URL, ASPECT, TOOL, ARGUMENTS = sys.argv[1:6]
KNOWN = {"name": "Ada", "place": "London", "check": True}
seen = {"progress": [], "asked": [], "received": []}


async def elicited(_context, params):
    fields = params.requested_schema["properties"]
    seen["asked"].append(params.message)
    if ASPECT == "thinking":
        await asyncio.sleep(5)
    return ElicitResult(action="accept", content={key: value for key, value in KNOWN.items() if key in fields})


async def progressed(progress, total, message):
    seen["progress"].append([progress, total, message])


changed = asyncio.Event()


async def received(message):
    method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
    seen["received"].append(str(method))
    if method == "notifications/tools/list_changed":
        changed.set()


def outcome(result):
    return {"text": "\n".join(block.text for block in result.content if block.type == "text"), "error": result.is_error}


async def main():
    mode = "legacy" if FAMILY == "legacy" else "2026-07-28"
    client = Client(URL, mode=mode, elicitation_callback=elicited, message_handler=received, cache=None)
    async with client:
        seen["version"] = client.protocol_version
        arguments = json.loads(ARGUMENTS)
        if ASPECT == "cancel":
            call = asyncio.create_task(client.call_tool(TOOL, arguments))
            await asyncio.sleep(2)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            # The session still works, and a tool tells what became of the cancelled call.
            for _ in range(50):
                answer = outcome(await client.call_tool("cancelled", {}))
                if answer["text"] != "0":
                    break
                await asyncio.sleep(0.2)
            seen["answer"] = answer
        elif ASPECT == "list_changed":
            before = {tool.name for tool in (await client.list_tools()).tools}
            if FAMILY == "legacy":
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
            try:
                seen["answer"] = outcome(await client.call_tool(TOOL, arguments, progress_callback=progressed))
            except MCPError as error:
                seen["answer"] = {"text": str(error), "error": True}
    print(json.dumps(seen))


asyncio.run(main())
