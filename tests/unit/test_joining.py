"""What meets a person who joins: CI, templates and hooks that run what `make` runs, and nothing that is not there."""

import re
import shutil
import tomllib
from typing import Any

import pytest
import yaml

from tests.helpers.scripts import ROOT, script

VERSIONS = ["3.11", "3.12", "3.13", "3.14"]


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def test_ci_runs_what_a_change_has_to_pass_on_every_python_that_we_promise_and_on_both_systems() -> None:
    job = read(".github/workflows/ci.yml")["jobs"]["run"]
    assert job["strategy"]["matrix"] == {"system": ["ubuntu-latest", "macos-latest"], "python": VERSIONS}
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={VERSIONS[0]}"


def test_every_target_that_ci_makes_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = re.findall(r"^make ([a-z-]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert made == ["setup", "check", "docs", "test", "clients"]
    assert {*made, "release"} <= targets


def test_everything_that_is_asked_for_news_of_dependencies_is_there() -> None:
    manifests = {
        "pip": "requirements.lock", "github-actions": ".github/workflows/ci.yml", "gomod": "go.mod", "maven": "pom.xml",
        "npm": "package.json", "docker": "Containerfile",
    }  # fmt: skip
    for update in read(".github/dependabot.yml")["updates"]:
        folder = ROOT / update["directory"].strip("/")
        assert (folder / manifests.pop(update["package-ecosystem"])).is_file()
    assert not manifests


def test_the_templates_ask_for_something() -> None:
    for name in ("fault", "proposal"):
        form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form["name"]
        assert any(part.get("validations", {}).get("required") for part in form["body"])


def test_the_hooks_before_a_commit_use_the_locked_tools() -> None:
    (local,) = read(".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        tool, *words = hook["entry"].split()
        assert tool.startswith(".venv/bin/")
        assert (
            shutil.which(tool.removeprefix(".venv/bin/"), path=str(ROOT / ".venv" / "bin"))
            or not (ROOT / ".venv").exists()
        )
        assert all((ROOT / word).exists() for word in words if "/" in word)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Do it\n\nBecause.\n", None),
        ("Do it\n# a comment\n", None),
        ("x" * 73, "73 characters"),
        ("Do it\nBecause.\n", "empty line"),
        ("\n", "is empty"),
    ],
)
def test_a_commit_has_a_short_subject_and_an_empty_line(message: str, said: str | None) -> None:
    with script(".ci/subject.py") as module:
        problem = module.problem(message)
    assert problem is None if said is None else said in problem
