#!/usr/bin/env python3
"""Writes a software bill of materials (CycloneDX 1.6) of the release binary: every crate that is linked into it, and glibc.

usage: sbom.py BINARY TARGET VERSION     (prints JSON)

`cargo metadata` joins the features of the whole workspace; `cargo tree` knows what this package uses on this target. Build
scripts, procedural macros and tests are not in the binary, and so not in the list. Binaries for *-linux-gnu contain the glibc of
the machine that links them: run this there.
"""

import datetime
import hashlib
import json
import os
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEPARATOR = "|"


def dependency_lines(target: str) -> list[tuple[int, str, str, str]]:
    """Depth, name, version and licence of each line of the tree."""
    form = SEPARATOR.join(["", "{p}", "{l}"])
    command = ["cargo", "tree", "--locked", "--package", "toolyard", "--target", target, "--edges", "normal,no-proc-macro"]
    command += ["--prefix", "depth", "--charset", "ascii", "--format", form]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    parsed = []
    for line in lines:
        # A package whose dependencies were listed before is marked with (*).
        depth, package, license_ = line.removesuffix(" (*)").split(SEPARATOR)
        name, version = package.split(" ")[:2]
        parsed.append((int(depth), name, version.removeprefix("v"), license_))
    return parsed


def checksums() -> dict[tuple[str, str], str | None]:
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in packages}


def reference(name: str, version: str) -> str:
    return f"pkg:cargo/{name}@{version}"


def component(name: str, version: str, license_: str, checksum: str | None) -> dict:
    found = {"type": "library", "bom-ref": reference(name, version), "name": name, "version": version, "purl": reference(name, version)}
    if license_:
        # Old manifests separate alternatives by a slash, which is no SPDX expression.
        found["licenses"] = [{"expression": license_.replace("/", " OR ").replace("  ", " ")}]
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return found


def glibc() -> dict:
    """The C library of this machine, which scripts/release/build-release links statically."""
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    except (AttributeError, ValueError):
        sys.exit("sbom: the version of glibc is unknown on this machine\n  hint: make the packages on the system that linked the binary, with glibc")
    purl = f"pkg:generic/{name}@{version}"
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
        # Reports of vulnerabilities name glibc by its CPE.
        "cpe": f"cpe:2.3:a:gnu:glibc:{version}:*:*:*:*:*:*:*", "licenses": [{"expression": "LGPL-2.1-or-later"}],
    }


def main() -> None:
    binary, target, version = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    known, components, edges, parents = checksums(), {}, {}, []
    for depth, name, found_version, license_ in dependency_lines(target):
        own = reference(name, found_version)
        del parents[depth:]
        if parents:
            edges.setdefault(parents[-1], set()).add(own)
            components[own] = component(name, found_version, license_, known.get((name, found_version)))
        edges.setdefault(own, set())
        parents.append(own)
    main_reference = reference("toolyard", version)
    if target.endswith("-linux-gnu"):
        library = glibc()
        components[library["bom-ref"]] = library
        edges.setdefault(main_reference, set()).add(library["bom-ref"])
        edges[library["bom-ref"]] = set()
    digest = hashlib.sha256(binary.read_bytes()).hexdigest()
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.UTC)
    rustc = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application", "bom-ref": main_reference, "name": "toolyard", "version": version, "purl": main_reference,
                "licenses": [{"expression": "MIT OR Apache-2.0"}], "hashes": [{"alg": "SHA-256", "content": digest}],
                "properties": [{"name": "toolyard:target", "value": target}, {"name": "toolyard:compiler", "value": rustc}],
            },
        },
        "components": [components[key] for key in sorted(components)],
        "dependencies": [{"ref": key, "dependsOn": sorted(edges[key])} for key in sorted(edges)],
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
