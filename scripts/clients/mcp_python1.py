"""Lists and calls tools through the gateway with the official Python client, version 1: python1.py http URL | stdio COMMAND…"""

import asyncio, json, os, sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(transport, target):
    if transport == "http":
        streams_context = streamablehttp_client(target[0], headers={"Authorization": f"Bearer {os.environ['TOKEN']}"})
    else:
        streams_context = stdio_client(StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ)))
    async with streams_context as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        answer = await session.call_tool("calculate", {"expression": "6*7"})
        upstream = await session.call_tool("get_current_time", {"timezone": "UTC"})
    texts = {"answer": answer.content[0].text, "upstream": upstream.content[0].text}
    print(json.dumps({"tools": [tool.name for tool in tools], **texts}))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
