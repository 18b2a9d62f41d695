"""Hidden characters on every path from a server to MCP clients and terminals: path × payload."""

import json
import re

from hidden_payloads import ALL, PAYLOADS, arrived, data_payloads, is_hidden, strings_in
from mcp_clients import LegacyClient, ModernClient, StdioClient, authorized, http_request
from sandbox import READ_ONLY, tool
from trial import HIDDEN, attack
from web_servers import ModelServer, plan

BEHAVIOUR = {
    "result": {"text": ALL},
    "error_result": {"text": ALL, "error": True},
    "protocol_error": {"rpc_error": ALL},
    "structured": {"structuredContent": {"value": ALL, ALL: "key", "list": [ALL, {"deep": ALL}]}, "text": "ok"},
    "link": {"content": [{"type": "resource_link", "uri": "a://b", "name": ALL, "title": ALL, "description": ALL}]},
    "link_address": {"content": [{"type": "resource_link", "uri": f"a://{ALL}", "name": "x"}]},
    "embedded": {"content": [{"type": "resource", "resource": {"uri": "a://b", "text": ALL, "mimeType": ALL}}]},
    "unknown_content": {"content": [{"type": "hologram", "text": ALL, "data": {"x": ALL}}]},
    "meta": {"_meta": {"note": ALL}, "text": "ok"},
    "log": {"log": ALL, "text": "ok"},
    "progress": {"progress": ALL, "text": "ok"},
    "elicitation": {"elicit": ALL, "text": "ok"},
    "long_result": {"text": ALL + " filler" * 20_000},
    "long_tail": {"text": "filler " * 20_000 + ALL},
}


def hostile(box):
    described = {"type": "object", "properties": {"x": {"type": "string", "description": ALL, "title": ALL}}}
    tools = [tool(name, **READ_ONLY) for name in BEHAVIOUR] + [
        tool("described", ALL, title=ALL),
        {**tool("schema_text"), "inputSchema": described},
        tool("annotated", annotations={"title": ALL}),
        {
            **tool("schema_values"),
            "inputSchema": {"type": "object", "properties": {"x": {"enum": [ALL], "default": ALL, "examples": [ALL]}}},
        },
        {
            **tool("output_schema"),
            "outputSchema": {"type": "object", "description": ALL, "properties": {ALL: {"description": ALL}}},
        },
        tool(f"name{ALL}"),
        tool("name\u200b"),
        tool("name\x1b[8m"),
    ]
    # Definitions with much hidden text are rejected, those with little are cleaned.
    tools += [tool(f"described_{index}", f"Described {text}") for index, (text, _) in enumerate(PAYLOADS.values())]
    box.server("dying", [tool("last_words", **READ_ONLY)], behaviour={"last_words": {"stderr": ALL, "die": True}})
    resource = {"uri": "hidden://text", "name": ALL, "title": ALL, "description": ALL}
    prompt = {"name": "hidden_prompt", "title": ALL, "description": ALL, "arguments": [{"name": "x", "description": ALL}]}
    return box.server(
        "hidden",
        tools,
        {"trusted": True},
        behaviour=BEHAVIOUR,
        resources=[resource, {"uri": f"hidden://{ALL}", "name": "x"}],
        templates=[{"uriTemplate": "hidden://{x}", "name": ALL, "description": ALL}],
        resource_text=ALL,
        prompts=[prompt],
        prompt_text=ALL,
        completions=[ALL],
        instructions=ALL,
        title=ALL,
    )


def check(trial, path, output):
    """One path: each payload is a variant."""
    found = set(arrived(output))
    for name in PAYLOADS:
        trial.must(name not in found, f"{path}: {name}")


def text_of_answer(client, answer):
    """All strings that a client receives, as it decodes them."""
    messages = list(answer.messages)
    for text in getattr(client, "heard", []):
        try:
            messages.append(json.loads(text))
        except ValueError:
            pass
    if hasattr(client, "heard"):
        client.heard.clear()
    return "\n".join(text for message in messages for text in strings_in(message))


