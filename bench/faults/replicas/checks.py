"""The rows of the report: what was measured beside what was wanted."""

import json
from collections import Counter


class Report:
    def __init__(self):
        self.rows = []

    def check(self, fault, figure, measured, wanted, is_reached, note=""):
        """Adds a row and prints it at once."""
        row = {"fault": fault, "figure": figure, "measured": measured, "wanted": wanted, "reached": bool(is_reached), "note": note}
        self.rows.append(row)
        print(f"  {fault}: {figure}: {measured} (wanted {wanted}) {'ok' if is_reached else 'NOT REACHED'}{'  ' + note if note else ''}", flush=True)

    def is_reached(self):
        return all(row["reached"] for row in self.rows)

    def markdown(self):
        lines = ["| fault | figure | measured | wanted | reached |", "|---|---|---|---|---|"]
        for row in sorted(self.rows, key=lambda row: [other["fault"] for other in self.rows].index(row["fault"])):
            cells = [row["fault"], row["figure"], f"{row['measured']}", f"{row['wanted']}", "yes" if row["reached"] else "**no**"]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def json(self):
        return json.dumps({"reached": self.is_reached(), "rows": self.rows}, indent=2)


def check_ledger(report, fault, load, entries):
    """Acknowledged calls were executed exactly once, and no call was executed twice."""
    executed = Counter(entries)
    lost = sum(executed[call.entry] == 0 for call in load.calls if call.outcome == "ok")
    repeated = sum(count > 1 for count in executed.values())
    crossed = sum(call.outcome in ("wrong answer", "wrong id") for call in load.calls)
    report.check(fault, "acknowledged calls lost / executed twice / answered with the result of another call", f"{lost} / {repeated} / {crossed}", "0 / 0 / 0",
                 lost == repeated == crossed == 0)
