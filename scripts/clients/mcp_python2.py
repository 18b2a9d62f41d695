"""Lists and calls tools through the gateway with the official Python client, version 2: python2.py legacy|modern http URL | stdio COMMAND…"""

import asyncio, json, os, sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def main(family, transport, target):
    if transport == "http":
        http_client = create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['TOKEN']}"})
        server = streamable_http_client(target[0], http_client=http_client)
    else:
        server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
    mode = "2026-07-28" if family == "modern" else "legacy"
    async with Client(server, mode=mode) as client:
        tools = (await client.list_tools()).tools
        answer = await client.call_tool("calculate", {"expression": "6*7"})
        upstream = await client.call_tool("get_current_time", {"timezone": "UTC"})
    texts = {"answer": answer.content[0].text, "upstream": upstream.content[0].text}
    print(json.dumps({"tools": [tool.name for tool in tools], **texts}))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
