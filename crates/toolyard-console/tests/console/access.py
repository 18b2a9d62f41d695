"""Sign-in, roles, headers, secrets in URLs and logs, and requests with the name of another host."""

from __future__ import annotations

import re
from urllib.parse import urlencode, urlsplit

from console.browser import run_in_browser
from console.csrf import SECTIONS, api, sign_in_with_token
from console.gateway import TOKEN, ConsoleGateway, wait_until
from console.http_probe import SESSION_COOKIE, Answer, Form, Visitor, sign_in
from console.report import Report

DIRECTIVES = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}
HEADERS = {"x-content-type-options": "nosniff", "x-frame-options": "DENY", "cross-origin-opener-policy": "same-origin"}


def missing_headers(answer: Answer, *, is_asset: bool = False) -> list[str]:
    """Which security headers the answer lacks."""
    policy = dict(part.strip().partition(" ")[::2] for part in answer.header("content-security-policy").split(";"))
    missing = [f"{name} {value}" for name, value in DIRECTIVES.items() if policy.get(name) != value]
    missing += [name for name, value in HEADERS.items() if answer.header(name) != value]
    # With `no-referrer`, browsers send forms with `Origin: null`.
    if answer.header("referrer-policy") != "same-origin":
        missing.append(f"referrer-policy is {answer.header('referrer-policy')!r}")
    caching = answer.header("cache-control")
    if ("immutable" if is_asset else "no-store") not in caching:
        missing.append(f"cache-control is {caching!r}")
    return missing


def check_headers(report: Report, operator: Visitor, run_id: str) -> None:
    overview = operator.get("/")
    assets = sorted(set(re.findall(r'(?:href|src)="(/console/assets/[^"]+)"', overview.body)))
    paths = [*SECTIONS, f"/console/runs/{run_id}", f"/console/runs/{run_id}/events", "/console/no-such-page", "/console/runs/01NOSUCHRUN", "/console/sign-in?code=wrong", "/console/sign-in"]
    lacking = {path: missing_headers(operator.get(path)) for path in paths}
    lacking |= {f"{path} without a session": missing_headers(Visitor(operator.url).get(path)) for path in SECTIONS}
    lacking |= {path: missing_headers(operator.get(path), is_asset=True) for path in assets}
    lacking["POST without csrf"] = missing_headers(operator.request("POST", "/console/sign-out", []))
    lacking = {path: names for path, names in lacking.items() if names}
    report.add("CSP and security headers are on every answer", not lacking, f"{len(paths) + len(SECTIONS) + len(assets) + 1} answers" if not lacking else str(lacking)[:600])


