#!/usr/bin/env python3
"""Makes npm packages: one with the binary for a platform, and the launcher `toolyard` that depends on those of all platforms.

usage: npm.py platform BINARY TARGET VERSION NOTICES FOLDER
       npm.py launcher VERSION FOLDER
NOTICES is the file of notices.py. Prints the path of the package.
"""

import gzip
import io
import json
import os
import sys
import tarfile
from pathlib import Path

from targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "packaging/npm/toolyard"
LICENSES = {name: (ROOT / name).read_bytes() for name in ["LICENSE-APACHE", "LICENSE-MIT"]}


def platform_files(binary: Path, target: str, version: str, notices: Path) -> tuple[str, dict[str, bytes]]:
    system, cpu = TARGETS[target].npm_os, TARGETS[target].npm_cpu
    licenses = LICENSES | {"THIRD-PARTY-LICENSES": notices.read_bytes()}
    manifest = {
        "name": f"@toolyard/{system}-{cpu}",
        "version": version,
        "description": f"The program toolyard for {system} on {cpu}; install the package toolyard instead",
        "license": "MIT OR Apache-2.0",
        "os": [system],
        "cpu": [cpu],
        "files": ["bin", *licenses],
        "preferUnplugged": True,
    }
    name = f"toolyard-{system}-{cpu}-{version}.tgz"
    return name, {"package.json": encode(manifest), "bin/toolyard": binary.read_bytes(), **licenses}


def launcher_files(version: str) -> tuple[str, dict[str, bytes]]:
    manifest = json.loads((LAUNCHER / "package.json").read_text())
    manifest["version"] = version
    manifest["optionalDependencies"] = dict.fromkeys(manifest["optionalDependencies"], version)
    files = {"package.json": encode(manifest)}
    files |= {name: (LAUNCHER / name).read_bytes() for name in ["README.md", "bin/toolyard.js"]}
    return f"toolyard-{version}.tgz", files | LICENSES


def encode(manifest: dict) -> bytes:
    return (json.dumps(manifest, indent=2) + "\n").encode()


def write_package(path: Path, files: dict[str, bytes]) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode = len(content), 0o755 if name.startswith("bin/") else 0o644
            entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
            tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(archive.getvalue(), 6, mtime=0))
    print(path)


def main() -> None:
    match sys.argv[1:]:
        case ["platform", binary, target, version, notices, folder]:
            name, files = platform_files(Path(binary), target, version, Path(notices))
        case ["launcher", version, folder]:
            name, files = launcher_files(version)
        case _:
            sys.exit(__doc__)
    write_package(Path(folder) / name, files)


if __name__ == "__main__":
    main()
