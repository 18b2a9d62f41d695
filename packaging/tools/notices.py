#!/usr/bin/env python3
"""Collects the licence texts of all crates that are linked into the release binary, each text once.

usage: notices.py SBOM TARGET     (prints the text; the crates of the SBOM must be in cargo's cache, as after a build)
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLIBC = """Static binaries for Linux with the GNU C library contain glibc (LGPL-2.1-or-later, https://www.gnu.org/software/libc/). The complete
source of Toolyard and its build script are public, so that everybody can link it with another version of glibc. The LGPL is at the end of
this file."""
LGPL = ROOT / "packaging/licenses/LGPL-2.1.txt"
NAMES = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.I)


def main() -> None:
    components = json.loads(Path(sys.argv[1]).read_text())["components"]
    wanted = {(item["name"], item["version"]): item.get("licenses", [{}])[0].get("expression", "") for item in components}
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["packages"]
    users, without = defaultdict(list), []
    for package in packages:
        key = (package["name"], package["version"])
        if key not in wanted or package["source"] is None:
            continue
        folder = Path(package["manifest_path"]).parent
        files = sorted(file for file in folder.iterdir() if file.is_file() and NAMES.match(file.name))
        texts = {file.read_text(errors="replace").strip() for file in files}
        if not texts:
            without.append(f"{key[0]} {key[1]} ({wanted[key]})")
        for text in texts:
            users[text].append(f"{key[0]} {key[1]}")
    print("Toolyard contains the following software of others.\n")
    contains_glibc = sys.argv[2].endswith("-linux-gnu")
    if contains_glibc:
        print(GLIBC + "\n")
    if without:
        print("Packages without a licence text of their own, under the licence in parentheses:\n  " + "\n  ".join(sorted(without)) + "\n")
    for text, names in sorted(users.items(), key=lambda item: (sorted(item[1]), item[0])):
        print_section(", ".join(sorted(names)), text)
    if contains_glibc:
        print_section("glibc", LGPL.read_text().strip())


def print_section(heading: str, text: str) -> None:
    print("=" * 100 + "\n" + heading + "\n" + "-" * 100 + "\n" + text + "\n")


if __name__ == "__main__":
    main()
