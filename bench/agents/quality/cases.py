"""The cases of `just agent-quality`: workbooks, requests that need one call, and tasks of several steps, in two languages."""

import pathlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import openpyxl

SALES = [120, 95, 143, 110, 87, 132, 101, 99, 150, 118]

# Every workbook that a request names, as it is before the request: file, sheet, rows.
WORKBOOKS = {
    ("test.xlsx", "Sheet1"): [["month", "sales"], *([f"month {at + 1}", sold] for at, sold in enumerate(SALES))],
    ("report.xlsx", "Data"): [["name", "north", "south"], ["a", 1, 2], ["b", 3, 4], ["c", 5, 6], ["d", 7, 8]],
    ("sales.xlsx", "一月"): [["日期", "金额"], *([f"1月{day}日", 10 * day] for day in range(1, 10))],
    ("people.xlsx", "Sheet1"): [],
    ("fruit.xlsx", "Sheet1"): [],
    ("grades.xlsx", "Scores"): [["name", "class", "score"], *([f"pupil {at}", "4b", 60 + at] for at in range(19))],
    ("budget.xlsx", "支出"): [["项目", "单位", "数量", "单价"], ["纸", "包", 12, 25]],
    ("north.xlsx", "Sheet1"): [["region", "amount"], ["north", 250]],
    ("south.xlsx", "Sheet1"): [["region", "amount"], ["south", 175]],
    ("log.xlsx", "Sheet1"): [],
}


def write_workbooks(folder: pathlib.Path) -> None:
    for old in folder.glob("*"):
        old.unlink()
    for (file, sheet), rows in WORKBOOKS.items():
        book = openpyxl.Workbook()
        book.active.title = sheet
        for row in rows:
            book.active.append(row)
        book.save(folder / file)


def cells(folder: pathlib.Path) -> dict[tuple[str, str, str], Any]:
    """The values of all cells in the folder's workbooks, by file, sheet and address."""
    found = {}
    for file in sorted(folder.glob("*.xlsx")):
        book = openpyxl.load_workbook(file)
        for sheet in book:
            found[file.name, sheet.title, ""] = "a sheet"
            for row in sheet.iter_rows():
                for cell in row:
                    if cell.value is not None:
                        found[file.name, sheet.title, cell.coordinate] = cell.value
    return found


# Required changes: (file, sheet, address) to the new value, or to a function that judges it. Nothing else may change.
Changes = dict[tuple[str, str, str], Any]


def problem_with(before: dict, after: dict, expected: Changes) -> str | None:
    """The first unexpected difference between the workbooks before and after, if any."""
    for cell, value in expected.items():
        is_right = value(after.get(cell)) if callable(value) else after.get(cell) == value
        if not is_right:
            return f"{'!'.join(cell)} is {after.get(cell)!r}"
    for cell in before.keys() | after.keys():
        if cell not in expected and before.get(cell) != after.get(cell):
            return f"{'!'.join(cell)} became {after.get(cell)!r}"
    return None


@dataclass
class Single:
    """A request that needs one call, with its expected arguments: values, or functions that judge them."""

    request: str
    tool: str
    arguments: dict[str, Any]
    changes: Changes = field(default_factory=dict)


@dataclass
class Task:
    """A request that needs several calls; only the changes to the workbooks are judged."""

    request: str
    changes: Changes


def formula(expected: str) -> Callable[[Any], bool]:
    """Judges a formula; a missing `=` is fine, because the server adds it."""
    return lambda given: isinstance(given, str) and given.removeprefix("=").replace(" ", "") == expected


def amounts_to(expected: float) -> Callable[[Any], bool]:
    """An expression of plain arithmetic with this value."""

    def is_equal(given: Any) -> bool:
        text = str(given).replace("×", "*").replace("÷", "/").replace("^", "**")
        text = re.sub(r"([\d.]+) ?%( of)?", lambda percent: f"({percent[1]}/100)" + ("*" if percent[2] else ""), text)
        if not re.fullmatch(r"[\d\s.+*/()-]+", text) or "**" in text and len(text) > 20:
            return False
        try:
            return abs(eval(text, {"__builtins__": {}}) - expected) < 1e-9  # noqa: S307 digits and signs only
        except (SyntaxError, TypeError, ZeroDivisionError):
            return False

    return is_equal


def is_near(expected: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int | float) and abs(value - expected) < 1e-6


# Optional arguments with values that have no effect.
HARMLESS_ARGUMENTS = {
    "start_cell": ["A1"],
    "preview_only": [False],
    "include_ranges": [False, True],
    "values": [[]],
}


def is_right_call(single: Single, tool: str, arguments: dict[str, Any]) -> bool:
    if tool != single.tool:
        return False
    for name, expected in single.arguments.items():
        given = arguments.get(name, "A1" if name == "start_cell" else None)
        if not (expected(given) if callable(expected) else given == expected and type(given) is type(expected)):
            return False
    return all(name in single.arguments or given in HARMLESS_ARGUMENTS.get(name, []) for name, given in arguments.items())


def in_sheet(file: str, sheet: str, **arguments: Any) -> dict[str, Any]:
    return {"filepath": file, "sheet_name": sheet, **arguments}


READ, WRITE, FORMULA = "read_data_from_excel", "write_data_to_excel", "apply_formula"

