"""The world of a task: documents, a repository, a database, a memory and a web site in a temporary folder, and what changed in them."""

import json
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import openpyxl

# Commits of a task have fixed authors and dates, so that questions about them have one answer.
GIT_DATE = "2026-03-0{day}T10:00:00+00:00"


class World:
    """Folders and files at the same paths for each task; `reset` empties them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.docs, self.project, self.site = root / "docs", root / "project", root / "site"
        self.database, self.memory = root / "shop.db", root / "memory.jsonl"
        self.site_url = ""

    def reset(self) -> None:
        for folder in (self.docs, self.project, self.site):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for file in self.root.glob("shop.db*"):
            file.unlink()
        self.memory.write_text("")
        with sqlite3.connect(self.database):
            pass
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "Test Person")
        self.git("config", "user.email", "person@example.org")
        (self.project / "README.md").write_text("# Demo\n")
        self.commit("Start the project", "Test Person", 1)

    def git(self, *arguments: str, **environment: str) -> str:
        command = ["git", "-C", str(self.project), *arguments]
        # Settings of this machine, such as hooks or signing, must not matter.
        fixed = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(command, env={**os.environ, **fixed, **environment}, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, subject: str, author: str, day: int) -> None:
        date, email = GIT_DATE.format(day=day), f"{author.split()[0].lower()}@example.org"
        self.git("add", "--all")
        people = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", author), ("EMAIL", email), ("DATE", date))}
        self.git("commit", "--quiet", "--message", subject, **people)

    def fill(self, text: str) -> str:
        """Replaces `{docs}`, `{project}`, `{database}` and `{site}` by the paths and the address of this world."""
        places = {"docs": self.docs, "project": self.project, "database": self.database, "site": self.site_url}
        for name, place in places.items():
            text = text.replace("{" + name + "}", str(place))
        return text

    def state(self) -> dict[str, Any]:
        """Everything a task could change, as a flat table; see README.md for its keys."""
        found: dict[str, Any] = {}
        for file in sorted(self.docs.rglob("*")):
            found |= document_state(f"docs/{file.relative_to(self.docs)}", file)
        for file in sorted(self.project.rglob("*")):
            if ".git" not in file.relative_to(self.project).parts and file.is_file():
                found[f"project/{file.relative_to(self.project)}"] = file.read_text(errors="replace")
        return found | self.git_state() | self.database_state() | self.memory_state()

    def git_state(self) -> dict[str, Any]:
        found: dict[str, Any] = {"git/HEAD": self.git("rev-parse", "--abbrev-ref", "HEAD")}
        for branch in self.git("branch", "--format=%(refname:short)").splitlines():
            found[f"git/branch/{branch}"] = self.git("log", "--format=%s", branch).splitlines()
        found["git/staged"] = self.git("diff", "--cached", "--name-only").splitlines()
        return found

    def database_state(self) -> dict[str, Any]:
        found = {}
        with sqlite3.connect(self.database) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            for (name,) in names.fetchall():
                found[f"database/{name}"] = connection.execute(f'SELECT * FROM "{name}"').fetchall()  # noqa: S608
        return found

    def memory_state(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for line in filter(None, self.memory.read_text().splitlines()):
            item = json.loads(line)
            if item.get("type") == "entity":
                found[f"memory/{item['name']}"] = item.get("observations", [])
            else:
                found[f"memory/{item.get('from')} {item.get('relationType')} {item.get('to')}"] = []
        return found


def document_state(key: str, file: Path) -> dict[str, Any]:
    if file.is_dir():
        return {f"{key}/": "folder"}
    if file.suffix != ".xlsx":
        return {key: file.read_text(errors="replace")}
    found: dict[str, Any] = {key: "workbook"}
    try:
        book = openpyxl.load_workbook(file)
    except Exception as error:  # A damaged workbook is a finding, not a failure of the suite.
        return {key: f"unreadable: {error}"}
    for sheet in book:
        found[f"{key}/{sheet.title}"] = "sheet"
        for row in sheet.iter_rows():
            found |= {f"{key}/{sheet.title}/{cell.coordinate}": cell.value for cell in row if cell.value is not None}
    return found
