#!/usr/bin/env python3
"""Writes man pages of the program and of each of its commands, from the help that the program itself prints.

usage: man_pages.py BINARY FOLDER DATE VERSION
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HEADINGS = {"Usage", "Commands", "Arguments", "Options", "Examples"}


def help_text(binary: Path, command: list[str]) -> str:
    # Lines as long as the program allows: paragraphs are filled again by man.
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "COLUMNS": "110"}
    run = subprocess.run([binary, *command, "--help"], capture_output=True, text=True, check=True, env=environment)
    return run.stdout


def escape(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(['.])", r"\\&\1", text, flags=re.M)


def bold(text: str) -> str:
    return f"\\fB{escape(text)}\\fR"


def parse(text: str) -> tuple[str, list[tuple[str, str]], str]:
    """The description, the sections with headings, and the text after the options."""
    head, *rest = re.split(r"^(Usage|Commands|Arguments|Options|Examples):[ ]?", text, flags=re.M)
    sections = list(zip(rest[::2], rest[1::2]))
    # Everything after the last option or example that starts at the margin is free text.
    tail = ""
    if sections:
        name, body = sections[-1]
        split = re.search(r"\n\n(?=\S)", body)
        if split:
            sections[-1], tail = (name, body[: split.start()]), body[split.end() :]
    return head.strip(), sections, tail.strip()


def paragraphs(text: str) -> str:
    """Filled paragraphs; lists with `-` stay lists."""
    out = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        filled = []
        for line in lines:
            if not filled or line.startswith("- "):
                filled.append(line)
            else:
                filled[-1] += " " + line
        out += [".br\n".join(escape(line) + "\n" for line in filled)]
    return ".sp\n".join(out)


def definitions(body: str) -> str:
    """Options, arguments and commands: a term at the left, its text below or beside it."""
    out, term, text = [], None, []

    def flush() -> None:
        if term is not None:
            out.append(f".TP\n{bold(term)}\n{paragraphs(chr(10).join(text)) or chr(10)}")

    for line in body.splitlines():
        starts = re.match(r"^ {2,6}(\S.*)$", line)
        if starts and len(line) - len(line.lstrip()) <= 6:
            flush()
            # In the list of commands, the text stands beside the term.
            term, _, beside = starts[1].partition("  ")
            text = [beside.strip()]
        else:
            text.append(line)
    flush()
    return "".join(out).replace("\n\n", "\n")


def page(command: list[str], text: str, date: str, version: str) -> tuple[str, list[str]]:
    head, sections, tail = parse(text)
    name = "-".join(["toolyard", *command])
    summary = head.splitlines()[0] if head else name
    summary = re.split(r"\n\s*\n", head)[0].replace("\n", " ") if head else name
    out = [f'.TH "{name.upper()}" "1" "{date}" "Toolyard {version}" "Toolyard Manual"\n', ".nh\n.SH NAME\n"]
    out.append(f"{escape(name)} \\- {escape(summary)}\n")
    bodies, commands = dict(sections), []
    usage = bodies["Usage"].strip()
    out.append(f".SH SYNOPSIS\n{escape(usage)}\n")
    rest = head[len(re.split(r"\n\s*\n", head)[0]) :].strip()
    if rest or tail:
        out.append(f".SH DESCRIPTION\n{paragraphs((rest + chr(10) * 2 + tail).strip())}")
    for heading in ["Arguments", "Commands", "Options"]:
        if heading not in bodies:
            continue
        if heading == "Commands":
            # Texts beside commands go on in the next lines, indented further than any command.
            commands = [word for word in re.findall(r"^ {2}([a-z][a-z-]*)\b", bodies[heading], flags=re.M) if word != "help"]
        out.append(f".SH {heading.upper()}\n{definitions(bodies[heading])}")
    if "Examples" in bodies:
        out.append(f".SH EXAMPLES\n.nf\n{escape(bodies['Examples'].strip(chr(10)))}\n.fi\n")
    parents = ["-".join(["toolyard", *command[:length]]) for length in range(len(command))]
    related = parents + [f"{name}-{child}" for child in commands]
    if related:
        out.append(".SH SEE ALSO\n" + ",\n".join(f"{bold(other)}(1)" for other in related) + "\n")
    return "".join(out), commands


def write_pages(binary: Path, folder: Path, command: list[str], date: str, version: str) -> int:
    text, commands = page(command, help_text(binary, command), date, version)
    (folder / f"{'-'.join(['toolyard', *command])}.1").write_text(text)
    return 1 + sum(write_pages(binary, folder, [*command, child], date, version) for child in commands)


def main() -> None:
    binary, folder, date, version = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{write_pages(binary, folder, [], date, version)} man pages", file=sys.stderr)


if __name__ == "__main__":
    main()
