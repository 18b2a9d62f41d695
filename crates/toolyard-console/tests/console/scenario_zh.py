"""Part `scenario-zh`: in the chat page, a Chinese user asks an agent to read and complete a workbook, and allows the write."""

from __future__ import annotations

from pathlib import Path

from local_gateway import scripted_answer

from console.browser import run_in_browser
from console.gateway import ConsoleGateway, read_workbook, real_servers, write_workbook
from console.pages import step
from console.report import Report

ROWS = [["月份", "销售额"], ["一月", 980], ["二月", 1350], ["三月", 1120]]
ANSWER = "Sheet1 共有三个月的数据， 销售额合计 3450， 已写入 B5 单元格。"


def question(home: Path) -> str:
    return f"读取 {home}/sales.xlsx 的 Sheet1，计算销售额合计，并写入 B5 单元格。"


def rules(home: Path) -> list[dict]:
    workbook = {"filepath": f"{home}/sales.xlsx", "sheet_name": "Sheet1"}
    steps = [
        step("read", "read_data_from_excel", workbook, "读取 Sheet1 的数据"),
        step("total", "calculate", {"expression": "980+1350+1120"}, "计算合计", ("read",)),
        step("write", "write_data_to_excel", {**workbook, "data": [["合计", 3450]], "start_cell": "A5"}, "把合计写入 B5", ("total",)),
    ]
    plan, answer = scripted_answer(question(home), steps, ANSWER)
    # The page is there before the answer.
    return [plan, {**answer, "delay_ms": 1500}]


def settings(home: Path) -> str:
    agent = '[agents.analyst]\ndescription = "回答关于工作簿的问题。"\nlanguage = "zh"\ntools = ["*@excel", "calculate"]\n'
    return real_servers(home) + agent


def run(report: Report) -> None:
    gateway = ConsoleGateway([], settings)
    gateway._rules = rules(gateway.home)  # noqa: SLF001
    workbook = gateway.home / "sales.xlsx"
    write_workbook(workbook, "Sheet1", ROWS)
    with gateway:
        fields = {"link": gateway.sign_in_link(), "question": question(gateway.home), "answer": ANSWER, "agent": "analyst"}
        run_in_browser(report, "scenario_zh", gateway.url, **fields)
        rows = read_workbook(workbook, "Sheet1")
        report.add("the workbook has the new row", rows == [*ROWS, ["合计", 3450]], str(rows[-1]))
