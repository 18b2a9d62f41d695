"""Attacks on the gateway's HTTP endpoint: no token, wrong hosts and origins, forged sessions and states, malformed requests."""

import json
import socket
import time
import urllib.parse

from mcp_clients import MODERN, LegacyClient, ModernClient, authorized, http_request
from sandbox import TOKEN, tool
from trial import OTHER, RULE, attack


def gateway(trial, *options, tables=""):
    box = trial.box()
    bank = box.server(
        "bank", [tool("pay", properties={"to": {"type": "string"}}), tool("look")], behaviour={"asks": {"elicit": "how much?"}}
    )
    box.settings(tables)
    box.meet()
    return box, bank, box.serve(*options)


def pay(name="pay", arguments=None, request_id=1):
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
    }
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments or {}, "_meta": meta},
    }


MODERN_HEADERS = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "pay"}


def raw(base, data, wait=2.0):
    """Sends bytes and returns what comes back."""
    address = urllib.parse.urlsplit(base)
    with socket.create_connection((address.hostname, address.port), timeout=wait) as connection:
        connection.sendall(data)
        received = b""
        try:
            while len(received) < 1 << 16:
                piece = connection.recv(4096)
                if not piece:
                    break
                received += piece
        except OSError:
            pass
        return received.decode(errors="replace")


@attack("no-token", "without the token nothing but `/healthz` is answered", RULE)
def no_token(trial):
    box, bank, base = gateway(trial)
    right = {**authorized(), **MODERN_HEADERS}
    trial.control(
        http_request(base, "POST", "/mcp", pay(), right).status == 200 and len(bank.calls()) == 1,
        "the right token is not accepted",
    )
    forged = [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        "Bearer ${TOKEN}",
        f"Bearer \x00{TOKEN}",
        "Bearer null",
        f"Bearer {TOKEN} x",
        f"Bearer x, Bearer {TOKEN}",
    ]
    for value in forged:
        headers = {key: item for key, item in right.items() if key != "Authorization"}
        if value is not None:
            headers["Authorization"] = value
        for method, path, body in (
            ("POST", "/mcp", pay()),
            ("POST", f"/mcp?token={TOKEN}", pay()),
            ("POST", f"/mcp?access_token={TOKEN}", pay()),
            ("GET", "/v1/models", None),
            ("POST", "/runs", {"question": "x"}),
            ("GET", "/mcp", None),
            ("DELETE", "/mcp", None),
        ):
            try:
                answer = http_request(base, method, path, body, headers)
            except (ValueError, OSError):
                continue
            trial.must(
                answer.status in (400, 401, 403, 404, 405) and len(bank.calls()) == 1,
                f"{value!r} at {method} {path}: {answer.status}",
            )
            trial.must("bank" not in answer.text and TOKEN not in answer.text, f"{value!r} at {path}: the answer tells something")
    for header in ({"Cookie": f"token={TOKEN}"}, {"X-Api-Key": TOKEN}, {"Mcp-Session-Id": "x"}, {"X-Forwarded-For": "127.0.0.1"}):
        answer = http_request(base, "POST", "/mcp", pay(), {**{k: v for k, v in right.items() if k != "Authorization"}, **header})
        trial.must(answer.status == 401, f"{header}: {answer.status}")
    health = http_request(base, "GET", "/healthz")
    trial.must(health.status == 200 and set(json.loads(health.text)) <= {"status"}, f"/healthz tells {health.text}")


@attack("web-page-reaches-the-gateway", "foreign Host and Origin headers are refused, even with the token (DNS rebinding)", RULE)
def web_page(trial):
    box, bank, base = gateway(trial)
    port = base.rsplit(":", 1)[1]
    good = {**authorized(), **MODERN_HEADERS}
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        f"localhost.evil.example:{port}",
        "127.0.0.1@evil.example",
        "",
        "0x7f000001.evil",
        "localhost:1@evil.example",
        "evil.example#127.0.0.1",
    ):
        answer = http_request(base, "POST", "/mcp", pay(), {**good, "Host": host})
        trial.must(answer.status in (400, 403, 421) and not bank.calls(), f"Host {host!r}: {answer.status}")
    for origin in (
        "https://evil.example",
        "null",
        f"http://127.0.0.1.evil.example:{port}",
        "http://localhost.evil.example",
        "file://",
        "chrome-extension://x",
        "https://127.0.0.1@evil.example",
        f"http://evil.example:{port}",
    ):
        answer = http_request(base, "POST", "/mcp", pay(), {**good, "Origin": origin})
        trial.must(answer.status in (400, 403) and not bank.calls(), f"Origin {origin!r}: {answer.status}")
        preflight = http_request(base, "OPTIONS", "/mcp", None, {"Origin": origin, "Access-Control-Request-Method": "POST"})
        allowed = preflight.headers.get("access-control-allow-origin")
        trial.must(not allowed, f"preflight of {origin!r} is allowed: {allowed}")
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):  # what a form can send
        before = len(bank.calls())
        http_request(base, "POST", "/mcp", pay(), {**good, "Content-Type": content_type, "Origin": "https://evil.example"})
        trial.must(len(bank.calls()) == before, f"{content_type} was accepted")


