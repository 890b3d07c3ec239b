"""`pointsman init`, `config` and the baseline of `run`: what cannot be proven is said before any agent is started."""

import json
import shlex
from pathlib import Path

import pytest

from pointsman.worker.git import git
from tests.scenarios.commands import finished, finished_in
from tests.unit.worker.repositories import commit, repository

CALC = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": (
        "import unittest\n\nfrom calc import add\n\n\nclass AddTest(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(1, 2), 3)\n"
        "    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n"
    ),
}
pytestmark = pytest.mark.timeout(240)


def run_with(folder: Path, data: Path, *options: str) -> tuple[int, str]:
    """`pointsman run` with an agent that leaves a mark when it is started."""
    mark = f"touch {shlex.quote(str(data / 'started'))}"
    agent = shlex.join(("sh", "-c", mark))
    arguments = ("run", "fix the add function in calc.py", "--repo", str(folder), "--command", agent, *options)
    return finished(*arguments, POINTSMAN_DATA=str(data))


async def test_init_proposes_a_file_with_reasons_tries_it_and_writes_it(tmp_path: Path) -> None:
    folder, data = tmp_path / "user", str(tmp_path / "data")
    await repository(folder, CALC)
    code, output = finished_in(folder, "init", "--yes", POINTSMAN_DATA=data)
    assert code == 0, output
    assert '"python3 -m unittest discover -q",  # 1 file of tests for unittest' in output
    assert "2 tests: 1 green, 1 red: tests.test_calc.AddTest.test_adds" in output
    assert "git add pointsman.toml" in output
    await commit(folder, {})
    code, output = finished_in(folder, "config", "--json", POINTSMAN_DATA=data)
    settings = {one["name"]: one for one in json.loads(output)}
    assert settings["proof.verify"]["value"] == ["python3 -m unittest discover -q"]
    assert settings["proof.verify"]["origin"].startswith("pointsman.toml of ")
    assert settings["data"]["origin"] == "environment POINTSMAN_DATA"
    assert settings["proof.timeout"]["origin"] == "default"
    code, output = finished_in(folder, "init", "--json", POINTSMAN_DATA=data)
    found = json.loads(output.splitlines()[-1])
    assert (code, found["is_new"], found["state"]) == (0, False, "RED")


async def test_init_writes_nothing_unasked_and_says_what_does_not_work(tmp_path: Path) -> None:
    folder, data = tmp_path / "user", str(tmp_path / "data")
    await repository(folder, {"README": "nothing to test\n"})
    code, output = finished_in(folder, "init", POINTSMAN_DATA=data)
    assert code == 1, output
    assert "no command proves work yet: name one in [proof] verify" in output
    assert not (folder / "pointsman.toml").exists()
    (folder / "pointsman.toml").write_text("[proof]\nverfy = []\n")
    code, output = finished_in(folder, "init", POINTSMAN_DATA=data)
    assert (code, "did you mean 'verify'?" in output) == (2, True), output


async def test_init_without_a_terminal_proposes_writes_nothing_and_names_yes(tmp_path: Path) -> None:
    folder, data = tmp_path / "user", str(tmp_path / "data")
    await repository(folder, CALC)
    code, output = finished_in(folder, "init", POINTSMAN_DATA=data)
    assert (code, "`pointsman init --yes` writes" in output) == (2, True), output
    assert not (folder / "pointsman.toml").exists()


