"""`pointsman proof run` and `explain`: exit codes, JSON, JUnit and words, on a small repository."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from pointsman.cli.commands.proof import app
from tests.unit.proof.deliveries import CALC, FIXED

VERIFY = ("--verify", f"{sys.executable} -m unittest")
RED = "test_calc.TestCalc.test_add"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a bug that a test shows."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    folder = tmp_path / "user"
    folder.mkdir()
    write(folder, CALC)
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")):
        subprocess.run(("git", *words), cwd=folder, check=True)
    return folder


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def proof(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [words[0], "--repo", str(folder), *words[1:]], catch_exceptions=False)


def test_a_fix_ends_with_0_and_leaves_json_and_junit_for_scripts(repository: Path, tmp_path: Path) -> None:
    write(repository, FIXED)
    junit = tmp_path / "proof.xml"
    done = proof(repository, "run", *VERIFY, "--fixes", RED, "--json", "--junit", str(junit), "--require", "proven")
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (found["decision"], found["grade"]) == ("accepted", "proven")
    assert found["commands"][0]["fixed"] == [RED]
    assert [run["purpose"] for run in found["commands"][0]["runs"]] == ["base", "restored"]
    assert RED in found["commands"][0]["runs"][0]["messages"]
    root = ElementTree.fromstring(junit.read_text())
    assert [suite.get("name") for suite in root] == ["proof: proven", f"{sys.executable} -m unittest"]
    assert not list(root.iter("failure"))


def test_a_regression_ends_with_1_and_shows_what_failed(repository: Path, tmp_path: Path) -> None:
    write(repository, {"calc.py": CALC["calc.py"].replace("a * 2", "a * 3")})
    junit = tmp_path / "proof.xml"
    done = proof(repository, "run", *VERIFY, "--junit", str(junit))
    assert done.exit_code == 1
    assert done.stdout.startswith("REFUSED\n  tests passed on the base and fail on the delivery: test_calc.TestCalc")
    assert "AssertionError: 6 != 4" in done.stdout
    failed = ElementTree.fromstring(junit.read_text()).findall("testsuite/testcase[failure]")
    assert [case.get("name") for case in failed] == ["verdict", "test_calc.TestCalc.test_double"]


def test_a_grade_below_the_required_one_ends_with_4_and_wrong_use_with_2(repository: Path) -> None:
    write(repository, {"README.md": "# calc\n"})
    done = proof(repository, "run", *VERIFY, "--require", "proven")
    assert done.exit_code == 4
    assert "the grade is unbroken, and proven is required" in done.output
    assert proof(repository, "run", *VERIFY, "--verify-from", "nowhere").exit_code == 2


def test_explain_says_why_each_file_judges_and_what_would_be_run(repository: Path) -> None:
    write(repository, {"test_calc.py": "", "pointsman.toml": "[proof]\nrepeat = 3\n"})
    found: dict[str, Any] = json.loads(proof(repository, "explain", *VERIFY, "--json").stdout)
    assert [(row["path"], row["kind"], row["changed"]) for row in found["protected"]] == [
        ("pointsman.toml", "config", True),
        ("test_calc.py", "test", True),
    ]
    assert found["commands"][0]["adapter"] == "unittest"
    words = proof(repository, "explain", "--verify", "./check").stdout
    assert "`./check`, named by --verify, is read by: its exit code only, which is an open risk" in words
    assert "each runs once with the base's tests" in words
    assert "  test_calc.py  test, changed by the work: a test module" in words
