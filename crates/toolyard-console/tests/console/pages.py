"""Parts `pages` and `no-javascript`: every page with real servers and real runs, as people with and without JavaScript see it."""

from __future__ import annotations

import json
from pathlib import Path

from local_gateway import PARTS, scripted_answer

from console.browser import run_in_browser
from console.gateway import ConsoleGateway, read_workbook, real_servers, write_workbook
from console.report import Report

SUM_QUESTION = "What is 2 + 3, and what time is it in Tokyo?"
WRITE_QUESTION = "Write 42 into cell A9 of sheet Sheet1 of {folder}/numbers.xlsx."
FAILING_QUESTION = "Read the sheet Missing of {folder}/numbers.xlsx."
SECOND_WRITE_QUESTION = "Write 43 into cell A10 of sheet Sheet1 of {folder}/numbers.xlsx."


def step(name: str, tool: str, arguments: dict, description: str = "", dependencies: tuple[str, ...] = ()) -> dict:
    fields = {"id": name, "tool_type": tool, "arguments": arguments, "dependencies": list(dependencies)}
    return {**fields, "description": description} if description else fields


def write_step(folder: Path, cell: str, value: int) -> dict:
    arguments = {"filepath": f"{folder}/numbers.xlsx", "sheet_name": "Sheet1", "data": [[value]], "start_cell": cell}
    return step("write", "write_data_to_excel", arguments, f"Write {value} into {cell}")


def rules(folder: Path) -> list[dict]:
    sum_steps = [
        step("sum", "calculate", {"expression": "2+3"}, "Add the numbers"),
        step("time", "get_current_time", {"timezone": "Asia/Tokyo"}, "Ask for the time in Tokyo"),
        step("echo", "echo", {"message": "$sum"}, "Repeat the sum", ("sum",)),
    ]
    missing = {"filepath": f"{folder}/numbers.xlsx", "sheet_name": "Missing"}
    return [
        *scripted_answer(SUM_QUESTION, sum_steps, "The sum is 5. The time in Tokyo is in the result of the step."),
        *scripted_answer(WRITE_QUESTION.format(folder=folder), [write_step(folder, "A9", 42)], "42 is in A9."),
        *scripted_answer(SECOND_WRITE_QUESTION.format(folder=folder), [write_step(folder, "A10", 43)], "43 is in A10."),
        {"contains": FAILING_QUESTION.format(folder=folder), "nth": 1, "text": plan_text([step("read", "read_data_from_excel", missing, "Read the sheet")])},
        {"anywhere": FAILING_QUESTION.format(folder=folder), "text": "There is no such sheet."},
    ]


def plan_text(steps: list[dict]) -> str:
    return json.dumps({"steps": steps})


class PagesGateway(ConsoleGateway):
    """Real servers and a workbook in the home folder."""

    def __init__(self) -> None:
        super().__init__([], real_servers)
        self._rules = rules(self.home)
        self.workbook = self.home / "numbers.xlsx"
        # A server that the console offers to import.
        editor = self.home / ".cursor/mcp.json"
        editor.parent.mkdir(parents=True)
        editor.write_text(json.dumps({"mcpServers": {"git": {"command": str(PARTS / "git/bin/mcp-server-git")}}}))
        write_workbook(self.workbook, "Sheet1", [["number"], [1], [2], [3]])

    def questions(self) -> dict[str, str]:
        templates = {"sum": SUM_QUESTION, "write": WRITE_QUESTION, "fail": FAILING_QUESTION, "secondWrite": SECOND_WRITE_QUESTION}
        return {name: text.format(folder=self.home) for name, text in templates.items()}


def run_pages(report: Report) -> None:
    with PagesGateway() as gateway:
        run_in_browser(report, "pages", gateway.url, link=gateway.sign_in_link(), questions=gateway.questions())


def run_no_javascript(report: Report) -> None:
    with PagesGateway() as gateway:
        run_in_browser(report, "no_javascript", gateway.url, link=gateway.sign_in_link(), questions=gateway.questions())
        rows = read_workbook(gateway.workbook, "Sheet1")
        report.add("an approval by form takes effect: A9 is 42", len(rows) >= 9 and rows[8][0] == 42, str(rows[3:]))
        report.add("a denial by form takes effect: A10 is empty", len(rows) < 10 or rows[9][0] is None, str(rows[3:]))
