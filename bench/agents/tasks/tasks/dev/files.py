"""Files in the documents folder."""

from given import text
from task import GONE, Task, mentions, step

TASKS = [
    Task(
        name="rename-en",
        language="en",
        request="Rename report.txt to final.txt",
        given=[text("report.txt", "Quarterly report\n"), text("notes.txt", "Call Bob\n")],
        changes={"docs/report.txt": GONE, "docs/final.txt": "Quarterly report\n"},
        plan=[step("rename", "move_file", {"source": "report.txt", "destination": "final.txt"})],
        answer="report.txt is now final.txt.",
    ),
    Task(
        name="new-file-zh",
        language="zh",
        request="新建文件 todo.txt，内容是“买牛奶”",
        given=[text("notes.txt", "给鲍勃打电话\n")],
        changes={"docs/todo.txt": lambda content: content.strip() == "买牛奶"},
        plan=[step("write", "write_file", {"path": "todo.txt", "content": "买牛奶"})],
        answer="todo.txt 已建立。",
    ),
    Task(
        name="find-pdf-zh",
        language="zh",
        request="我的文档文件夹里有哪些 PDF 文件？",
        given=[text("invoice.pdf", "%PDF-1.4"), text("old/contract.pdf", "%PDF-1.4"), text("notes.txt", "x")],
        says=["invoice.pdf", "contract.pdf"],
        never_says=["notes.txt"],
        plan=[step("find", "search_files", {"path": "{docs}", "pattern": "**/*.pdf"})],
        answer="有两个 PDF 文件：invoice.pdf 和 old/contract.pdf。",
    ),
    Task(
        name="read-note-en",
        language="en",
        request="What is the door code in notes.txt?",
        given=[text("notes.txt", "Bins go out on Tuesday.\nThe door code is 4417.\nRent is due on the 3rd, 850 euros.\n")],
        says=["4417"],
        plan=[step("read", "read_text_file", {"path": "notes.txt"})],
        answer="The door code is 4417.",
    ),
]