@attack("header-body-mismatch", "modern requests whose headers name another tool or method than the body are refused", RULE)
def header_mismatch(trial):
    box, bank, base = gateway(trial)
    for headers in (
        {"Mcp-Name": "look"},
        {"Mcp-Method": "tools/list"},
        {"MCP-Protocol-Version": "2025-06-18"},
        {"MCP-Protocol-Version": "2099-01-01"},
        {"Mcp-Name": "PAY"},
        {"Mcp-Name": "pay "[:-1] + "x"},
        {"Mcp-Name": ""},
    ):
        answer = http_request(base, "POST", "/mcp", pay(), {**authorized(), **MODERN_HEADERS, **headers})
        trial.must(not bank.calls("pay"), f"{headers}: {answer}")
    for missing in ("Mcp-Method", "Mcp-Name"):
        headers = {key: value for key, value in MODERN_HEADERS.items() if key != missing}
        http_request(base, "POST", "/mcp", pay(), {**authorized(), **headers})
        trial.must(not bank.calls("pay"), f"without {missing}")
    twice = json.dumps(pay()).replace('"name": "pay"', '"name": "look", "name": "pay"').encode()
    http_request(base, "POST", "/mcp", twice, {**authorized(), **MODERN_HEADERS, "Mcp-Name": "look"})
    trial.must(not bank.calls("pay"), "a repeated key hides the tool from the header check")


@attack("forged-sessions", "guessed, altered and foreign session ids are refused", RULE)
def forged_sessions(trial):
    box, bank, base = gateway(trial)
    client = LegacyClient(base)
    good = client.session
    trial.control(good and client.call("look").succeeded, "a session does not work")
    other = LegacyClient(gateway(trial)[2]).session
    forged = [
        "1",
        "x" * 200,
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good[:10] + ("A" if good[10] != "A" else "B") + good[11:],
        good[::-1],
        good + "A",
        other,
        "../" + good,
        good.upper() if good.upper() != good else good.lower(),
    ]
    for session in forged:
        client.session = session
        before = len(bank.calls())
        answer = client.call("pay")
        trial.must(len(bank.calls()) == before, f"session {session[:20]!r}…: {answer}")


@attack("request-smuggling", "ambiguous and malformed HTTP never smuggles a call", RULE, quick=False)
def smuggling(trial):
    box, bank, base = gateway(trial)
    host = base.removeprefix("http://")
    inner = json.dumps(pay())
    call = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: pay\r\nContent-Length: {len(inner)}\r\n"
    )
    whole = f"{call}\r\n{inner}"  # without a token
    outer = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    attempts = {
        "length and chunks": f"{outer}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{whole}",
        "two lengths": f"{outer}Content-Length: 0\r\nContent-Length: {len(whole)}\r\n\r\n{whole}",
        "length with sign": f"{outer}Content-Length: +0\r\n\r\n{whole}",
        "odd chunking": f"{outer}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{whole}",
        "chunked twice": f"{outer}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{whole}",
        "space before colon": f"{outer}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{whole}",
        "folded header": f"{outer}X: y\r\n Authorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n{whole}",
        "bare line feeds": whole.replace("\r\n", "\n"),
        "token in a smuggled header": whole.replace("Mcp-Name: pay", f"Mcp-Name: pay\rAuthorization: Bearer {TOKEN}"),
        "null in the path": whole.replace("POST /mcp ", "POST /mcp\x00 "),
        "chunk extension": f"{outer}Transfer-Encoding: chunked\r\n\r\n0;x=\n{whole}\r\n\r\n",
        "absolute address": whole.replace("POST /mcp ", f"POST http://{host}/mcp "),
    }
    for name, text in attempts.items():
        raw(base, text.encode(), 0.7)
        trial.must(not bank.calls(), name)
    trial.must(http_request(base, "GET", "/healthz").status == 200, "the gateway is gone")


@attack("path-tricks", "unusual paths reach no endpoint that they do not name", RULE)
def path_tricks(trial):
    box, bank, base = gateway(trial, tables='[serve.profiles.office]\nservers = ["none"]\n')
    for path in (
        "/mcp/office/../",
        "/mcp/office/..",
        "/mcp/office/%2e%2e",
        "/mcp/office/..%2f",
        "//mcp",
        "/mcp/office%00",
        "/mcp/%6fffice",
        "/mcp/office/",
        "/mcp/office;/../",
        "/MCP",
        "/mcp/.",
        "/mcp/office?profile=",
        "/mcp/office#",
        "/mcp/..;/mcp",
        "/mcp/nobody",
        "/mcp/office/mcp",
    ):
        answer = http_request(base, "POST", path, pay(), {**authorized(), **MODERN_HEADERS})
        trial.must(not bank.calls(), f"{path} called pay: {answer.status}")


