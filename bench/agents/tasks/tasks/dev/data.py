"""A database, a memory, and time zones."""

import datetime
import zoneinfo

from given import database, memory
from task import Task, mentions, step

ORDERS = database(
    """
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount REAL);
    INSERT INTO orders (customer, amount) VALUES
        ('Ann', 45.5), ('Bob', 120), ('Cem', 310), ('Ann', 99), ('Dora', 100.5), ('Bob', 18), ('Eve', 245);
    """
)
CUSTOMERS = database(
    """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
    INSERT INTO customers (name, city) VALUES ('李雷', '北京'), ('韩梅梅', '广州');
    """
)


def in_zone(time: str, source: str, target: str) -> str:
    """A time of today in another time zone."""
    hour, minute = map(int, time.split(":"))
    today = datetime.datetime.now(zoneinfo.ZoneInfo(source)).replace(hour=hour, minute=minute)
    return today.astimezone(zoneinfo.ZoneInfo(target)).strftime("%H:%M")


def remembers(*words: str):
    """Some entity or relation that is new in the memory says all of this."""

    def check(state, _answer):
        entries = [key.removeprefix("memory/") + " " + " ".join(value) for key, value in state.items() if key.startswith("memory/")]
        return None if any(mentions(*words)(entry) for entry in entries) else f"the memory has {entries}"

    return check


TOKYO = in_zone("14:30", "Europe/Berlin", "Asia/Tokyo")

TASKS = [
    Task(
        name="count-orders-en",
        language="en",
        request="How many orders in the database table orders have an amount over 100?",
        given=[ORDERS],
        says=[("4", "four")],
        plan=[step("count", "read_query", {"query": "SELECT COUNT(*) AS n FROM orders WHERE amount > 100"})],
        answer="4 orders have an amount over 100.",
    ),
    Task(
        name="largest-order-zh",
        language="zh",
        request="数据库 orders 表里金额（amount）最大的订单是哪个客户（customer）的？",
        given=[ORDERS],
        says=["Cem"],
        never_says=["Ann", "Bob", "Dora", "Eve"],
        plan=[step("largest", "read_query", {"query": "SELECT customer, amount FROM orders ORDER BY amount DESC LIMIT 1"})],
        answer="金额最大的订单是 Cem 的，310。",
    ),
    Task(
        name="add-customer-zh",
        language="zh",
        request="在数据库的 customers 表里添加一位客户：name 是 王芳，city 是 上海",
        given=[CUSTOMERS],
        changes={"database/customers": [(1, "李雷", "北京"), (2, "韩梅梅", "广州"), (3, "王芳", "上海")]},
        plan=[step("insert", "write_query", {"query": "INSERT INTO customers (name, city) VALUES ('王芳', '上海')"})],
        answer="客户王芳已添加。",
    ),
    Task(
        name="remember-tea-en",
        language="en",
        request="Remember that Anna prefers tea",
        may_change=["memory/*"],
        check=remembers("Anna", "tea"),
        plan=[
            step("save", "create_entities", {"entities": [{"name": "Anna", "entityType": "person", "observations": ["Anna prefers tea"]}]})
        ],
        answer="I will remember that Anna prefers tea.",
    ),
    Task(
        name="recall-zh",
        language="zh",
        request="你的记忆里有哪些关于 Anna 的信息？",
        given=[memory("Anna", "person", "prefers tea", "works at the harbour"), memory("Bob", "person", "plays chess")],
        says=[("tea", "茶"), ("harbour", "harbor", "港")],
        plan=[step("recall", "open_nodes", {"names": ["Anna"]})],
        answer="Anna 喜欢喝茶（prefers tea），在港口工作（works at the harbour）。",
    ),
    Task(
        name="time-en",
        language="en",
        request="What time is it in Tokyo when it is 14:30 in Berlin?",
        says=[(TOKYO, f"{int(TOKYO[:2]) - 12}:{TOKYO[3:]} PM")],
        plan=[step("convert", "convert_time", {"source_timezone": "Europe/Berlin", "time": "14:30", "target_timezone": "Asia/Tokyo"})],
        answer=f"It is {TOKYO} in Tokyo.",
    ),
]
