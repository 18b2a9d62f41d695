"""The table of checks."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

MAX_NAME_CHARACTERS = 58


class Report:
    """Prints each check as it is made, and counts the failed ones."""

    def __init__(self, is_quick: bool, screenshots: Path | None) -> None:
        self.is_quick, self.screenshots = is_quick, screenshots
        self.part = ""
        self.rows: list[tuple[str, str, bool, str]] = []
        self._seconds: dict[str, float] = {}

    def add(self, name: str, is_ok: bool, detail: str = "") -> None:
        self.rows.append((self.part, name, is_ok, detail))
        print(f"{self.part:14} {name:{MAX_NAME_CHARACTERS}} {'ok    ' if is_ok else 'FAILED'} {detail}".rstrip(), flush=True)

    def run_part(self, part: str, run: Callable[[Report], None]) -> None:
        """A part that raises an error is a failed check, and the other parts are still run."""
        self.part, started = part, time.monotonic()
        try:
            run(self)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            traceback.print_exc()
            self.add("the part runs to its end", False, f"{type(error).__name__}: {error}"[:400])
        self._seconds[part] = time.monotonic() - started

    def summary(self) -> int:
        """Prints the failed checks and a count by part; returns the number of failed checks."""
        failed = [row for row in self.rows if not row[2]]
        print()
        for part in dict.fromkeys(row[0] for row in self.rows):
            rows = [row for row in self.rows if row[0] == part]
            print(f"{part:14} {sum(row[2] for row in rows):4} of {len(rows)} checks passed in {self._seconds.get(part, 0):.0f} s")
        for part, name, _, detail in failed:
            print(f"FAILED {part}: {name}: {detail}", file=sys.stderr)
        return len(failed)