@attack(
    "hidden-text-to-clients", "no hidden character of a server's results, errors, messages or lists reaches an MCP client", HIDDEN
)
def to_clients(trial):
    box = trial.box()
    hostile(box)
    box.settings('[serve]\ntoken = "${TOKEN}"\nsurface = "full"\n[serve.profiles.find]\nsurface = "search"\n')
    box.meet()
    base = box.serve()
    clients = [
        LegacyClient(base, capabilities={"elicitation": {}}),
        ModernClient(base, capabilities={"elicitation": {"form": {}}}),
        trial.keep(StdioClient(box.serve_stdio(), capabilities={"elicitation": {}})),
    ]
    clients[0].listen()
    for client in clients:
        trial.keep(client)
        family = client.family
        if family != "modern":
            check(trial, f"{family}, handshake", text_of_answer(client, client.started))
            client.request("logging/setLevel", {"level": "debug"})
        requests = {
            "list of tools": ("tools/list", {}),
            "list of resources": ("resources/list", {}),
            "templates": ("resources/templates/list", {}),
            "list of prompts": ("prompts/list", {}),
            "resource": ("resources/read", {"uri": "hidden://text"}),
            "prompt": ("prompts/get", {"name": "hidden_prompt", "arguments": {}}),
            "completion": (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "hidden_prompt"}, "argument": {"name": "x", "value": ""}},
            ),
        }
        for path, (method, params) in requests.items():
            check(trial, f"{family}, {path}", text_of_answer(client, client.request(method, params)))
        for name in BEHAVIOUR:
            meta = {"progressToken": f"token-{name}", "io.modelcontextprotocol/logLevel": "debug"}
            answer = client.call(name, _meta=meta)
            trial.control(
                answer.messages and "circuit" not in answer.text and "not exist" not in answer.text,
                f"{family}, {name}: no answer: {answer}",
            )
            check(trial, f"{family}, {name}", text_of_answer(client, answer))
            for reference in re.findall(r"toolyard://[\w/.-]+", answer.text)[:1]:
                pages = [client.request("resources/read", {"uri": reference})]
                pages += [
                    client.call("read_result", {"reference": reference.rsplit("/", 1)[-1], "offset": offset})
                    for offset in (0, 139_000)
                ]
                for page in pages:
                    check(trial, f"{family}, {name}, stored result", text_of_answer(client, page))
        check(trial, f"{family}, last words", text_of_answer(client, client.call("last_words")))
        check(trial, f"{family}, unknown tool", text_of_answer(client, client.call("nam")))
    for client in (LegacyClient(base, "/mcp/find"), ModernClient(base, "/mcp/find")):
        for name, arguments in (
            ("search_tools", {"query": "described schema text name"}),
            ("describe_tool", {"name": "described"}),
            ("describe_tool", {"name": "schema_text"}),
            ("call_tool", {"name": "result", "arguments": {}}),
            ("call_tool", {"name": "error_result", "arguments": {}}),
        ):
            check(trial, f"{client.family}, {name}", text_of_answer(client, client.call(name, arguments)))


@attack(
    "hidden-text-modern-server", "hidden characters of a stateless server, its input requests included, reach no client", HIDDEN
)
def modern_server(trial):
    box = trial.box()
    names = {
        "result": {"text": ALL},
        "error_result": {"text": ALL, "error": True},
        "protocol_error": {"rpc_error": ALL},
        "asks": {"input": ALL, "text": "ok"},
    }
    box.server("hidden", [tool(name, "x", **READ_ONLY) for name in names], {"trusted": True}, behaviour=names, modern=True)
    met = box.meet()
    trial.control("2026-07-28" in met.text, f"the server is not modern: {met}")
    base = box.serve()
    for client in (
        ModernClient(base, capabilities={"elicitation": {"form": {}}}),
        LegacyClient(base, capabilities={"elicitation": {}}),
    ):
        check(trial, f"{client.family}, list", text_of_answer(client, client.request("tools/list")))
        for name in names:
            answer = client.call(name)
            trial.control("not exist" not in answer.text, f"{name} does not work")
            check(trial, f"{client.family}, {name}", text_of_answer(client, answer))


@attack("hidden-text-of-the-security-data", "no attack text of the security data passes with its hidden characters", HIDDEN)
def security_data(trial):
    texts = data_payloads() or [text for text, _ in PAYLOADS.values()]
    box = trial.box()
    by_number = {str(number): text for number, text in enumerate(texts)}
    number = {"n": {"type": "string"}}
    box.server(
        "hidden",
        [tool("result", "x", number, **READ_ONLY), tool("failure", "x", number, **READ_ONLY)],
        {"trusted": True},
        behaviour={
            "result": {"by_argument": "n", "texts": by_number},
            "failure": {"by_argument": "n", "texts": by_number, "error": True},
        },
    )
    box.meet()
    base = box.serve()
    clients = [LegacyClient(base), ModernClient(base)]
    for index in by_number:
        for client in clients:
            for name in ("result", "failure"):
                answer = text_of_answer(client, client.call(name, {"n": index}))
                left = sorted({f"U+{ord(letter):04X}" for letter in answer if is_hidden(letter)})
                trial.must(not left, f"{client.family}, {name}, text {index}: {left[:3]}")