def check_sign_in(report: Report, gateway: ConsoleGateway, link: str) -> Visitor:
    wrong = [Visitor(gateway.url).get(f"/console/sign-in?code={code}") for code in ("", "x", "A" * 22, "A" * 5000, "%00", "../..")] + [Visitor(gateway.url).get("/console/sign-in?code=" + "B" * 22) for _ in range(20)]
    report.add("wrong codes are refused", all(answer.session() is None for answer in wrong), ", ".join(sorted({str(answer.status) for answer in wrong})))
    head = Visitor(gateway.url).request("HEAD", urlsplit(link).path + "?" + urlsplit(link).query)
    operator, answer = sign_in(link)
    report.add("the one-time link signs in, also after wrong codes and a HEAD request", bool(operator.session) and answer.status == 303 and answer.header("location") == "/", f"HEAD {head.status}{' with a session' if head.session() else ''}, GET {answer.status} to {answer.header('location')}")
    if not operator.session:
        operator.session = head.session()
    cookie = answer.header("set-cookie") or head.header("set-cookie")
    report.add("the cookie is HttpOnly, SameSite=Lax, Path=/", all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/")), re.sub(rf"{SESSION_COOKIE}=[^;]+", f"{SESSION_COOKIE}=…", cookie))
    _, again = sign_in(link)
    report.add("the one-time link works once", again.session() is None, f"status {again.status}")
    report.add("`toolyard serve` prints a link on a terminal", bool(gateway.session_from_terminal()), "")
    unsigned = Visitor(gateway.url).request("POST", "/console/sign-in-codes", [])
    guessed = Visitor(gateway.url).request("POST", "/console/sign-in-codes", [], {"X-Toolyard-Operator": "guess"})
    by_cookie = operator.request("POST", "/console/sign-in-codes", [])
    by_token = Visitor(gateway.url).request("POST", "/console/sign-in-codes", [], {"Authorization": f"Bearer {TOKEN}"})
    statuses = [each.status for each in (unsigned, guessed, by_cookie, by_token)]
    report.add("links are made with the operator's secret only", all(status in (401, 403, 404) for status in statuses), str(statuses))
    return operator


def check_session(report: Report, operator: Visitor) -> None:
    value = operator.session or ""
    changed = [value[:-1] + ("A" if value[-1] != "A" else "B"), "caller" + value, value.replace("caller", "operator").replace("operator", "caller"), value + "A", value[1:], "", "a.b.c.d"]
    tampered = {each: Visitor(operator.url, each).get("/").status for each in changed if each != value}
    report.add("changed cookies are refused", all(status in (303, 401) for status in tampered.values()), str(sorted(set(tampered.values()))))
    paths = ["/api/v1/servers", "/api/v1/runs", "/api/v1/settings", "/api/v1/approvals", "/v1/models", "/runs", "/mcp", "/metrics"]
    statuses = {path: operator.get(path).status for path in paths}
    # Metrics are not everywhere.
    accepted = {path: status for path, status in statuses.items() if status not in (401, 403, 404)}
    report.add("the cookie is not accepted by the HTTP API and MCP", not accepted and statuses["/api/v1/servers"] == 401, str(accepted or statuses))
    post = operator.request("POST", "/mcp", None, {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    report.add("POST /mcp with the cookie is refused", post.status == 401, f"status {post.status}")


def check_sign_out(report: Report, operator: Visitor) -> None:
    form = next((form for form in operator.forms(["/"]) if "sign-out" in form.action), None)
    if not form:
        report.add("sign-out ends the session", False, "no form to sign out")
        return
    answer = operator.request("POST", form.action, form.fields, {"Origin": operator.url, "Sec-Fetch-Site": "same-origin"})
    after = operator.get("/")
    report.add("sign-out ends the session, also for a copy of the cookie", answer.status == 303 and after.status == 303, f"{answer.status}, then {after.status}")


def check_host(report: Report, operator: Visitor) -> None:
    names = ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1:1@evil.example", "0x7f.1.evil.example"]
    paths = ["/", "/console/sign-in", "/console/tools"]
    accepted = {(name, path): status for name in names for path in paths if (status := operator.get(path, {"Host": name}).status) not in (400, 403, 421)}
    report.add("requests for another host are refused", not accepted, str(accepted)[:300])
    port = urlsplit(operator.url).port
    local = {name: operator.get("/", {"Host": f"{name}:{port}"}).status for name in ("127.0.0.1", "localhost")}
    report.add("requests for localhost are answered", set(local.values()) == {200}, str(local))
    origin = operator.get("/console/tools", {"Origin": "https://evil.example"})
    allowed = origin.header("access-control-allow-origin")
    report.add("no other origin may read pages", not allowed, allowed or "no Access-Control-Allow-Origin")


def check_redirections(report: Report, gateway: ConsoleGateway) -> None:
    targets = ["//evil.example", "https://evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "/\t/evil.example", "///evil.example", "/console/../..//evil.example", "%2f%2fevil.example", "/console/runs\r\nX-Evil: 1"]
    followed = {}
    for target in targets:
        visitor = Visitor(gateway.url)
        fields = [("token", TOKEN), ("next", target)]
        answer = visitor.request("POST", "/console/sign-in", fields, {"Origin": gateway.url})
        location = answer.header("location")
        if not re.match(r"^/(?![/\\\t])", location) or answer.header("x-evil"):
            followed[target] = location
        page = visitor.get(f"/console/sign-in?{urlencode({'next': target})}")
        if re.search(r'(href|action)="(//|https?:|javascript:|/\\)', page.body):
            followed[f"GET {target}"] = "in the page"
    report.add("sign-in leads to our own pages only", not followed, str(followed)[:300] or f"{len(targets)} targets")


def check_roles(report: Report, gateway: ConsoleGateway, run_id: str) -> None:
    """With a run that waits for an approval, at a gateway where clients may not approve."""
    operator, _ = sign_in(gateway.sign_in_link())
    caller = Visitor(gateway.url)
    caller.session = sign_in_with_token(caller)
    report.add("a caller signs in with the access token", bool(caller.session) and caller.get("/").status == 200, "")
    report.add("a wrong token is refused", sign_in_with_token(Visitor(gateway.url), "wrong") is None, "")
    forms = operator.forms(["/console/approvals", f"/console/runs/{run_id}", "/console/agents", "/console/add-agent", "/console/servers?import=1"])
    csrf = next(value for form in caller.forms(["/"]) for name, value in form.fields if name == "csrf")
    results = {}
    for form in forms:
        if not re.search(r"approv|agent|import|server", form.action):
            continue
        fields = {**pressed_first(form), "csrf": csrf}
        if "name" in fields:
            fields["name"] = "intruder"
        answer = caller.request("POST", form.action, list(fields.items()), {"Origin": gateway.url})
        results[form.kind()] = answer.status
    pending = api(gateway, "/approvals")["approvals"]
    agents = [agent["origin"] for agent in api(gateway, "/agents")["agents"]]
    servers = [server["name"] for server in api(gateway, "/servers")["servers"]]
    is_unchanged = len(pending) == 1 and "store" not in agents and "git" not in servers
    is_refused = len(results) >= 3 and set(results.values()) == {403}
    report.add("a caller cannot approve, import or change agents", is_unchanged and is_refused, f"{results}; {len(pending)} pending, servers {servers}")
    decide = next((form for form in operator.forms(["/console/approvals"]) if "approv" in form.action), None)
    if decide:
        answer = operator.request("POST", decide.action, list(pressed_first(decide).items()), {"Origin": gateway.url})
        wait_until("run goes on", lambda: api(gateway, f"/runs/{run_id}")["state"] != "suspended")
        state = api(gateway, f"/runs/{run_id}")["state"]
        report.add("the operator can approve, although clients may not", state in ("running", "answered"), f"status {answer.status}, run {state}")


def pressed_first(form: Form) -> dict[str, str]:
    """The fields of a form whose first button is pressed."""
    fields: dict[str, str] = {}
    for name, value in form.fields:
        fields.setdefault(name, value)
    return fields


def check_secrets(report: Report, gateway: ConsoleGateway, operator: Visitor, code: str) -> None:
    visited = run_in_browser(report, "secrets", gateway.url, session=operator.session)
    log = gateway.log()
    secrets = {"token": TOKEN, "session cookie": operator.session or "?"}
    found = {name: log.count(value) for name, value in secrets.items() if value in log}
    report.add("no token and no cookie in the log at -vv", not found and len(log) > 1000, f"{found or len(log)} {'' if found else 'bytes of log'}")
    report.add("no one-time code in the log at -vv", code not in log and "?code=" not in log, f"{log.count(code)} times")
    urls = [entry["url"] + " " + (entry.get("referer") or "") for each in visited for entry in each.get("requests", [])]
    leaking = [url for url in urls if TOKEN in url or (operator.session or "?") in url]
    referrers = [each for each in urls if "code=" in each.split(" ", 1)[1]]
    report.add("no secret in a URL or a referrer", bool(urls) and not leaking and not referrers, f"{len(urls)} requests; {(leaking + referrers)[:2] or 'none'}")


def run(report: Report) -> None:
    with ConsoleGateway([], arguments=("-vv",), is_testing_servers=False) as gateway:
        link = gateway.sign_in_link()
        operator = check_sign_in(report, gateway, link)
        check_session(report, operator)
        check_host(report, operator)
        check_redirections(report, gateway)
        check_headers(report, operator, "01NOSUCHRUN")
        check_secrets(report, gateway, operator, link.rpartition("code=")[2])
        check_sign_out(report, operator)
