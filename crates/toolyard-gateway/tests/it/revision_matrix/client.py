"""A client with the official Python SDK that makes one call through the gateway and prints what it observes as JSON.

    python client.py legacy|modern URL SCENARIO TOOL ARGUMENTS

SCENARIO is call, progress, cancel, elicitation, cancel_then_call (ARGUMENTS are two calls), slow_elicitation (the answer takes 5 seconds), prompt (TOOL is its name), meta (the call has metadata), instructions (a modern client asks for them, too) or list_changed.
"""

import asyncio
import json
import sys

from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

FAMILY, URL, SCENARIO, TOOL, ARGUMENTS = sys.argv[1:6]
ELICITATION_ANSWERS = {"name": "Ada", "place": "London", "check": True}
observed = {"progress": [], "elicitations": [], "received": []}


async def on_elicitation(_context, params):
    fields = params.requested_schema["properties"]
    observed["elicitations"].append(params.message)
    if SCENARIO == "slow_elicitation":
        await asyncio.sleep(5)
    return ElicitResult(action="accept", content={key: value for key, value in ELICITATION_ANSWERS.items() if key in fields})


async def on_progress(progress, total, message):
    observed["progress"].append([progress, total, message])


changed = asyncio.Event()


async def on_message(message):
    method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", None)
    observed["received"].append(str(method))
    if method == "notifications/tools/list_changed":
        changed.set()


def outcome(result):
    return {"text": "\n".join(block.text for block in result.content if block.type == "text"), "error": result.is_error}


async def main():
    modern = "auto" if SCENARIO == "instructions" else "2026-07-28"
    mode = "legacy" if FAMILY == "legacy" else modern
    client = Client(URL, mode=mode, elicitation_callback=on_elicitation, message_handler=on_message, cache=None)
    async with client:
        observed["version"] = client.protocol_version
        observed["instructions"] = client.instructions
        arguments = json.loads(ARGUMENTS)
        if SCENARIO == "cancel":
            call = asyncio.create_task(client.call_tool(TOOL, arguments))
            await asyncio.sleep(2)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            # The session still works, and the tool `cancelled` returns how many calls the server saw cancelled.
            for _ in range(50):
                answer = outcome(await client.call_tool("cancelled", {}))
                if answer["text"] != "0":
                    break
                await asyncio.sleep(0.2)
            observed["answer"] = answer
        elif SCENARIO == "list_changed":
            before = {tool.name for tool in (await client.list_tools()).tools}
            if FAMILY == "legacy":
                await client.call_tool(TOOL, arguments)
                await asyncio.wait_for(changed.wait(), 30)
            else:
                async with client.listen(tools_list_changed=True) as subscription:
                    await client.call_tool(TOOL, arguments)
                    await asyncio.wait_for(anext(aiter(subscription)), 30)
            after = {tool.name for tool in (await client.list_tools()).tools}
            observed["new_tools"] = sorted(after - before)
        elif SCENARIO == "cancel_then_call":
            (first, first_arguments), (second, second_arguments) = arguments
            call = asyncio.create_task(client.call_tool(first, first_arguments))
            await asyncio.sleep(2)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            if second:
                observed["answer"] = outcome(await client.call_tool(second, second_arguments))
        elif SCENARIO == "prompt":
            prompt = await client.get_prompt(TOOL, arguments)
            observed["answer"] = {"text": prompt.messages[0].content.text, "error": False}
        else:
            await client.list_tools()
            meta = {"com.example/tenant": {"id": 7}, "toolyard/key": "x"} if SCENARIO == "meta" else None
            try:
                answer = await client.call_tool(TOOL, arguments, progress_callback=on_progress, meta=meta)
                observed["answer"] = outcome(answer)
            except MCPError as error:
                observed["answer"] = {"text": str(error), "error": True}
    print(json.dumps(observed))


asyncio.run(main())
