"""Attacks on secrets: servers that echo what they were configured with, and files that others can read."""

import json
import os
import random
import stat

from mcp_clients import LegacyClient, ModernClient, authorized, http_request
from sandbox import READ_ONLY, tool, wait_until
from trial import attack
from web_servers import WebServer

# Values without a telling format, one of them with characters that JSON escapes.
VALUES = {"plain": "zebra-quokka-lantern-77", "escaped": 'pa"ss\\wo/rd\té-55', "long": "correct horse battery staple " * 8}


def echoing_server(trial, value):
    box = trial.box()
    box.extra_env = {"UPSTREAM_KEY": value}
    names = {
        "result": {"environment": ["API_KEY"]},
        "error": {"environment": ["API_KEY"], "error": True},
        "rpc": {"rpc_error": f"cannot sign in with {value}"},
        "structured": {"structuredContent": {"key": value, "list": [value]}, "text": value},
        "log": {"log": f"key {value}", "text": "ok"},
        "progress": {"progress": f"key {value}", "text": "ok"},
        "stderr": {"stderr": f"key {value}", "text": "ok"},
        "large": {"text": "x " * 60_000 + value + " x" * 60_000},
        "elicit": {"elicit": f"is {value} right?", "text": "ok"},
        "asks": {"text": f"key={value}&x=1"},
        "embedded": {
            "content": [
                {"type": "resource", "resource": {"uri": "a://b", "text": value}},
                {"type": "resource_link", "uri": "a://c", "name": value},
            ]
        },
    }
    server = box.server(
        "echo",
        [tool(name, **READ_ONLY) for name in names],
        {"env": {"API_KEY": "${UPSTREAM_KEY}"}, "trusted": True},
        behaviour=names,
        resources=[{"uri": "echo://key", "name": "key"}],
        resource_text=value,
    )
    box.settings(top='journal = "always"\n')
    box.meet()
    return box, server, list(names)


def contains(text, value):
    """Whether a text contains a value, also escaped as in JSON once or twice."""
    once = json.dumps(value, ensure_ascii=False)[1:-1]
    ascii_once = json.dumps(value)[1:-1]
    return any(form in text for form in (value, once, ascii_once, json.dumps(once)[1:-1]))


@attack("configured-secret-to-clients", "a configured secret that a server echoes is masked in results, errors and messages")
def secret_to_clients(trial):
    for kind, value in VALUES.items():
        box, server, names = echoing_server(trial, value)
        base = box.serve()
        clients = [LegacyClient(base, capabilities={"elicitation": {}}), ModernClient(base)]
        for client in clients:
            for name in names:
                text = client.call(name, _meta={"progressToken": "t"}).text + "".join(getattr(client, "heard", []))
                trial.must(not contains(text, value), f"{kind}, {name}, {client.family}")
                if hasattr(client, "heard"):
                    client.heard.clear()
            text = client.request("resources/read", {"uri": "echo://key"}).text
            trial.must(not contains(text, value), f"{kind}, resource, {client.family}")
        for name in names:
            answer = box.call(name, {}, "--json")
            trial.must(not contains(answer.text, value), f"{kind}, {name}, command line")


@attack("configured-secret-at-rest", "a configured secret that a server echoes is in no journal, log, export or audit record")
def secret_at_rest(trial):
    for kind, value in VALUES.items():
        box, server, names = echoing_server(trial, value)
        for name in names:
            box.call(name)
        client = LegacyClient(box.serve())
        for name in names:
            client.call(name)
        box.processes[-1].terminate()
        box.processes[-1].wait()
        stored = box.stored()
        trial.control("echo" in stored, "nothing was stored")
        trial.must(not contains(stored, value), f"{kind}: in the store or in a file")
        export = box.path / "audit.jsonl"
        box.run("audit", "export", export)
        trial.must(not contains(export.read_text(), value), f"{kind}: in the audit export")
        trial.must(not contains(box.run("servers", "logs", "echo").text, value), f"{kind}: in the log of the server")
        shown = "".join(
            box.run(*command).text
            for command in (["runs", "list", "--json"], ["runs", "show", "last"], ["servers", "show", "echo"], ["doctor"])
        )
        trial.must(not contains(shown, value), f"{kind}: shown by a command")


