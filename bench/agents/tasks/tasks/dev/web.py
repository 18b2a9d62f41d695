"""Pages of a web site."""

from given import page
from task import Task, mentions, step

LIBRARY = page(
    "library.html",
    "<title>City library</title><h1>City library</h1><p>We lend books, films and games.</p>"
    "<p>Opening hours: Tuesday to Saturday, 9:30 to 17:00.</p><p>Membership costs 12 euros a year.</p>",
)
WEATHER = page(
    "weather.html",
    "<title>天气预报</title><h1>本市天气预报</h1><p>今天：多云，最高气温 26 度。</p><p>明天：晴，最高气温 31 度。</p><p>后天：小雨，最高气温 22 度。</p>",
)

TASKS = [
    Task(
        name="save-hours-en",
        language="en",
        request="Read {site}/library.html and save the opening hours of the library in hours.txt",
        given=[LIBRARY],
        changes={"docs/hours.txt": mentions("9:30", "17:00", at_most=200)},
        plan=[
            step("page", "fetch", {"url": "{site}/library.html"}),
            step("save", "write_file", {"path": "hours.txt", "content": "Tuesday to Saturday, 9:30 to 17:00"}, after=["page"]),
        ],
        answer="The opening hours, Tuesday to Saturday from 9:30 to 17:00, are in hours.txt.",
    ),
    Task(
        name="weather-zh",
        language="zh",
        request="打开 {site}/weather.html，告诉我明天的最高气温",
        given=[WEATHER],
        says=["31"],
        never_says=["26", "22"],
        plan=[step("page", "fetch", {"url": "{site}/weather.html"})],
        answer="明天的最高气温是 31 度。",
    ),
]
