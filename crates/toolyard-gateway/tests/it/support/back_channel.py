"""A server with the official Python SDK that supports both revision families but asks its questions with
`Context.elicit`, which works only in the legacy one. Over stateless HTTP it works in neither.

    python back_channel.py stdio
    python back_channel.py http PORT
    python back_channel.py stateless-http PORT

Every call of `order` appends a line to `orders` in the working folder.
"""

import asyncio
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("back-channel", log_level="WARNING")


class Name(BaseModel):
    name: str


async def ask_name(context: Context) -> str:
    answer = await context.elicit("Who are you?", Name)
    return answer.data.name if answer.action == "accept" else "nobody"


@server.tool()
async def order(context: Context) -> str:
    with open("orders", "a") as orders:
        orders.write("one\n")
    return f"ordered for {await ask_name(context)}"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def look_up(context: Context) -> str:
    return f"found {await ask_name(context)}"


@server.tool()
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


@server.prompt()
async def letter(context: Context) -> str:
    return f"Dear {await ask_name(context)}"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    stateless = sys.argv[1] == "stateless-http"
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]), stateless_http=stateless)