@attack("configured-header-is-masked", "a secret in a header of an HTTP server, echoed in errors and results, is masked")
def header_secret(trial):
    value = VALUES["plain"]

    def handle(request):
        header = request.headers.get("X-Api-Key", "")
        if request.command != "POST":
            return 405, {}, header
        message = json.loads(request.body)
        if message.get("method") == "initialize":
            result = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": header, "version": "1"},
            }
        elif message.get("method") == "tools/list":
            result = {"tools": [tool("echo"), tool("fail"), tool("crash")]}
        elif message.get("method") == "tools/call":
            name = message["params"]["name"]
            if name == "crash":
                return 500, {}, f"cannot sign in with {header}"
            result = {"content": [{"type": "text", "text": f"you sent {header}"}], "isError": name == "fail"}
        elif "id" not in message:
            return 202, {}, ""
        else:
            return 200, {}, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
        return 200, {}, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})

    web = trial.keep(WebServer(handle))
    box = trial.box()
    box.extra_env = {"UPSTREAM_KEY": value}
    box.settings(
        f'[servers.web]\nurl = "{web.url}/mcp"\nheaders = {{ "X-Api-Key" = "${{UPSTREAM_KEY}}" }}\n', top='journal = "always"\n'
    )
    box.meet()
    base = box.serve()
    trial.control(any(value in json.dumps(headers) for _, _, headers, _ in web.requests), "the header was not sent")
    for client in (LegacyClient(base), ModernClient(base)):
        for name in ("echo", "fail", "crash"):
            trial.must(value not in client.call(name).text, f"{name}, {client.family}")
    for command in (
        ["call", "echo"],
        ["call", "fail"],
        ["call", "crash"],
        ["servers", "show", "web"],
        ["servers", "list"],
        ["-vv", "call", "crash"],
    ):
        trial.must(value not in box.run(*command).text, " ".join(command))
    trial.must(value not in box.stored(), "in the store or in a file")


@attack(
    "gateway-secrets-through-a-file-server",
    "a server that reads Toolyard's own files passes neither the operator's secret nor the token on to clients",
)
def gateway_secrets(trial):
    box = trial.box()
    serve = box.home / ".local/share/toolyard/serve"
    box.server("files", [tool("announced", **READ_ONLY), tool("token", **READ_ONLY)], {"trusted": True}, behaviour={
        "announced": {"read_files": f"{serve}/hubs/*.json"},
        "token": {"read_files": f"{serve}/token"},
    })
    box.settings('[serve]\nsurface = "full"\n')
    box.meet()
    base = box.serve()
    trial.control(wait_until(lambda: list(serve.glob("hubs/*.json"))), "the gateway is not announced")
    token = (serve / "token").read_text().strip()
    secret = json.loads(next(serve.glob("hubs/*.json")).read_text())["operator_secret"]
    answer = http_request(base, "POST", "/console/sign-in-codes", None, {"X-Toolyard-Operator": secret})
    trial.control(answer.status == 200, f"the secret signs nobody in: {answer.status}")
    for client in (LegacyClient(base, token=token), ModernClient(base, token=token)):
        for name in ("announced", "token"):
            text = client.call(name).text
            trial.control("redacted" in text, f"{name} read nothing: {text[:200]}")
            trial.must(secret not in text and token not in text, f"{name}, {client.family}")
    for name in ("announced", "token"):
        path = f"/api/v1/tools/{name}/call"
        text = http_request(base, "POST", path, {"arguments": {}}, authorized(token)).text
        trial.must(secret not in text and token not in text, f"{name}, HTTP API")
    stored = box.run("servers", "logs", "files").text
    trial.must(secret not in stored and token not in stored, "log of the server")


@attack(
    "files-readable-by-others", "exports, backups, logs, store and token are readable by their owner only, whatever the umask"
)
def readable_files(trial):
    box, server, names = echoing_server(trial, "unused-value-123")
    before = os.umask(0)
    try:
        box.settings('[serve]\nsurface = "full"\n', top='journal = "always"\n')
        box.call("stderr")
        box.serve()
        files = {name: box.path / name for name in ("export.jsonl", "backup.db", "audit.jsonl")}
        box.run("store", "export", files["export.jsonl"])
        box.run("store", "backup", files["backup.db"])
        box.run("audit", "export", files["audit.jsonl"])
        (box.path / "existing.jsonl").write_text("")
        (box.path / "existing.jsonl").chmod(0o644)
    finally:
        os.umask(before)
    written = [file for file in (box.home / ".local").rglob("*") if file.is_file()] + list(files.values())
    trial.control(all(file.exists() for file in files.values()) and len(written) > 4, "files were not written")
    for file in written:
        mode = stat.S_IMODE(file.stat().st_mode)
        trial.must(mode & 0o077 == 0, f"{file.name} {mode:o}")


@attack("known-formats-are-redacted", "secrets of known formats in results are redacted before anything is written")
def known_formats(trial):
    alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
    chance = random.Random(7)

    def word(length):
        return "".join(chance.choice(alphabet) for _ in range(length))

    values = [
        f"ghp_{word(36)}",
        f"AKIA{word(16).upper()}",
        f"sk-ant-api03-{word(93)}AA",
        f"xoxb-123456789012-123456789012-{word(24)}",
        f"glpat-{word(20)}",
        f"sk_live_{word(24)}",
        f"AIza{word(35)}",
        f"npm_{word(36)}",
        f"password={word(20)}",
        f"Bearer {word(40)}",
        f"postgres://user:{word(16)}@host/db",
    ]
    box = trial.box()
    box.server("leaky", [tool("leak", **READ_ONLY)], behaviour={"leak": {"text": "\n".join(values)}})
    box.settings(top='journal = "always"\n')
    box.meet()
    box.call("leak", {"note": values[0]})
    stored = box.stored()
    for value in values:
        secret = value.removeprefix("password=").removeprefix("Bearer ").split(":")[-1].split("@")[0]
        trial.must(secret not in stored, f"{value[:12]}… is stored")
