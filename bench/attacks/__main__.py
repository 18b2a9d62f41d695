"""Attacks the release binary of Toolyard as an outsider would, and prints a table: attack, expected, observed, held.

usage: python3 bench/attacks [--only NAME]… [--quick] [--json] [--list] [--jobs N]

The binary is `TOOLYARD_BIN`. The payloads of `TOOLYARD_DATA/security` are added where the variable is set. The exit code is 1
if an attack does not hold.
"""

import argparse
import concurrent.futures
import json
import os
import sys
import textwrap
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402,F401
from trial import ATTACKS, CANARY, HIDDEN, RULE, Trial  # noqa: E402


def main():
    options = parse_arguments()
    chosen = choose(options)
    if options.list:
        for item in chosen:
            print(f"{item.name:<36} {item.kind:<7} {item.expected}")
        return 0
    binary = Path(os.environ.get("TOOLYARD_BIN") or default_binary()).resolve()
    if not binary.is_file():
        sys.exit(f"attacks: no binary at {binary}\n  hint: cargo build --release -p toolyard, or set TOOLYARD_BIN")
    began = time.monotonic()
    trials = run(chosen, binary, options)
    report(trials, time.monotonic() - began, options.json)
    return 0 if all(trial.held for trial in trials) else 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="just attacks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="only attacks whose name contains NAME; repeatable")
    parser.add_argument("--quick", action="store_true", help="the subset for CI")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--list", action="store_true", help="list the attacks and run none")
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="attacks at the same time (default 4)")
    parser.add_argument("--traceback", action="store_true", help="print where an attack itself failed")
    return parser.parse_args()


def default_binary():
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("CARGO_TARGET_DIR") or root / "target") / "release/toolyard"


def choose(options):
    chosen = [item for item in ATTACKS if not options.only or any(name in item.name for name in options.only)]
    return [item for item in chosen if item.quick] if options.quick else chosen


def run(chosen, binary, options):
    """Runs attacks side by side, then one by one those that measure time."""
    trials = [Trial(item, binary) for item in chosen]

    def execute(trial):
        began = time.monotonic()
        trial.execute()
        trial.seconds = time.monotonic() - began
        if not options.json:
            print(
                f"{'held' if trial.held else 'NOT HELD':<9}{trial.seconds:6.1f} s  {trial.attack.name}",
                file=sys.stderr,
                flush=True,
            )
        if trial.error and options.traceback:
            print(trial.traceback, file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(execute, [trial for trial in trials if not trial.attack.alone]))
    for trial in trials:
        if trial.attack.alone:
            execute(trial)
    return trials


def report(trials, seconds, as_json):
    held = sum(trial.held for trial in trials)
    totals = {
        "calls made or moved against a rule": count(trials, RULE),
        "canaries out with an obedient model": count(trials, CANARY),
        "hidden characters to clients or terminals": count(trials, HIDDEN),
    }
    if as_json:
        rows = [
            {
                "attack": trial.attack.name,
                "kind": trial.attack.kind,
                "expected": trial.attack.expected,
                "observed": trial.observed(),
                "variants": trial.tried,
                "went_through": trial.broken,
                "held": trial.held,
                "seconds": round(trial.seconds, 1),
            }
            for trial in trials
        ]
        summary = {name: {"went_through": broken, "variants": tried} for name, (broken, tried) in totals.items()}
        print(json.dumps({"attacks": rows, "totals": summary, "held": held, "seconds": round(seconds, 1)}, indent=1))
        return
    print_table(trials)
    print()
    for name, (broken, tried) in totals.items():
        print(f"{broken:6} of {tried:6}  {name}")
    print(f"{held} of {len(trials)} attacks held, {sum(trial.tried for trial in trials)} variants, {seconds:.0f} s")


def count(trials, kind):
    chosen = [trial for trial in trials if trial.attack.kind == kind]
    return sum(len(trial.broken) for trial in chosen), sum(trial.tried for trial in chosen)


def print_table(trials):
    columns = (34, 58, 58)
    print(f"{'ATTACK':<{columns[0]}}  {'EXPECTED':<{columns[1]}}  {'OBSERVED':<{columns[2]}}  HELD")
    for trial in trials:
        cells = [
            textwrap.wrap(printable(text), width) or [""]
            for text, width in zip((trial.attack.name, trial.attack.expected, trial.observed()), columns)
        ]
        for line in range(max(map(len, cells))):
            row = [cell[line] if line < len(cell) else "" for cell in cells]
            mark = ("yes" if trial.held else "NO") if line == 0 else ""
            print("  ".join(f"{text:<{width}}" for text, width in zip(row, columns)) + f"  {mark}")


def printable(text):
    """Observations quote hostile text: nothing of it may reach this terminal."""
    return "".join(character if character.isprintable() else f"\\u{{{ord(character):x}}}" for character in text)[:600]


if __name__ == "__main__":
    sys.exit(main())
