"""Workbooks: totals, questions, headers, sheets."""

from given import workbook
from task import Task, near, number_or_formula, one_of, step

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
SOLD = [980, 1350, 1120, 1405, 1210, 1675, 1890, 1530, 1280, 1440, 1760, 1615]
SALES = workbook("sales.xlsx", Sales=[["Month", "Sales"], *map(list, zip(MONTHS, SOLD))])
TEST = workbook("test.xlsx", Sheet1=[["month", "sales"], *([f"month {at + 1}", sold] for at, sold in enumerate(SOLD[:10]))])
READ, WRITE = "read_data_from_excel", "write_data_to_excel"

TASKS = [
    Task(
        name="best-month-en",
        language="en",
        request="Which month has the highest sales in the sheet Sales of sales.xlsx?",
        given=[SALES],
        says=["July"],
        never_says=[month for month in MONTHS if month != "July"],
        plan=[step("read", READ, {"filepath": "sales.xlsx", "sheet_name": "Sales"})],
        answer="July has the highest sales: 1890.",
    ),
    Task(
        name="best-month-zh",
        language="zh",
        request="sales.xlsx 的 Sales 工作表里，哪个月的销售额最高？",
        given=[SALES],
        says=[("July", "七月", "7月", "7 月")],
        never_says=[month for month in MONTHS if month != "July"],
        plan=[step("read", READ, {"filepath": "sales.xlsx", "sheet_name": "Sales"})],
        answer="销售额最高的是七月（July），为 1890。",
    ),
    Task(
        name="total-en",
        language="en",
        request="Add up the sales column of Sheet1 in test.xlsx and write the total into B12",
        given=[TEST],
        changes={"docs/test.xlsx/Sheet1/B12": number_or_formula(sum(SOLD[:10]), "SUM(B2:B11)")},
        plan=[
            step("read", READ, {"filepath": "test.xlsx", "sheet_name": "Sheet1", "start_cell": "B2", "end_cell": "B11"}),
            step("sum", "calculate", {"expression": "sum(values)", "values": "$read.cells[*].value"}),
            step("write", WRITE, {"filepath": "test.xlsx", "sheet_name": "Sheet1", "start_cell": "B12", "data": [["$sum.result"]]}),
        ],
        answer="The total, 13880, is in B12.",
    ),
    Task(
        name="average-zh",
        language="zh",
        request="计算 test.xlsx 的 Sheet1 中 B2 到 B11 的平均值，并写入 B13 单元格",
        given=[TEST],
        changes={"docs/test.xlsx/Sheet1/B13": number_or_formula(sum(SOLD[:10]) / 10, "AVERAGE(B2:B11)")},
        plan=[
            step("read", READ, {"filepath": "test.xlsx", "sheet_name": "Sheet1", "start_cell": "B2", "end_cell": "B11"}),
            step("mean", "calculate", {"expression": "average(values)", "values": "$read.cells[*].value"}),
            step("write", WRITE, {"filepath": "test.xlsx", "sheet_name": "Sheet1", "start_cell": "B13", "data": [["$mean.result"]]}),
        ],
        answer="平均值 1388 已写入 B13。",
    ),
    Task(
        name="german-header-en",
        language="en",
        request="Translate the header row A1:D1 of the sheet Sales in orders.xlsx into German",
        given=[workbook("orders.xlsx", Sales=[["Month", "Product", "Price", "Quantity"], ["May", "tea", 4, 12], ["June", "cake", 3, 9]])],
        changes={
            "docs/orders.xlsx/Sales/A1": one_of("Monat"),
            "docs/orders.xlsx/Sales/B1": one_of("Produkt"),
            "docs/orders.xlsx/Sales/C1": one_of("Preis"),
            "docs/orders.xlsx/Sales/D1": one_of("Menge", "Anzahl"),
        },
        plan=[
            step("read", READ, {"filepath": "orders.xlsx", "sheet_name": "Sales", "start_cell": "A1", "end_cell": "D1"}),
            step(
                "write",
                WRITE,
                {"filepath": "orders.xlsx", "sheet_name": "Sales", "start_cell": "A1", "data": [["Monat", "Produkt", "Preis", "Menge"]]},
                after=["read"],
            ),
        ],
        answer="The header row is now Monat, Produkt, Preis, Menge.",
    ),
    Task(
        name="new-sheet-en",
        language="en",
        request="Create a worksheet named Summary in budget.xlsx and write Total into its cell A1",
        given=[workbook("budget.xlsx", Plan=[["item", "cost"], ["paper", 25]])],
        changes={"docs/budget.xlsx/Summary": "sheet", "docs/budget.xlsx/Summary/A1": "Total"},
        plan=[
            step("create", "create_worksheet", {"filepath": "budget.xlsx", "sheet_name": "Summary"}),
            step(
                "write",
                WRITE,
                {"filepath": "budget.xlsx", "sheet_name": "Summary", "start_cell": "A1", "data": [["Total"]]},
                after=["create"],
            ),
        ],
        answer="The worksheet Summary has Total in A1.",
    ),
    Task(
        name="write-cell-zh",
        language="zh",
        request="在 budget.xlsx 的“支出”工作表的 B3 单元格写入 480",
        given=[workbook("budget.xlsx", 支出=[["项目", "金额"], ["纸", 25], ["打印机"]])],
        changes={"docs/budget.xlsx/支出/B3": near(480)},
        plan=[step("write", WRITE, {"filepath": "budget.xlsx", "sheet_name": "支出", "start_cell": "B3", "data": [[480]]})],
        answer="已在 B3 写入 480。",
    ),
]
