"""A server with the official Python SDK that offers the same in both revision families: elicitation, progress, log
messages, changing lists, resource updates, and skills.

    python both_families.py stdio
    python both_families.py http PORT
"""

import asyncio
import hashlib
import sys
from typing import Annotated

from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import MCPError
from mcp_types import Completion, CreateMessageResult, ListRootsResult, RequestParams, SamplingMessage, TextContent
from pydantic import BaseModel

MANIFEST = "---\nname: juggling\ndescription: How to juggle with three balls\n---\n\nThrow, throw, catch.\n"


class Skills(Extension):
    identifier = "io.modelcontextprotocol/skills"

    def methods(self):
        async def list_skills(_context, _params):
            return {"skills": [skill()], "ttlMs": 1000, "cacheScope": "public"}

        async def get_skill(_context, params):
            if params.uri != skill()["uri"]:
                raise MCPError(-32602, "there is no such skill")
            return {"skill": skill()}

        class SkillParams(RequestParams):
            uri: str

        return [
            MethodBinding("skills/list", RequestParams, list_skills),
            MethodBinding("skills/get", SkillParams, get_skill),
        ]


def skill():
    digest = hashlib.sha256(MANIFEST.encode()).hexdigest()
    uri = "skill://juggling/SKILL.md"
    return {
        "uri": uri,
        "frontmatter": {"name": "juggling", "description": "How to juggle with three balls"},
        "resources": [{"uri": uri, "digest": f"sha256:{digest}", "size": len(MANIFEST)}],
    }


INSTRUCTIONS = "Greet before you count."
server = MCPServer("both-families", instructions=INSTRUCTIONS, extensions=[Skills()], log_level="WARNING")
tasks = set()


class Name(BaseModel):
    name: str


class Place(BaseModel):
    place: str


def ask_name() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


def ask_place() -> Elicit[Place]:
    return Elicit("Where are you?", Place)


def sample_text() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="hello"))], max_tokens=5)


def list_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def greet(name: Annotated[Name, Resolve(ask_name)]) -> str:
    return f"hello {name.name}"


@server.tool()
async def find(name: Annotated[Name, Resolve(ask_name)], place: Annotated[Place, Resolve(ask_place)]) -> str:
    return f"{name.name} is in {place.place}"


@server.tool()
async def think(reply: Annotated[CreateMessageResult, Resolve(sample_text)]) -> str:
    return f"a model said {reply.content.text}"


@server.tool()
async def look(roots: Annotated[ListRootsResult, Resolve(list_roots)]) -> str:
    return " ".join(str(root.uri) for root in roots.roots)


cancelled_calls = 0


@server.tool()
async def count(steps: int, pause: float, context: Context) -> str:
    global cancelled_calls
    try:
        for step in range(1, steps + 1):
            await asyncio.sleep(pause)
            await context.report_progress(step, steps, f"step {step}")
    except asyncio.CancelledError:
        cancelled_calls += 1
        raise
    return f"{steps} steps"


@server.tool()
async def cancelled() -> str:
    """The number of cancelled calls of `count`."""
    return str(cancelled_calls)


@server.tool()
async def say(words: str, context: Context) -> str:
    await context.log("warning", words)
    return "said"


@server.tool()
async def fail() -> str:
    raise ToolError("it does not work")


@server.tool()
async def refuse() -> str:
    raise MCPError(-32055, "never", {"reason": "because"})


@server.tool()
async def meta(context: Context) -> dict:
    """The `_meta` of the request, without what the connection itself needs."""
    found = dict(context.request_context.meta or {})
    own = ("progressToken", "progress_token", "io.modelcontextprotocol/")
    return {"meta": {key: value for key, value in found.items() if not key.startswith(own)}}


def run_later(seconds, make_change):
    async def run():
        await asyncio.sleep(seconds)
        await make_change()

    task = asyncio.create_task(run())
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def is_modern(context):
    return (context.protocol_version or "") >= "2026-07-28"


@server.tool()
async def grow(name: str, after: float, context: Context) -> str:
    """Adds a tool, a prompt and a resource of this name, `after` seconds after the response."""
    modern, session = is_modern(context), context.session

    async def make_change():
        server.add_tool(lambda: name, name=name, description="new")
        server.prompt(name=name)(lambda: "a new prompt")
        server.resource(f"note://{name}", name=name)(lambda: "a new note")
        if modern:
            await context.notify_tools_changed()
            await context.notify_prompts_changed()
            await context.notify_resources_changed()
        else:
            await session.send_tool_list_changed()
            await session.send_prompt_list_changed()
            await session.send_resource_list_changed()

    run_later(after, make_change)
    return "soon"


@server.tool()
async def touch(uri: str, after: float, context: Context) -> str:
    """Announces that a resource changed, `after` seconds after the response."""
    modern, session = is_modern(context), context.session

    async def make_change():
        if modern:
            await context.notify_resource_updated(uri)
        else:
            await session.send_resource_updated(uri)

    run_later(after, make_change)
    return "soon"


@server.prompt()
def hello(name: str) -> str:
    return f"Say hello to {name}."


@server.resource("note://first", name="first")
def first() -> str:
    return "the first note"


@server.resource("note://numbered/{number}", name="numbered")
def numbered(number: str) -> str:
    return f"note number {number}"


@server.resource("skill://juggling/SKILL.md", name="juggling", mime_type="text/markdown")
def manifest() -> str:
    return MANIFEST


@server.completion()
async def complete(ref, argument, context):
    return Completion(values=[f"{argument.value}-{argument.name}"], has_more=False)


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
