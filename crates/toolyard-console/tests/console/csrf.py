"""Forged requests: every form of the console, without the field of our pages, from other origins, and with GET."""

from __future__ import annotations

import json
import re
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from console.browser import run_in_browser
from console.gateway import TOKEN, ConsoleGateway, wait_until
from console.http_probe import Form, Visitor, sign_in
from console.pages import PagesGateway
from console.report import Report

SECTIONS = ["/", *(f"/console/{name}" for name in ("chat", "tools", "servers", "runs", "approvals", "agents", "add-agent", "audit", "settings", "servers?import=1"))]
#: What a site of somebody else's sends, and the status that refuses it.
FORGERIES = {
    "no csrf field": {"drop": True},
    "a wrong csrf field": {"csrf": "0" * 43},
    "an empty csrf field": {"csrf": ""},
    "csrf of another session": {"other": True},
    "Origin of another site": {"headers": {"Origin": "https://evil.example"}},
    "Origin null": {"headers": {"Origin": "null"}},
    "Origin of another port": {"headers": {"Origin": "http://127.0.0.1:1"}},
    "Sec-Fetch-Site: cross-site": {"headers": {"Sec-Fetch-Site": "cross-site"}},
    "Sec-Fetch-Site: same-site": {"headers": {"Sec-Fetch-Site": "same-site"}},
    "no session": {"session": None},
    "a session of another gateway": {"session": "foreign"},
}


def api(gateway: ConsoleGateway, path: str, body: object = None) -> dict:
    request = Request(f"{gateway.url}/api/v1{path}", headers={"Authorization": f"Bearer {TOKEN}"})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    with urlopen(request, timeout=30) as response:
        return json.load(response)


def state(gateway: ConsoleGateway) -> dict:
    """Everything that a form could change."""
    settings = gateway.home / ".config/toolyard/toolyard.toml"
    return {
        "agents": api(gateway, "/agents"),
        "approvals": api(gateway, "/approvals"),
        "runs": [(run["run"], run["state"]) for run in api(gateway, "/runs")["runs"]],
        "audit": len(api(gateway, "/audit?limit=500")["records"]),
        "settings": settings.read_text(),
        "calls": api(gateway, "/statistics")["statistics"] and sorted(str(each["tool"]) for each in api(gateway, "/statistics")["statistics"]),
    }


def pages_with_forms(visitor: Visitor, gateway: ConsoleGateway) -> list[str]:
    """The sections, and the pages of one tool, server, agent and of each run."""
    paths = list(SECTIONS)
    for section in ("servers", "agents", "approvals"):
        links = re.findall(rf'href="(/console/{section}/[^"?#]+)', visitor.get(f"/console/{section}").body)
        paths += sorted(set(links))[:4]
    paths += [f"/console/runs/{run['run']}" for run in api(gateway, "/runs")["runs"]]
    return [*paths, "/console/tools/calculate", "/console/tools/write_data_to_excel?source=excel"]


def send_forged(gateway: ConsoleGateway, operator: Visitor, other_csrf: str, form: Form, forgery: dict) -> int:
    fields = [(name, value) for name, value in form.fields if not (forgery.get("drop") and name == "csrf")]
    replacement = other_csrf if forgery.get("other") else forgery.get("csrf")
    if replacement is not None:
        fields = [(name, replacement if name == "csrf" else value) for name, value in fields]
    session = operator.session
    if "session" in forgery:
        session = forgery["session"] and forgery["session_value"]
    headers = dict(forgery.get("headers", {}))
    return Visitor(gateway.url, session).request("POST", form.action, fields, headers).status


def csrf_field(visitor: Visitor) -> str:
    for form in visitor.forms(SECTIONS):
        for name, value in form.fields:
            if name == "csrf" and value:
                return value
    raise AssertionError("no form has a csrf field")


def is_refused(status: int, forgery: dict) -> bool:
    # A visitor without a session is sent to the sign-in page.
    return status in (400, 401, 403) or (status == 303 and "session" in forgery)


def check_forms(report: Report, gateway: ConsoleGateway, operator: Visitor, other: Visitor, foreign_session: str) -> None:
    forms = operator.forms(pages_with_forms(operator, gateway))
    report.add("every form has a csrf field", all(any(name == "csrf" and value for name, value in form.fields) for form in forms), f"{len(forms)} forms: " + ", ".join(form.kind() for form in forms))
    other_csrf, before = csrf_field(other), state(gateway)
    for name, forgery in FORGERIES.items():
        sent = {**forgery, "session_value": foreign_session}
        answers = {form.kind(): send_forged(gateway, operator, other_csrf, form, sent) for form in forms if "sign-out" not in form.action or "session" not in forgery}
        accepted = {kind: status for kind, status in answers.items() if not is_refused(status, forgery)}
        report.add(f"forms with {name} are refused", not accepted, f"{len(answers)} forms" if not accepted else str(accepted))
    for form in forms:
        Visitor(gateway.url, operator.session).get(f"{form.action}?{urlencode(form.fields)}")
    after = state(gateway)
    changed = [name for name in before if before[name] != after[name]]
    report.add("forged forms and GET requests change nothing", not changed, ", ".join(f"{name}: {str(before[name])[:80]} → {str(after[name])[:80]}" for name in changed))
    still = operator.get("/")
    report.add("a forged sign-out leaves the session", still.status == 200, f"status {still.status}")


def run(report: Report, gateway: PagesGateway, run_id: str) -> None:
    """With a run that waits for an approval, and goes on waiting."""
    with ConsoleGateway([], is_testing_servers=False) as foreign:
        operator, _ = sign_in(gateway.sign_in_link())
        other = Visitor(gateway.url)
        other.session = sign_in_with_token(other)
        stranger, _ = sign_in(foreign.sign_in_link())
        check_forms(report, gateway, operator, other, stranger.session or "")
        run_in_browser(report, "cross_origin", gateway.url, session=operator.session, run=run_id)
        report.add("requests of a page of another port change nothing", len(api(gateway, "/approvals")["approvals"]) == 1, "the approval is still pending")


def start_waiting_run(gateway: PagesGateway) -> str:
    """Starts a run that waits for an approval."""
    run_id = api(gateway, "/runs", {"question": gateway.questions()["write"]})["run"]
    wait_until("run is suspended", lambda: api(gateway, f"/runs/{run_id}")["state"] == "suspended")
    return run_id


def sign_in_with_token(visitor: Visitor, token: str = TOKEN) -> str | None:
    """Signs in as caller with the form of the sign-in page."""
    form = next(iter(visitor.forms(["/console/sign-in"])), None)
    assert form, "the sign-in page has no form"
    fields = [(name, token if name == "token" else value) for name, value in form.fields]
    return visitor.request("POST", form.action, fields, {"Origin": visitor.url}).session()

