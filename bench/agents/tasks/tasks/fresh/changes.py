"""Changes that one call can make."""

from given import branch, database, memory, text, uncommitted, workbook
from task import GONE, Task, occurs, step

PACKING = "Packing list for the lake\n- tent\n- 2 towels\n- torch\n- 2 mugs\n"
HARVEST = [["Crop", "Kilos"], ["beans", 6], ["potatoes", 31]]
PAINTS = database(
    """
    CREATE TABLE paints (id INTEGER PRIMARY KEY, colour TEXT, stock INTEGER);
    INSERT INTO paints (colour, stock) VALUES ('blue', 7), ('green', 3), ('white', 22);
    """
)
SUBSCRIPTIONS = database(
    """
    CREATE TABLE subscriptions (id INTEGER PRIMARY KEY, reader TEXT, status TEXT);
    INSERT INTO subscriptions (reader, status) VALUES ('孙丽', 'active'), ('吴刚', 'expired'), ('郑爽', 'active'), ('冯军', 'expired');
    """
)


def cells(sheet: str, rows: list) -> dict:
    """The keys and values of a sheet's cells."""
    return {f"{sheet}/{'ABCDEF'[column]}{at}": value for at, row in enumerate(rows, 1) for column, value in enumerate(row)}


def has_forgotten(name: str):
    def check(state, _answer):
        left = state.get(f"memory/{name}")
        return f"the memory still has {name}: {left}" if left else None

    return check


def remembers_parking_space(state, _answer):
    entries = [f"{key.removeprefix('memory/')} {' '.join(value)}" for key, value in state.items() if key.startswith("memory/")]
    if any(occurs("B2-117", entry) and any(word in entry.lower() for word in ("车", "park")) for entry in entries):
        return None
    return f"the memory has {entries}"


TASKS = [
    Task(
        name="more-towels-en",
        language="en",
        request='In packing.txt, replace "2 towels" with "4 towels".',
        given=[text("packing.txt", PACKING), text("route.txt", "Take the ferry. 2 towels are in the car.\n")],
        changes={"docs/packing.txt": lambda content: content.rstrip() == PACKING.replace("2 towels", "4 towels").rstrip()},
        plan=[step("edit", "edit_file", {"path": "packing.txt", "edits": [{"oldText": "2 towels", "newText": "4 towels"}]})],
        answer="packing.txt now says 4 towels.",
    ),
    Task(
        name="rename-sheet-en",
        language="en",
        request="Please rename the sheet Sheet1 in allotment.xlsx to Harvest",
        given=[workbook("allotment.xlsx", Sheet1=HARVEST, Seeds=[["Seed", "Bags"], ["kale", 2]])],
        changes={
            "docs/allotment.xlsx/Sheet1": GONE,
            **dict.fromkeys(cells("docs/allotment.xlsx/Sheet1", HARVEST), GONE),
            "docs/allotment.xlsx/Harvest": "sheet",
            **cells("docs/allotment.xlsx/Harvest", HARVEST),
        },
        plan=[step("rename", "rename_worksheet", {"filepath": "allotment.xlsx", "old_name": "Sheet1", "new_name": "Harvest"})],
        answer="The sheet is now called Harvest.",
    ),
    Task(
        name="paint-stock-en",
        language="en",
        request="We got new paint: set the stock to 15 for the colour green in the database table paints.",
        given=[PAINTS],
        changes={"database/paints": [(1, "blue", 7), (2, "green", 15), (3, "white", 22)]},
        plan=[step("update", "write_query", {"query": "UPDATE paints SET stock = 15 WHERE colour = 'green'"})],
        answer="The stock of green is now 15.",
    ),
    Task(
        name="forget-gregor-en",
        language="en",
        request="Delete Gregor from your memory, he moved away.",
        given=[memory("Gregor", "neighbour", "has a spare key", "owns two cats"), memory("Ilse", "neighbour", "waters the plants")],
        may_change=["memory/Gregor"],
        check=has_forgotten("Gregor"),
        plan=[step("forget", "delete_entities", {"entityNames": ["Gregor"]})],
        answer="I have forgotten Gregor.",
    ),
    Task(
        name="switch-branch-en",
        language="en",
        request="Switch my git repository to the branch autumn-menu",
        given=[branch("autumn-menu"), branch("spring-menu")],
        changes={"git/HEAD": "autumn-menu"},
        plan=[step("switch", "git_checkout", {"repo_path": "{project}", "branch_name": "autumn-menu"})],
        answer="Your repository is now on autumn-menu.",
    ),
    Task(
        name="file-bill-zh",
        language="zh",
        request="把 电费单.txt 移到 账单 文件夹里",
        given=[text("电费单.txt", "十月电费 126.40 元\n"), text("账单/水费单.txt", "十月水费 38 元\n"), text("日记.txt", "今天下雨。\n")],
        changes={"docs/电费单.txt": GONE, "docs/账单/电费单.txt": "十月电费 126.40 元\n"},
        plan=[step("move", "move_file", {"source": "电费单.txt", "destination": "账单/电费单.txt"})],
        answer="电费单.txt 已移到账单文件夹。",
    ),
    Task(
        name="delete-row-zh",
        language="zh",
        request="删除 团购.xlsx 里“订单”工作表的第 4 行",
        given=[workbook("团购.xlsx", 订单=[["姓名", "箱数"], ["老张", 2], ["小林", 1], ["测试", 99], ["阿芳", 3]])],
        changes={
            **cells("docs/团购.xlsx/订单", [["姓名", "箱数"], ["老张", 2], ["小林", 1], ["阿芳", 3]]),
            "docs/团购.xlsx/订单/A5": GONE,
            "docs/团购.xlsx/订单/B5": GONE,
        },
        plan=[step("delete", "delete_sheet_rows", {"filepath": "团购.xlsx", "sheet_name": "订单", "start_row": 4, "count": 1})],
        answer="第 4 行已删除。",
    ),
    Task(
        name="expired-readers-zh",
        language="zh",
        request="数据库 subscriptions 表里 status 是 expired 的记录都不要了，请删掉",
        given=[SUBSCRIPTIONS],
        changes={"database/subscriptions": [(1, "孙丽", "active"), (3, "郑爽", "active")]},
        plan=[step("delete", "write_query", {"query": "DELETE FROM subscriptions WHERE status = 'expired'"})],
        answer="已删除 2 条过期记录。",
    ),
    Task(
        name="parking-space-zh",
        language="zh",
        request="帮我记住：我的停车位是 B2-117",
        given=[memory("物业", "公司", "电话 6688")],
        # What it knew must stay, possibly with something added.
        may_change=["memory/*"],
        check=lambda state, answer: (
            remembers_parking_space(state, answer) if "电话 6688" in state.get("memory/物业", []) else "the memory lost 物业"
        ),
        plan=[step("save", "create_entities", {"entities": [{"name": "停车位", "entityType": "地点", "observations": ["我的停车位是 B2-117"]}]})],
        answer="记住了，您的停车位是 B2-117。",
    ),
    Task(
        name="stage-faq-zh",
        language="zh",
        request="把我 git 仓库里的 faq.md 加到暂存区，先不要提交",
        given=[uncommitted("faq.md", "# 常见问题\n"), uncommitted("draft.md", "草稿\n")],
        changes={"git/staged": ["faq.md"]},
        plan=[step("stage", "git_add", {"repo_path": "{project}", "files": ["faq.md"]})],
        answer="faq.md 已加入暂存区。",
    ),
]
