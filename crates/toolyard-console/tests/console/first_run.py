"""Part `first-run`: without any server, the console leads through import, a first call and a first question."""

from __future__ import annotations

import json

from local_gateway import PARTS, scripted_answer

from console.browser import run_in_browser
from console.csrf import api
from console.gateway import ConsoleGateway
from console.pages import step
from console.report import Report

QUESTION = "What time is it in Paris?"


def run(report: Report) -> None:
    rules = scripted_answer(QUESTION, [step("time", "get_current_time", {"timezone": "Europe/Paris"})], "It is noon in Paris.")
    gateway = ConsoleGateway(rules, is_testing_servers=False)
    editor = gateway.home / ".cursor/mcp.json"
    editor.parent.mkdir(parents=True)
    editor.write_text(json.dumps({"mcpServers": {"time": {"command": str(PARTS / "time/bin/mcp-server-time")}}}))
    with gateway:
        run_in_browser(report, "first_run", gateway.url, link=gateway.sign_in_link(), question=QUESTION)
        servers = [server["name"] for server in api(gateway, "/servers")["servers"]]
        settings = (gateway.home / ".config/toolyard/toolyard.toml").read_text()
        report.add("the imported server is in the settings and used", servers == ["time"] and "mcp-server-time" in settings, str(servers))
        report.add("the editor's file is not changed", "mcpServers" in editor.read_text(), "")