SINGLES = [
    Single("帮我读取 test.xlsx 的 Sheet1 工作表", READ, in_sheet("test.xlsx", "Sheet1")),
    Single(
        "帮我在 test.xlsx 的 Sheet1 的 A1 单元格写入公式 =SUM(B1:B10)",
        FORMULA,
        in_sheet("test.xlsx", "Sheet1", cell="A1", formula=formula("SUM(B1:B10)")),
        {("test.xlsx", "Sheet1", "A1"): "=SUM(B1:B10)"},
    ),
    Single("Read Sheet1 of test.xlsx", READ, in_sheet("test.xlsx", "Sheet1")),
    Single(
        "Read the cells A1 to C5 of the sheet Data in report.xlsx",
        READ,
        in_sheet("report.xlsx", "Data", start_cell="A1", end_cell="C5"),
    ),
    Single(
        "读取 sales.xlsx 的“一月”工作表中 B2 到 B10 的数据",
        READ,
        in_sheet("sales.xlsx", "一月", start_cell="B2", end_cell="B10"),
    ),
    Single(
        "Write the value 42 into cell C3 of Sheet1 in test.xlsx",
        WRITE,
        in_sheet("test.xlsx", "Sheet1", data=[[42]], start_cell="C3"),
        {("test.xlsx", "Sheet1", "C3"): 42},
    ),
    Single(
        "在 test.xlsx 的 Sheet1 的 D5 单元格写入 100",
        WRITE,
        in_sheet("test.xlsx", "Sheet1", data=[[100]], start_cell="D5"),
        {("test.xlsx", "Sheet1", "D5"): 100},
    ),
    Single(
        "Write the row Name, Age, City into Sheet1 of people.xlsx, starting at A1",
        WRITE,
        in_sheet("people.xlsx", "Sheet1", data=[["Name", "Age", "City"]], start_cell="A1"),
        {("people.xlsx", "Sheet1", at): word for at, word in [("A1", "Name"), ("B1", "Age"), ("C1", "City")]},
    ),
    Single(
        "把 苹果、香蕉、橙子 写入 fruit.xlsx 的 Sheet1 的第一行，从 A1 开始",
        WRITE,
        in_sheet("fruit.xlsx", "Sheet1", data=[["苹果", "香蕉", "橙子"]], start_cell="A1"),
        {("fruit.xlsx", "Sheet1", at): word for at, word in [("A1", "苹果"), ("B1", "香蕉"), ("C1", "橙子")]},
    ),
    Single(
        "Put the formula =AVERAGE(C2:C20) into cell C21 of the sheet Scores in grades.xlsx",
        FORMULA,
        in_sheet("grades.xlsx", "Scores", cell="C21", formula=formula("AVERAGE(C2:C20)")),
        {("grades.xlsx", "Scores", "C21"): "=AVERAGE(C2:C20)"},
    ),
    Single(
        "在 budget.xlsx 的“支出”工作表的 E2 单元格设置公式 =C2*D2",
        FORMULA,
        in_sheet("budget.xlsx", "支出", cell="E2", formula=formula("C2*D2")),
        {("budget.xlsx", "支出", "E2"): "=C2*D2"},
    ),
    Single(
        "Create a new worksheet named Summary in test.xlsx",
        "create_worksheet",
        in_sheet("test.xlsx", "Summary"),
        {("test.xlsx", "Summary", ""): "a sheet"},
    ),
    Single(
        "在 test.xlsx 中新建一个名为“汇总”的工作表",
        "create_worksheet",
        in_sheet("test.xlsx", "汇总"),
        {("test.xlsx", "汇总", ""): "a sheet"},
    ),
    Single("Which sheets are in test.xlsx?", "get_workbook_metadata", {"filepath": "test.xlsx"}),
    Single("查看 test.xlsx 里有哪些工作表", "get_workbook_metadata", {"filepath": "test.xlsx"}),
    Single("What is (3+4)*12/7?", "calculate", {"expression": amounts_to(12)}),
    Single("计算 1234 乘以 5678", "calculate", {"expression": amounts_to(1234 * 5678)}),
    Single("What time is it in Tokyo right now?", "get_current_time", {"timezone": "Asia/Tokyo"}),
    Single("现在上海几点了？", "get_current_time", {"timezone": "Asia/Shanghai"}),
    Single(
        "Convert 14:30 in New York to London time",
        "convert_time",
        {"source_timezone": "America/New_York", "time": "14:30", "target_timezone": "Europe/London"},
    ),
    Single(
        "把北京时间 09:00 换算成东京时间",
        "convert_time",
        {"source_timezone": "Asia/Shanghai", "time": "09:00", "target_timezone": "Asia/Tokyo"},
    ),
    Single("What is 15% of 2480?", "calculate", {"expression": amounts_to(372)}),
]

TASKS = [
    Task(
        "Read the sales column of Sheet1 in test.xlsx, sum it, and write the total into B12",
        {("test.xlsx", "Sheet1", "B12"): is_near(sum(SALES))},
    ),
    Task(
        "读取 test.xlsx 的 Sheet1 中 B2 到 B11 的销售额，计算平均值，并写入 Sheet1 的 B13 单元格",
        {("test.xlsx", "Sheet1", "B13"): is_near(sum(SALES) / len(SALES))},
    ),
    Task(
        "Read cell B2 of Sheet1 in north.xlsx and cell B2 of Sheet1 in south.xlsx, add the two numbers and write the "
        "result into C1 of Sheet1 in north.xlsx",
        {("north.xlsx", "Sheet1", "C1"): is_near(425)},
    ),
    Task(
        "Get the current time in Tokyo and write it into cell A1 of Sheet1 in log.xlsx",
        {("log.xlsx", "Sheet1", "A1"): lambda value: re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d", str(value)) is not None},
    ),
    Task(
        "在 test.xlsx 中新建工作表“汇总”，然后在“汇总”的 A1 写入“总计”",
        {("test.xlsx", "汇总", ""): "a sheet", ("test.xlsx", "汇总", "A1"): "总计"},
    ),
]
