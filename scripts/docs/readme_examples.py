"""Runs every `$ toolyard …` line in the console blocks of a document and compares the output shown below it.

usage: readme_examples.py DOCUMENT…    (in a folder of its own, with `toolyard` on PATH)
A command without shown output only has to succeed. Times, dates and durations are not compared. `…` in a shown line stands for
any text (or what the width of a terminal cut off; here, output goes to a pipe and is whole), and a line with nothing else for any
lines. scripts/docs/book-starts compares the output of the pages in docs/start in the same way.
"""

import re
import subprocess
import sys
from pathlib import Path

VARYING = [
    (re.compile(r"\b[A-Z][a-z]+day, \d{4}-\d{2}-\d{2}T\S+"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min)\b"), "<duration>"),
    (re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b"), "<run>"),
]


def normalized(text: str) -> list[str]:
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip()]


def examples(document: str):
    """Pairs of a command and the output shown below it."""
    for block in re.findall(r"^```console\n(.*?)^```", document, re.M | re.S):
        parts = re.split(r"^\$ ", block, flags=re.M)
        for part in parts[1:]:
            command, _, shown = part.partition("\n")
            if command.startswith("toolyard "):
                yield command, shown


def agrees(shown: list[str], printed: list[str]) -> bool:
    def as_pattern(line: str) -> str:
        return r"(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + r"\n"

    return re.fullmatch("".join(map(as_pattern, shown)), "".join(f"{line}\n" for line in printed)) is not None


def main() -> None:
    ran = compared = 0
    for name in sys.argv[1:]:
        for command, shown in examples(Path(name).read_text()):
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            expected = normalized(shown)
            ran += 1
            if not expected:
                if done.returncode != 0:
                    sys.exit(f"{name}: `{command}` failed with {done.returncode}: {done.stderr}")
                continue
            compared += 1
            actual = [normalized(done.stdout), normalized(done.stdout + done.stderr)]
            if not any(agrees(expected, printed) for printed in actual):
                sys.exit(f"{name}: `{command}` shows\n{shown}\nbut prints\n{done.stdout}{done.stderr}")
    if ran == 0:
        sys.exit("no examples found")
    print(f"{ran} examples ran, the output of {compared} compared")


if __name__ == "__main__":
    main()
