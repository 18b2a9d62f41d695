"""Questions: nothing may change."""

import datetime
import re
import zoneinfo

from given import commit, database, memory, page, text, workbook
from task import Task, step

FINES = database(
    """
    CREATE TABLE fines (id INTEGER PRIMARY KEY, borrower TEXT, amount REAL, paid TEXT);
    INSERT INTO fines (borrower, amount, paid) VALUES
        ('Olga', 2.5, 'no'), ('Tim', 4, 'yes'), ('Ravi', 1.75, 'no'), ('Olga', 6.5, 'yes'), ('Mia', 3, 'no');
    """
)
BUSES = """<title>长途汽车时刻表</title><h1>长途汽车时刻表</h1>
<p>以下时刻适用于本月的所有工作日和周末，请提前十五分钟到站检票。</p>
<h2>开往苏州</h2><ul><li>头班车 06:30</li><li>12:10</li><li>末班车 21:40</li></ul>
<h2>开往杭州</h2><ul><li>头班车 07:05</li><li>13:45</li><li>末班车 22:15</li></ul>"""
DELHI = zoneinfo.ZoneInfo("Asia/Kolkata")


def checked_out(name: str):
    """A new branch of the repository, checked out."""
    return lambda world: world.git("checkout", "--quiet", "-b", name) and None


def is_now_in_delhi(_state, answer: str) -> str | None:
    """Some time in the answer, on either clock, is the present one in Delhi, give or take what a slow model needs."""
    now = datetime.datetime.now(DELHI)
    for hour, minute in re.findall(r"(?<![\d:+-])(\d{1,2})\s*[:：点點时時]\s*(\d{1,2})", answer):
        apart = (int(hour) * 60 + int(minute) - now.hour * 60 - now.minute) % 720
        if min(apart, 720 - apart) <= 15:
            return None
    return f"the answer lacks {now:%H:%M}"


TASKS = [
    Task(
        name="biggest-file-en",
        language="en",
        request="Which file in my documents folder is the biggest one? I only need its name.",
        given=[
            text("aunt-letters.txt", "Dear Ruth, the roof is mended.\n" * 12),
            text("garden-diary.txt", "Watered the beans and tied up the tomatoes.\n" * 240),
            text("songs.txt", "Row, row, row your boat\n" * 60),
        ],
        says=["garden-diary.txt"],
        never_says=["aunt-letters.txt", "songs.txt"],
        plan=[step("sizes", "list_directory_with_sizes", {"path": "{docs}", "sortBy": "size"})],
        answer="garden-diary.txt",
    ),
    Task(
        name="unpaid-fines-en",
        language="en",
        request="In the database table fines, what is the total amount of the rows where paid is 'no'?",
        given=[FINES],
        says=["7.25"],
        never_says=["17.75", "10.5"],
        plan=[step("total", "read_query", {"query": "SELECT SUM(amount) AS total FROM fines WHERE paid = 'no'"})],
        answer="The unpaid fines add up to 7.25.",
    ),
    Task(
        name="sheet-names-en",
        language="en",
        request="What are the sheets in wedding.xlsx called?",
        given=[workbook("wedding.xlsx", Guests=[["Name", "Diet"], ["Lena", "vegan"]], Seating=[["Table", "Seats"], [1, 8]], Florist=[["Roses", 90]])],
        says=["Guests", "Seating", "Florist"],
        never_says=["Sheet1"],
        plan=[step("sheets", "get_workbook_metadata", {"filepath": "wedding.xlsx"})],
        answer="The sheets are called Guests, Seating and Florist.",
    ),
    Task(
        name="current-branch-en",
        language="en",
        request="Which branch is my git repository on right now?",
        given=[checked_out("orchard-map"), commit("Draw the apple rows", "Nils Berg", 2, map_md="A A A\n")],
        says=["orchard-map"],
        never_says=["main", "master"],
        plan=[step("status", "git_status", {"repo_path": "{project}"})],
        answer="It is on the branch orchard-map.",
    ),
    Task(
        name="time-in-delhi-zh",
        language="zh",
        request="新德里现在几点？",
        check=is_now_in_delhi,
        plan=[step("now", "get_current_time", {"timezone": "Asia/Kolkata"})],
        answer=f"新德里现在是 {datetime.datetime.now(DELHI):%H:%M}。",
    ),
    Task(
        name="allergy-zh",
        language="zh",
        request="我之前让你记住过小雨的事，她对什么过敏？",
        given=[memory("小雨", "人", "住在成都", "对花生过敏"), memory("阿强", "人", "对海鲜过敏", "喜欢钓鱼")],
        says=[("花生", "peanut", "peanuts")],
        never_says=["海鲜"],
        plan=[step("recall", "search_nodes", {"query": "小雨"})],
        answer="小雨对花生过敏。",
    ),
    Task(
        name="last-bus-zh",
        language="zh",
        request="帮我看一下 {site}/bus.html，去苏州的末班车是几点？",
        given=[page("bus.html", BUSES)],
        says=[("21:40", "21：40", "21点40", "21 点 40", "晚上9点40", "晚上 9 点 40", "晚上9:40", "晚上 9:40", "9:40 PM")],
        never_says=["22:15"],
        plan=[step("open", "fetch", {"url": "{site}/bus.html"})],
        answer="去苏州的末班车是 21:40。",
    ),
    Task(
        name="commit-author-zh",
        language="zh",
        request="我的 git 仓库里，“修正错别字”这个提交是谁写的？",
        given=[
            commit("添加价目表", "陈涛", 2, prices_md="咖啡 18\n奶荼 15\n"),
            commit("修正错别字", "周敏", 3, prices_md="咖啡 18\n奶茶 15\n"),
            commit("添加营业时间", "何佳", 4, hours_md="9:00-18:00\n"),
        ],
        says=["周敏"],
        never_says=["陈涛", "何佳", "Test Person"],
        plan=[step("log", "git_log", {"repo_path": "{project}", "max_count": 10})],
        answer="“修正错别字”是周敏提交的。",
    ),
]