@attack("registration-over-http", "no request registers a server, changes settings or trust", RULE)
def registration(trial):
    box, bank, base = gateway(trial)
    marker = box.path / "started"
    server = {"name": "x", "command": "touch", "args": [str(marker)]}
    for path in (
        "/servers",
        "/mcp/servers",
        "/v1/servers",
        "/api/servers",
        "/config",
        "/settings",
        "/admin",
        "/register",
        "/tools",
        "/trust",
    ):
        for method in ("POST", "PUT"):
            answer = http_request(base, method, path, server, authorized())
            trial.must(answer.status in (404, 405), f"{method} {path}: {answer.status}")
    client = ModernClient(base)
    for method in (
        "servers/add",
        "tools/register",
        "toolyard/approve",
        "server/register",
        "roots/list",
        "sampling/createMessage",
        "notifications/tools/list_changed",
    ):
        client.request(method, server)
    trial.must(not marker.exists() and "touch" not in box.config.read_text(), "a server was registered")


@attack("request-state-tampering", "the sealed `requestState` of a question is bound to its call, and cannot be altered", RULE)
def request_state(trial):
    box = trial.box()
    to = {"to": {"type": "string"}}
    bank = box.server(
        "bank",
        [tool("pay", properties=to), tool("wire", properties=to)],
        behaviour={"pay": {"input": "confirm?"}, "wire": {"input": "confirm?"}},
        modern=True,
    )
    box.meet()
    base = box.serve()
    client = ModernClient(base, capabilities={"elicitation": {"form": {}}})
    first = client.call("pay", {"to": "landlord"}).result
    trial.control(first.get("resultType") == "input_required", f"no question: {json.dumps(first)[:200]}")
    state = first.get("requestState", "")
    answers = {key: {"action": "accept", "content": {"answer": "yes"}} for key in first.get("inputRequests", {"first": 0})}
    trial.must(state != "hostile-state", "the state of the server is not sealed")

    def confirmed():
        return [call for call in bank.calls() if "inputResponses" in call]

    for name, arguments, forged in (
        ("wire", {"to": "landlord"}, state),
        ("pay", {"to": "ATTACKER"}, state),
        ("pay", {"to": "landlord"}, "hostile-state"),
        ("pay", {"to": "landlord"}, state[:-3] + "AAA"),
        ("pay", {"to": "landlord"}, state[3:]),
        ("pay", {"to": "landlord"}, ""),
    ):
        client.call(name, arguments, requestState=forged, inputResponses=answers)
        wrong = [call for call in confirmed() if call["name"] == "wire" or "ATTACKER" in json.dumps(call) or forged != state]
        trial.must(not wrong, f"{name} {arguments} with {'the same' if forged == state else 'a forged'} state: {wrong[:1]}")


@attack("malformed-requests", "malformed, oversized and slow requests neither stop the gateway nor delay others", OTHER)
def malformed(trial):
    box, bank, base = gateway(trial)
    host = base.removeprefix("http://")
    good = {**authorized(), **MODERN_HEADERS}
    slow = []
    for _ in range(50):
        address = urllib.parse.urlsplit(base)
        connection = socket.create_connection((address.hostname, address.port), timeout=2)
        connection.sendall(f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100000\r\n".encode())
        slow.append(connection)
    bodies = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":' + b"9" * 10_000 + b"}",
        b'{"a":' * 50_000,
        json.dumps([pay()] * 1000).encode(),
        json.dumps({**pay(), "id": {"x": 1}}).encode(),
        json.dumps({**pay(), "params": "x"}).encode(),
        json.dumps(pay(name="x" * 1_000_000)).encode(),
    ]
    for body in bodies:
        try:
            answer = http_request(base, "POST", "/mcp", body, good, timeout=10)
            trial.must(answer.status < 500 or answer.status == 503, f"{body[:20]!r}: {answer.status}")
        except OSError as error:
            trial.must(isinstance(error, ConnectionError), f"{body[:20]!r}: {error!r}")
    raw(base, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", 1)
    raw(base, b"\x16\x03\x01\x02\x00\x01\x00", 0.5)
    raw(base, b"A" * 100_000, 0.5)
    began = time.monotonic()
    trial.must(ModernClient(base).call("look").succeeded, "the gateway no longer answers")
    trial.must(time.monotonic() - began < 2, "the gateway answers late")
    for connection in slow:
        connection.close()