async def test_where_there_is_no_repository_to_work_on_the_way_out_is_named(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    (tmp_path / "plain").mkdir()
    await git(tmp_path, "init", "-q", "--bare", "bare")
    await git(tmp_path, "init", "-q", "empty")
    for name, words in (("plain", "`git init`"), ("bare", "with a working tree"), ("empty", "has no commit yet")):
        code, output = finished_in(tmp_path / name, "init", "--yes", POINTSMAN_DATA=data)
        assert (code, words in output) == (2, True), output
    code, output = finished_in(tmp_path / "plain", "init", "--yes", POINTSMAN_DATA=data, PATH="/nonexistent")
    assert (code, "git is not installed" in output) == (2, True), output


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        ({}, ("--verify", "no-such-runner"), "BROKEN: `no-such-runner` cannot be started"),
        ({}, ("--verify", "make tst"), "BROKEN: make has no such target"),
        ({}, ("--verify", "python3 -m unittest -q no_such_module_of_tests"), "BROKEN: "),
        (
            {"pointsman.toml": '[workspace]\nsetup = ["sleep 3600"]\ntimeout = 1\n'},
            (),
            "set-up failed: `sleep 3600` was not done when the 1 s",
        ),
        (
            {"pointsman.toml": "[workspace]\nsetup = [\"sh -c 'read answer'\"]\n"},
            (),
            "set-up failed: `sh -c 'read answer'`: it ended with exit code 1",
        ),
        ({"pointsman.toml": '[workspace]\nsetup = ["no-such-tool"]\n'}, (), "what to do: install no-such-tool"),
    ],
    ids=["no program", "no target", "no module", "never ends", "asks", "no tool"],
)
async def test_a_proof_that_cannot_run_is_found_before_any_agent_is_started(
    tmp_path: Path, files: dict[str, str], options: tuple[str, ...], words: str
) -> None:
    await repository(tmp_path / "user", {**CALC, "Makefile": "all:\n\ttrue\n", **files})
    code, output = run_with(tmp_path / "user", tmp_path / "data", *options)
    assert (code, words in output) == (2, True), output
    assert "nothing was submitted" in output
    assert not (tmp_path / "data" / "started").exists()
    code, output = finished("runs", "--json", POINTSMAN_DATA=str(tmp_path / "data"))
    assert (code, "run_" in output) == (0, False), output


async def test_the_base_is_described_test_by_test_and_submodules_are_named(tmp_path: Path) -> None:
    await repository(tmp_path / "user", {**CALC, ".gitmodules": ""})
    code, output = run_with(tmp_path / "user", tmp_path / "data", "--detach")
    assert code == 0, output
    assert "submodules are not checked out" in output
    assert (
        "base: `python3 -m unittest discover -q`: 2 tests: 1 green, 1 red: tests.test_calc.AddTest.test_adds" in output
    )
    run_id = next(word for word in output.split() if word.startswith("run_"))
    finished("cancel", run_id, POINTSMAN_DATA=str(tmp_path / "data"))


async def test_whoever_knows_better_leaves_the_baseline_out(tmp_path: Path) -> None:
    await repository(tmp_path / "user", CALC)
    code, output = run_with(
        tmp_path / "user", tmp_path / "data", "--verify", "no-such-runner", "--no-baseline", "--detach"
    )
    assert (code, "run run_" in output) == (0, True), output
    run_id = next(word for word in output.split() if word.startswith("run_"))
    finished("cancel", run_id, POINTSMAN_DATA=str(tmp_path / "data"))


SETUP_FILE = """\
[workspace]
setup = ["python3 -m venv --without-pip .venv", "sh -c 'cp -r vendor/dep .venv/lib/python3*/site-packages/'"]
[proof]
verify = ["python -m unittest discover -q"]
"""
AGENT = r"""
printf 'import dep\n\n\ndef add(a, b):\n    return a + b\n' > calc.py
pointsman evidence run --id E1 -- python -m unittest tests.test_calc
criteria=$(sed -n 's/.*"id": "\([^"]*\)".*/"\1"/p' "$POINTSMAN_HANDOFF/acceptance_criteria.json" | paste -sd, -)
echo '[{"id": "C1", "statement": "it adds", "criterion_ids": ['$criteria'], "evidence_ids": ["E1"]}]' \
  > "$POINTSMAN_HANDOFF/claims.json"
echo '[{"path": "calc.py", "change": "MODIFIED"}]' > "$POINTSMAN_HANDOFF/changed_files.json"
"""


async def test_a_project_that_has_to_be_set_up_comes_to_a_proven_branch(tmp_path: Path) -> None:
    folder, data = tmp_path / "user", str(tmp_path / "data")
    files = {**CALC, "calc.py": "import dep\n\n\ndef add(a, b):\n    return a - b\n"}
    await repository(folder, {**files, "vendor/dep/__init__.py": "", "pointsman.toml": SETUP_FILE})
    (tmp_path / "agent.sh").write_text(AGENT)
    arguments = ("run", "fix the add function in calc.py", "--action", "--repo", str(folder))
    code, output = finished(*arguments, "--command", f"sh {tmp_path}/agent.sh", POINTSMAN_DATA=data)
    assert code == 0, output
    assert "base: `python -m unittest discover -q`: 2 tests: 1 green, 1 red" in output
    branch = next(word for word in output.split() if word.startswith("pointsman/run_")).rstrip(".,:;")
    changed = (await git(folder, "diff", "--name-only", "HEAD", branch)).decode().split()
    assert changed == ["calc.py"]
