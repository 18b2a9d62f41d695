"""A server with FastMCP 4 that asks in both ways: `order` with `ctx.elicit`, which works only in legacy sessions, and `book`
with a result that asks for input, which exists only in modern ones.

    python fastmcp_server.py stdio
    python fastmcp_server.py http PORT
"""

import asyncio
import sys

from fastmcp import Context, FastMCP
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult
from pydantic import BaseModel

server = FastMCP("fastmcp")


class Name(BaseModel):
    name: str


@server.tool
async def order(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", Name)
    return f"ordered for {answer.data.name}"


@server.tool
async def book(ctx: Context) -> str | InputRequiredResult:
    if not ctx.input_responses:
        params = ElicitRequestFormParams(message="Who are you?", requested_schema=Name.model_json_schema())
        return InputRequiredResult(input_requests={"who": ElicitRequest(params=params)})
    return f"booked for {ctx.input_responses['who'].content['name']}"


@server.tool
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


if sys.argv[1] == "stdio":
    server.run("stdio", show_banner=False)
else:
    server.run("http", host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
