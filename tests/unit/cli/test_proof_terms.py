"""--fixes and --verify-from are checked before anything is submitted."""

import shutil
from pathlib import Path

import pytest

from pointsman.api.handoff.v1.proof_pb2 import GRADE_PROVEN
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.options.order_options import Requirement
from pointsman.cli.session.proof_terms import TermOptions, read_checks, require_red
from pointsman.client import Order
from pointsman.proof.baseline import Baseline, CommandBaseline, State
from pointsman.worker.git import git
from tests.unit.worker.repositories import repository

RED = Baseline((CommandBaseline(("pytest",), State.RED, 3, ("tests/test_a.py::test_mean", "tests/test_a.py::test_x")),))


def test_a_red_test_may_be_named() -> None:
    require_red(["tests/test_a.py::test_mean"], RED)
    require_red([], None)


@pytest.mark.parametrize(
    ("wanted", "baseline", "told"),
    [
        ("tests/test_a.py::test_men", RED, "did you mean 'tests/test_a.py::test_mean'?"),
        ("nothing_like_it", RED, "Red on the base: tests/test_a.py::test_mean, tests/test_a.py::test_x"),
        ("t", Baseline((CommandBaseline(("pytest",), State.GREEN, 3),)), "No test that can be named fails there."),
        ("t", None, "--fixes needs the baseline"),
    ],
)
def test_a_test_that_is_not_red_is_refused_with_those_that_are(
    wanted: str, baseline: Baseline | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        require_red([wanted], baseline)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_what_was_not_asked_for_is_not_sent() -> None:
    assert TermOptions().message() is None
    said = TermOptions(("t",), "", Requirement.PROVEN, tests_may_change=True).message()
    assert said is not None
    assert (list(said.fixes), said.require_grade, said.tests_may_change) == (["t"], GRADE_PROVEN, True)


async def order_on(folder: Path) -> Order:
    """A run on a repository with a folder of checks in it."""
    base = await repository(folder, {"a.py": "1\n", "kept/test_a.py": "x\n"})
    return Order("fix it", Repository(id="repo", base_commit=base), [("pytest",)])


async def test_checks_are_read_from_a_folder_or_from_a_branch_that_the_base_does_not_reach(tmp_path: Path) -> None:
    order, folder, outside = await order_on(tmp_path / "repo"), tmp_path / "repo", tmp_path / "checks"
    shutil.copytree(folder / "kept", outside)
    assert set((await read_checks(str(outside), folder, order)).checks) == {"test_a.py"}
    untracked = folder / "untracked"
    shutil.copytree(outside, untracked)
    assert set((await read_checks(str(untracked), folder, order)).checks) == {"test_a.py"}
    await git(folder, "checkout", "-q", "-b", "checks")
    await git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "checks")
    assert set((await read_checks("checks:kept", folder, order)).checks) == {"test_a.py"}


@pytest.mark.parametrize(
    ("place", "told"),
    [("kept", "agents would see"), ("HEAD:kept", "agents would see"), ("nowhere", "neither a folder nor REF:PATH")],
)
async def test_checks_that_agents_would_see_are_refused(
    place: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = await order_on(tmp_path / "repo")
    monkeypatch.chdir(tmp_path / "repo")
    with pytest.raises(SystemExit):
        await read_checks(place, tmp_path / "repo", order)
    assert told in capsys.readouterr().err
