"""Requests that need two or three steps."""

from given import text, uncommitted, workbook
from task import Task, mentions, near, step
from world import World

SHIFTS = [["Day", "Place", "Hours"], ["Mon", "kiosk", 6], ["Tue", "kiosk", 8], ["Thu", "pool", 5.5], ["Fri", "kiosk", 7], ["Sat", "pool", 4]]
COURSES = [["课程", "老师", "学时"], ["书法", "许老师", 16], ["太极", "马老师", 24]]

# The world, for a look into the last commit: the state has only subjects of commits, not their files.
SEEN: list[World] = []


def commits_only(path: str):
    """The last commit has this file and no other."""

    def check(_state, _answer):
        files = SEEN[-1].git("show", "--format=", "--name-only", "HEAD").splitlines()
        return None if files == [path] else f"the commit has {files}"

    return check


def is_number(number: int):
    """Judges a cell: this number, also as text."""
    return lambda value: near(number)(value) or isinstance(value, str) and value.strip() == str(number)


TASKS = [
    Task(
        name="commit-menu-en",
        language="en",
        request='Add menu.md in my git repository and commit it with the message "Add the winter menu"',
        given=[uncommitted("menu.md", "- pea soup\n- baked apple\n"), uncommitted("ideas.md", "plum cake?\n"), SEEN.append],
        changes={"git/branch/main": ["Add the winter menu", "Start the project"]},
        check=commits_only("menu.md"),
        plan=[
            step("stage", "git_add", {"repo_path": "{project}", "files": ["menu.md"]}),
            step("commit", "git_commit", {"repo_path": "{project}", "message": "Add the winter menu"}, after=["stage"]),
        ],
        answer="menu.md is committed.",
    ),
    Task(
        name="shift-hours-en",
        language="en",
        request="Add up the hours in C2:C6 of the sheet July in shifts.xlsx and save the total in the text file total-hours.txt",
        given=[workbook("shifts.xlsx", July=SHIFTS)],
        changes={"docs/total-hours.txt": mentions("30.5")},
        plan=[
            step("read", "read_data_from_excel", {"filepath": "shifts.xlsx", "sheet_name": "July", "start_cell": "C2", "end_cell": "C6"}),
            step("sum", "calculate", {"expression": "sum(values)", "values": "$read.cells[*].value"}),
            step("save", "write_file", {"path": "total-hours.txt", "content": "$sum.result"}),
        ],
        answer="The total of 30.5 hours is in total-hours.txt.",
    ),
    Task(
        name="meter-reading-zh",
        language="zh",
        request="读数.txt 里是这个月的水表读数，请把它写到 水表.xlsx 的 Sheet1 的 B4 单元格",
        given=[text("读数.txt", "8042\n"), workbook("水表.xlsx", Sheet1=[["月份", "读数"], ["九月", 7981], ["十月", 8010], ["十一月"]])],
        changes={"docs/水表.xlsx/Sheet1/B4": is_number(8042)},
        plan=[
            step("read", "read_text_file", {"path": "读数.txt"}),
            step("write", "write_data_to_excel", {"filepath": "水表.xlsx", "sheet_name": "Sheet1", "start_cell": "B4", "data": [["$read.content"]]}),
        ],
        answer="读数 8042 已写入 B4。",
    ),
    Task(
        name="copy-sheet-zh",
        language="zh",
        request="把 课程.xlsx 的“春季”工作表复制成“秋季”，再把“秋季”的 C1 改成“课时”",
        given=[workbook("课程.xlsx", 春季=COURSES)],
        changes={
            "docs/课程.xlsx/秋季": "sheet",
            **{f"docs/课程.xlsx/秋季/{'ABC'[column]}{at}": value for at, row in enumerate(COURSES, 1) for column, value in enumerate(row)},
            "docs/课程.xlsx/秋季/C1": "课时",
        },
        plan=[
            step("copy", "copy_worksheet", {"filepath": "课程.xlsx", "source_sheet": "春季", "target_sheet": "秋季"}),
            step(
                "write",
                "write_data_to_excel",
                {"filepath": "课程.xlsx", "sheet_name": "秋季", "start_cell": "C1", "data": [["课时"]]},
                after=["copy"],
            ),
        ],
        answer="已复制成“秋季”，C1 改成了“课时”。",
    ),
]
