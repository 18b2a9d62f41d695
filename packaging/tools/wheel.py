#!/usr/bin/env python3
"""Packs the finished binary into a wheel, so that `pip install toolyard` and `uvx toolyard` give the program.

usage: wheel.py BINARY TARGET VERSION NOTICES FOLDER     (prints the path of the wheel)

NOTICES is the file of notices.py.

maturin would compile the program again with flags of its own; this wheel has the bytes of the release.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

from targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
DATE = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))[:6]


def metadata(version: str) -> str:
    readme = (ROOT / "packaging/README-pypi.md").read_text()
    return f"""Metadata-Version: 2.4
Name: toolyard
Version: {version}
Summary: A gateway that gives AI agents one endpoint for all their tools
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-APACHE
License-File: LICENSE-MIT
License-File: THIRD-PARTY-LICENSES
Keywords: mcp,agents,gateway,tools,llm
Classifier: Development Status :: 3 - Alpha
Classifier: Environment :: Console
Classifier: Programming Language :: Rust
Classifier: Topic :: Software Development
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""


def wheel_file(tags: list[str]) -> str:
    lines = "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
    return f"Wheel-Version: 1.0\nGenerator: toolyard packaging\nRoot-Is-Purelib: false\n{lines}"


def main() -> None:
    binary, target, version = Path(sys.argv[1]), TARGETS[sys.argv[2]], sys.argv[3]
    notices, folder = Path(sys.argv[4]), Path(sys.argv[5])
    info = f"toolyard-{version}.dist-info"
    files = [
        (f"toolyard-{version}.data/scripts/toolyard", binary.read_bytes(), 0o755),
        (f"{info}/METADATA", metadata(version).encode(), 0o644),
        (f"{info}/WHEEL", wheel_file(target.wheel).encode(), 0o644),
        (f"{info}/licenses/LICENSE-APACHE", (ROOT / "LICENSE-APACHE").read_bytes(), 0o644),
        (f"{info}/licenses/LICENSE-MIT", (ROOT / "LICENSE-MIT").read_bytes(), 0o644),
        (f"{info}/licenses/THIRD-PARTY-LICENSES", notices.read_bytes(), 0o644),
    ]
    record = ""
    path = folder / f"toolyard-{version}-py3-none-{'.'.join(target.wheel)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as wheel:
        for name, content, mode in files:
            add(wheel, name, content, mode)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            record += f"{name},sha256={digest},{len(content)}\n"
        record += f"{info}/RECORD,,\n"
        add(wheel, f"{info}/RECORD", record.encode(), 0o644)
    print(path)


def add(wheel: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, DATE)
    # A regular file of Unix with these permissions.
    entry.create_system, entry.external_attr = 3, (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)


if __name__ == "__main__":
    main()
