"""What a task finds in its world: functions that each return one preparation."""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import openpyxl

from world import World

Preparation = Callable[[World], None]


def text(path: str, content: str) -> Preparation:
    """A text file in the documents folder."""

    def prepare(world: World) -> None:
        file = world.docs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    return prepare


def workbook(name: str, **sheets: list[list[Any]]) -> Preparation:
    """A workbook in the documents folder, with the rows of each sheet."""

    def prepare(world: World) -> None:
        book = openpyxl.Workbook()
        book.remove(book.active)
        for title, rows in sheets.items():
            sheet = book.create_sheet(title)
            for row in rows:
                sheet.append(row)
        book.save(world.docs / name)

    return prepare


def database(script: str) -> Preparation:
    """SQL statements for the database."""

    def prepare(world: World) -> None:
        with sqlite3.connect(world.database) as connection:
            connection.executescript(script)

    return prepare


def memory(name: str, kind: str, *observations: str) -> Preparation:
    """An entity of the memory server."""

    def prepare(world: World) -> None:
        item = {"type": "entity", "name": name, "entityType": kind, "observations": list(observations)}
        with world.memory.open("a") as file:
            file.write(json.dumps(item, ensure_ascii=False) + "\n")

    return prepare


def commit(subject: str, author: str, day: int, **files: str) -> Preparation:
    """A commit on 2026-03-DAY; `notes_md="…"` is the file notes.md."""

    def prepare(world: World) -> None:
        for name, content in files.items():
            (world.project / name.replace("_", ".")).write_text(content)
        world.commit(subject, author, day)

    return prepare


def uncommitted(path: str, content: str) -> Preparation:
    """A file of the repository that is changed or new, and not committed."""
    return lambda world: world.project.joinpath(path).write_text(content) and None


def branch(name: str) -> Preparation:
    """A branch of the repository; the present one stays checked out."""
    return lambda world: world.git("branch", name) and None


def page(path: str, html: str) -> Preparation:
    """A page of the web site, at {site}/PATH."""
    return lambda world: world.site.joinpath(path).write_text(f"<!doctype html><meta charset=utf-8>{html}") and None
