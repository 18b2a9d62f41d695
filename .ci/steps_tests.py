"""Tests of .ci/steps.py: in a small repository of their own, with a table of their own.

usage: PYTHONPATH=.ci python3 -m unittest -q steps_tests
"""

import fcntl
import json
import os
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "steps.py"
TABLE = """
[paths]
code = ["src", "!src/notes"]

[[step]]
name = "tools"
job = "builds"
tier = "always"
checks = "what builds need"
run = "true"

[[step]]
name = "build"
job = "builds"
tier = "always"
needs = ["tools"]
checks = "it builds"
run = "cat src/a/part >/dev/null; echo built >>$COUNTS/build"

[[step]]
name = "quick"
job = "lints"
tier = "always"
checks = "what always runs"
run = "echo ran >>$COUNTS/quick"

[[step]]
name = "trial"
job = "black-box"
tier = "changed"
needs = ["build"]
paths = ["@code", "trials/*.txt"]
checks = "what runs when its inputs changed"
run = "grep -q one src/a/part; echo ran >>$COUNTS/trial"
full = "echo full >>$COUNTS/trial"

[[step]]
name = "campaign"
job = "black-box"
tier = "nightly"
paths = ["campaign"]
checks = "what takes long"
run = "echo ran >>$COUNTS/campaign"

[[step]]
name = "survey"
job = "black-box"
tier = "nightly"
checks = "what only the night runs"
run = "echo ran >>$COUNTS/survey"
"""


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "clone"
        self.cache = Path(folder.name) / "cache"
        self.counts = Path(folder.name) / "counts"
        self.counts.mkdir()
        for name, text in {
            ".ci/steps.toml": TABLE, "src/a/part": "one", "src/notes/todo": "later", "trials/t.txt": "try", "campaign": "long",
            ".ci/steps.py": SCRIPT.read_text(),
        }.items():
            self.write(name, text)
        self.git("init", "--quiet")
        self.commit()

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@example.invalid", *arguments], check=True, stdout=subprocess.DEVNULL)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")

    def steps(self, *arguments: str, **variables: str) -> tuple[int, str]:
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "COUNTS": str(self.counts), **variables}
        done = subprocess.run(["python3", self.root / ".ci/steps.py", *arguments], env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def ran(self) -> list[str]:
        """The steps that ran since the last look."""
        files = sorted(self.counts.iterdir())
        names = [f"{file.name}" for file in files]
        for file in files:
            file.unlink()
        return names

    def test_a_step_runs_again_only_when_its_inputs_changed(self):
        self.assertEqual(self.steps()[0], 0)
        self.assertEqual(self.ran(), ["build", "quick", "trial"])
        code, output = self.steps()
        self.assertEqual((code, self.ran()), (0, ["quick"]))
        self.assertIn("skip     trial: its inputs passed already", output)
        self.assertIn("steps: 1 passed, 0 failed, 3 skipped", output)
        self.write("src/notes/todo", "never")
        self.steps()
        self.assertEqual(self.ran(), ["quick"], "a file that `!` takes out changes nothing")
        self.write("trials/t.txt", "try again")
        self.steps()
        self.assertEqual(self.ran(), ["build", "quick", "trial"], "an uncommitted change counts")

    def test_a_failure_is_shown_whole_and_never_counts_as_passed(self):
        self.write("src/a/part", "two")
        code, output = self.steps()
        self.assertEqual(code, 1)
        self.assertIn("FAILED   trial", output)
        self.assertIn("---- output of trial", output)
        self.ran()
        self.assertEqual(self.steps()[0], 1)
        self.assertEqual(self.ran(), ["build", "quick"], "the step ran, and failed again before it counted")

    def test_a_failure_takes_back_an_earlier_success(self):
        flag = self.counts.parent / "broken"
        self.write(".ci/steps.toml", TABLE.replace("grep -q one src/a/part;", f"test ! -e {flag};"))
        self.assertEqual(self.steps()[0], 0)
        flag.touch()
        self.assertEqual(self.steps("trial")[0], 1)
        self.assertEqual(self.steps()[0], 1)

    def test_a_failure_takes_back_a_success_in_full(self):
        flag = self.counts.parent / "broken"
        self.write(".ci/steps.toml", TABLE.replace("grep -q one src/a/part;", f"test ! -e {flag};"))
        self.assertEqual(self.steps("--nightly")[0], 0)
        flag.touch()
        self.assertEqual(self.steps("trial")[0], 1)
        self.assertEqual(self.steps()[0], 1)

    def test_a_nightly_step_that_failed_runs_until_it_passes(self):
        flag = self.counts.parent / "broken"
        self.write(".ci/steps.toml", TABLE.replace('run = "echo ran >>$COUNTS/campaign"', f'run = "test ! -e {flag}; echo ran >>$COUNTS/campaign"'))
        self.steps()
        self.assertNotIn("campaign", self.ran(), "it may take longer than all others")
        flag.touch()
        self.assertEqual(self.steps("campaign")[0], 1)
        self.assertEqual(self.steps()[0], 1)
        flag.unlink()
        self.assertEqual(self.steps()[0], 0)
        self.assertIn("campaign", self.ran())

    def test_a_committed_failure_takes_back_an_earlier_success(self):
        result = self.root / "docs/nightly/2026-01-01.json"
        self.steps("--nightly", "--result", str(result))
        later = json.loads(result.read_text())
        for row in later["steps"]:
            row["outcome"] = "failed"
        self.write("docs/nightly/2026-01-02.json", json.dumps(later))
        subprocess.run(["rm", "-rf", self.cache], check=True)
        self.ran()
        self.steps()
        self.assertEqual(self.ran(), ["build", "campaign", "quick", "trial"])

    def test_settings_of_a_single_test_do_not_reach_the_steps(self):
        self.write(".ci/steps.toml", TABLE.replace("grep -q one src/a/part;", "test -z ${TOOLYARD_SIMULATION_SEED:-};"))
        self.assertEqual(self.steps(TOOLYARD_SIMULATION_SEED="17")[0], 0)

    def test_a_part_of_a_file_is_an_input(self):
        self.write(".ci/steps.toml", TABLE.replace('"trials/*.txt"', '"settings.toml#build"'))
        self.write("settings.toml", "[build]\nfast = true\n[other]\nname = 1\n")
        self.steps()
        self.ran()
        self.write("settings.toml", "[build]\nfast = true\n[other]\nname = 2\n")
        self.steps()
        self.assertEqual(self.ran(), ["quick"])
        self.write("settings.toml", "[build]\nfast = false\n")
        self.steps()
        self.assertEqual(self.ran(), ["build", "quick", "trial"])

    def test_an_unknown_job_is_refused(self):
        self.assertNotEqual(self.steps("--job", "blackbox")[0], 0)
        self.write(".ci/steps.toml", TABLE.replace('job = "black-box"', 'job = "blackbox"'))
        self.assertNotEqual(self.steps()[0], 0)

    def test_a_runner_that_cannot_remember_a_result_fails_and_ends(self):
        (self.cache / "toolyard-ci").mkdir(parents=True)
        (self.cache / "toolyard-ci/passed").write_text("a file where a folder belongs")
        code, output = self.steps("trial")
        self.assertEqual(code, 1)
        self.assertIn("FAILED   trial", output)

    def test_a_step_runs_again_if_the_command_of_an_indirect_need_changed(self):
        self.steps()
        self.write(".ci/steps.toml", TABLE.replace('run = "true"', 'run = "true || false"'))
        self.ran()
        self.steps()
        self.assertEqual(self.ran(), ["build", "quick", "trial"])

    def test_a_step_runs_again_if_the_measuring_data_changed(self):
        data = self.counts.parent / "data"
        data.mkdir()
        (data / "cases").write_text("aa")
        self.write(".ci/steps.toml", TABLE.replace('"trials/*.txt"', '"trials/*.txt", "$TOOLYARD_DATA"'))
        self.steps(TOOLYARD_DATA=str(data))
        (data / "cases").write_text("bb")
        self.ran()
        self.steps(TOOLYARD_DATA=str(data))
        self.assertEqual(self.ran(), ["build", "quick", "trial"])

    def test_a_shallow_clone_is_tested_as_it_is(self):
        self.steps()
        self.write("src/a/part", "two")
        self.commit()
        shallow = self.root.parent / "shallow"
        subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{self.root}", shallow], check=True)
        self.root = shallow
        code, output = self.steps()
        self.assertEqual(code, 1)
        self.assertIn("FAILED   trial", output)

    def test_a_hook_of_another_repository_changes_nothing_there(self):
        other = self.root.parent / "other"
        subprocess.run(["git", "init", "--quiet", other], check=True)
        self.assertEqual(self.steps(GIT_DIR=str(other / ".git"), GIT_INDEX_FILE="nowhere")[0], 0)
        self.assertEqual(self.ran(), ["build", "quick", "trial"])
        self.assertEqual([path.name for path in other.iterdir()], [".git"])

    def test_a_plan_leaves_the_files_of_a_run_alone(self):
        self.steps()
        self.write("src/a/part", "one more")
        _, output = self.steps("--plan")
        self.assertIn("run      trial", output)
        self.assertEqual((self.cache / "toolyard-ci/tree/src/a/part").read_text(), "one")

    def test_two_runs_do_not_share_a_folder(self):
        self.steps()
        with open(self.cache / "toolyard-ci/lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            code, output = self.steps()
        self.assertEqual(code, 1)
        self.assertIn("another run uses", output)

    def test_a_step_whose_path_is_gone_is_refused_by_name_too(self):
        (self.root / "trials/t.txt").unlink()
        code, output = self.steps("trial")
        self.assertEqual(code, 1)
        self.assertIn("no file matches `trials/*.txt`", output)

    def test_a_step_whose_build_failed_does_not_pass(self):
        (self.root / "src/a/part").unlink()
        code, output = self.steps()
        self.assertEqual(code, 1)
        self.assertIn("NOT RUN  trial", output)
        self.assertIn("failed", output.splitlines()[-1])

    def test_results_of_the_night_that_are_committed_count_on_a_new_machine(self):
        result = self.root / "docs/nightly/2026-01-01.json"
        self.assertEqual(self.steps("--nightly", "--result", str(result))[0], 0)
        self.assertEqual(self.ran(), ["build", "campaign", "quick", "survey", "trial"])
        self.assertEqual(json.loads(result.read_text())["steps"][0]["outcome"], "passed")
        subprocess.run(["rm", "-rf", self.cache], check=True)
        _, output = self.steps()
        self.assertEqual(self.ran(), ["quick"])
        self.assertIn("skip     campaign: its inputs passed already (docs/nightly/2026-01-01.json)", output)
        self.write("campaign", "longer")
        self.steps()
        self.assertEqual(self.ran(), ["campaign", "quick"])

    def test_files_keep_their_times_unless_they_change(self):
        self.steps()
        tree = self.cache / "toolyard-ci/tree"
        before = (tree / "src/a/part").stat().st_mtime_ns
        self.write("trials/t.txt", "try again")
        self.commit()
        self.steps()
        self.assertEqual((tree / "src/a/part").stat().st_mtime_ns, before)
        self.assertEqual((tree / "trials/t.txt").read_text(), "try again")

    def test_a_path_that_names_no_file_is_refused(self):
        self.write(".ci/steps.toml", TABLE.replace('"trials/*.txt"', '"trails/*.txt"'))
        code, output = self.steps()
        self.assertNotEqual(code, 0)
        self.assertIn("trails/*.txt", output)


class Table(unittest.TestCase):
    """The table of this project."""

    def test_base_tests_leave_out_only_packages_that_depend_on_the_hub(self):
        root = Path(__file__).resolve().parents[1]
        metadata = subprocess.run(
            ["cargo", "metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"],
            cwd=root, capture_output=True, check=True,
        )
        packages = json.loads(metadata.stdout)["packages"]
        uses = {package["name"]: {each["name"] for each in package["dependencies"]} for package in packages}
        above = {"toolyard-hub"}
        while more := {name for name in uses if uses[name] & above} - above:
            above |= more
        folders = {package["name"]: Path(package["manifest_path"]).parent.relative_to(root) for package in packages}
        paths = tomllib.loads((root / ".ci/steps.toml").read_text())["paths"]["above-hub"]
        left_out = {name for name, folder in folders.items() if f"!{folder}" in [*paths, "!crates/toolyard"]}
        self.assertEqual(left_out, above)


if __name__ == "__main__":
    unittest.main()