# Sequences that Toolyard itself writes: colours, cursor movements of its progress display.
OWN_SEQUENCES = re.compile(
    r"\x1b\[(?:[0-7]?(?:;[0-9]+)*|[39][0-7]|22|23|24|39|49)m|\x1b\[\d*[ABCDGJK]|\x1b\[\?25[lh]|\x1b\[\?2004[lh]"
)


def at_terminal(trial, box, path, *command, answers=(), timeout=15, cwd=None):
    output = box.at_terminal(*command, answers=answers, timeout=timeout, cwd=cwd).out
    check(trial, f"terminal, {path}", OWN_SEQUENCES.sub("", output))


@attack(
    "hidden-text-to-terminals", "no hidden character of a server, a model, a skill or a project file reaches the terminal", HIDDEN
)
def to_terminals(trial):
    box = trial.box()
    server = hostile(box)
    box.meet()
    at_terminal(trial, box, "tools list", "tools", "list")
    at_terminal(trial, box, "tools list --json", "tools", "list", "--json")
    for name in ("described", "schema_text", "result"):
        at_terminal(trial, box, f"tools show {name}", "tools", "show", name)
        at_terminal(trial, box, f"tools show {name} --json", "tools", "show", name, "--json")
    at_terminal(trial, box, "tools search", "tools", "search", "described schema text")
    box.settings('[models.m]\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\ntool_calling = "text"\n')
    at_terminal(trial, box, "ask --as-sent", "ask", "--as-sent", "described")
    for name in BEHAVIOUR:
        for options in (
            ([], ["--json"], ["--raw"]) if name in ("result", "structured", "error_result") else ([], ["--json"])
        ):
            at_terminal(
                trial,
                box,
                f"call {name} {' '.join(options)}",
                "call",
                name,
                *options,
                answers=[("a", "x\n")] if name == "elicitation" else (),
            )
    at_terminal(trial, box, "call last_words", "call", "last_words")
    at_terminal(trial, box, "servers logs of a dead server", "servers", "logs", "dying")
    at_terminal(trial, box, "call -vv", "-vv", "call", "log")
    at_terminal(trial, box, "servers list", "servers", "list")
    at_terminal(trial, box, "servers logs", "servers", "logs", "hidden")
    at_terminal(trial, box, "servers logs --json", "servers", "logs", "hidden", "--json")
    server.change(tools=[tool("described", "changed " + ALL), tool("result", "changed " + ALL)])
    at_terminal(trial, box, "servers test", "servers", "test")
    at_terminal(trial, box, "servers show", "servers", "show", "hidden")
    at_terminal(trial, box, "servers show --json", "servers", "show", "hidden", "--json")
    at_terminal(trial, box, "servers approve", "servers", "approve", "hidden", answers=[("[y/N]", "n\n")])
    at_terminal(trial, box, "tools show --history", "tools", "show", "described", "--history")
    at_terminal(trial, box, "unknown tool", "call", "x" + ALL.replace("\x00", ""))
    at_terminal(trial, box, "doctor", "doctor")


