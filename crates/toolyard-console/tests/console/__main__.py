#!/usr/bin/env python3
"""Tries the web console in a real browser, as its users and as attackers would, and prints a table of checks.

Parts: `pages` (every page in both languages, themes and widths; weight, axe-core, keyboard), `no-javascript`, `scenario-zh` (a workbook is changed from
the chat page), `live` (the plan is drawn while it is executed), `security` (XSS, CSRF, framing, sign-in, roles, secrets, DNS rebinding) and `first-run`.
TOOLYARD is the binary, by default that of the release build; TOOLYARD_DATA a folder with security/*.jsonl, hostile texts that are rendered in addition
to the own ones. Fails if a check fails.
usage: just console [--quick] [--screenshots DIR] [PART…]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(ROOT / "scripts/http-api")]
from console import first_run, live, pages, scenario_zh, security  # noqa: E402
from console.report import Report  # noqa: E402
from local_gateway import PARTS as LOCAL_PARTS  # noqa: E402

PARTS = {
    "pages": pages.run_pages,
    "no-javascript": pages.run_no_javascript,
    "scenario-zh": scenario_zh.run,
    "live": live.run,
    "security": security.run,
    "first-run": first_run.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="fewer variants and payloads, for CI: at most 3 minutes")
    parser.add_argument("--screenshots", type=Path, metavar="DIR", help="keep screenshots in this folder")
    options = parser.parse_args()
    if not (LOCAL_PARTS / "browser/node_modules").is_dir() or shutil.which("chromium") is None:
        sys.exit("console-tests: the browser and its driver are not installed\n  hint: scripts/parts browser")
    screenshots = options.screenshots and options.screenshots.resolve()
    report, started = Report(options.quick, screenshots), time.monotonic()
    for part in options.parts or PARTS:
        report.run_part(part, PARTS[part])
    failed = report.summary()
    print(f"\n{len(report.rows) - failed} of {len(report.rows)} checks passed in {time.monotonic() - started:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