@attack(
    "hidden-text-of-clients-and-runs",
    "client names, questions, answers, arguments and stored runs bring no hidden character to the terminal",
    HIDDEN,
)
def clients_and_runs(trial):
    box = trial.box()
    box.server(
        "hidden",
        [tool("result", **READ_ONLY), tool("send", properties={"text": {"type": "string"}})],
        {"trusted": True},
        behaviour=BEHAVIOUR,
    )
    steps = [("r", "result", {}), ("s", "send", {"text": ALL, ALL: ALL}, ["r"])]

    def reply(messages, _):
        return ALL if "Answer the request" in json.dumps(messages) else plan(*steps)

    model = trial.keep(ModelServer(reply))
    box.settings(model.toml())
    box.meet()
    at_terminal(trial, box, "ask: plan, result, approval", "ask", "send", answers=[("[d]etails", "d\n"), ("[y]es", "y\n")])
    at_terminal(trial, box, "ask --json", "ask", "--json", "--yes", "send")
    at_terminal(trial, box, "ask --plan-only", "ask", "--plan-only", "send")
    base = box.serve()
    ModernClient(base, name=ALL).call("result")
    LegacyClient(base, name=ALL).call("result")
    ModernClient(base, name="x").call("unknown" + ALL)
    answer = http_request(
        base, "POST", "/v1/chat/completions", {"model": "assistant", "messages": [{"role": "user", "content": ALL}]}, authorized()
    )
    trial.control(answer.status in (200, 422), f"no answer: {answer}")
    box.processes[-1].terminate()
    box.processes[-1].wait()
    log = OWN_SEQUENCES.sub("", box.gateway_log.read_text(errors="replace"))
    check(trial, "log of the gateway", log)
    for command in (
        ["audit", "tail"],
        ["audit", "tail", "--json"],
        ["audit", "search", "--outcome", "ok"],
        ["runs", "list"],
        ["runs", "list", "--json"],
        ["runs", "show", "last"],
        ["runs", "show", "last", "--json"],
        ["runs", "replay", "last"],
        ["runs", "unknown"],
    ):
        at_terminal(trial, box, " ".join(command), *command)


@attack("hidden-text-of-projects", "project files and skills bring no hidden character to the terminal", HIDDEN)
def projects(trial):
    box = trial.box()
    hidden = ALL.replace("\x00", "")
    (box.project / ".mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    f"server{hidden}": {"command": f"sh{hidden}", "args": [hidden]},
                    "plain": {"command": "true", "args": [hidden], "env": {"X": hidden}},
                }
            }
        )
    )
    skill = box.project / ".agents/skills/word-count"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: word-count\ndescription: {json.dumps(hidden)}\n---\n{hidden}\n")
    (skill / ("file" + "\u202e\u200b\x1b[8m")).write_text(hidden)
    at_terminal(trial, box, "trust", "trust", answers=[("[y/N]", "n\n")])
    for command in (
        ["skills", "list"],
        ["skills", "show", "word-count"],
        ["call", "word-count"],
        ["skills", "list", "--json"],
        ["import", "--dry-run"],
        ["servers", "list"],
        ["tools", "list"],
        ["doctor"],
    ):
        at_terminal(trial, box, " ".join(command), *command)
    at_terminal(trial, box, "skills trust", "skills", "trust", "word-count", answers=[("[y/N]", "n\n")])
    (box.project / "toolyard.toml").write_text(
        f"[servers.{json.dumps('x' + 'é')}]\ncommand = {json.dumps(hidden)}\nwrong = {json.dumps(hidden)}\n"
    )
    for command in (["servers", "list"], ["doctor"], ["trust"]):
        at_terminal(trial, box, f"toolyard.toml, {' '.join(command)}", *command, answers=[("[y/N]", "n\n")])


@attack(
    "hidden-text-of-agents-to-clients",
    "an agent's answer, plan and events bring no hidden character of a tool or model to clients",
    HIDDEN,
)
def agents_to_clients(trial):
    box = trial.box()
    box.server(
        "hidden",
        [tool("result", **READ_ONLY), tool("error_result", **READ_ONLY), tool("send", properties={"text": {"type": "string"}})],
        {"trusted": True},
        behaviour=BEHAVIOUR,
    )

    def reply(messages, _):
        text = json.dumps(messages)
        if "Answer the request" in text:
            return ALL
        return plan(("r", "result", {}), ("e", "error_result", {})) if "Give better" not in text else "no"

    box.settings(trial.keep(ModelServer(reply)).toml())
    box.meet()
    base = box.serve()
    for client in (LegacyClient(base), ModernClient(base)):
        check(
            trial,
            f"{client.family}, ask_agent",
            text_of_answer(client, client.call("ask_agent", {"question": "go"}, _meta={"progressToken": "p"})),
        )
    asked = http_request(
        base,
        "POST",
        "/v1/chat/completions",
        {"model": "assistant", "messages": [{"role": "user", "content": "go"}]},
        authorized(),
    )
    check(trial, "/v1", "\n".join(strings_in(asked.messages)))
    streamed = http_request(
        base,
        "POST",
        "/v1/chat/completions",
        {"model": "assistant", "stream": True, "messages": [{"role": "user", "content": "go"}]},
        authorized(),
    )
    check(trial, "/v1, streamed", "".join(strings_in(streamed.messages)))
