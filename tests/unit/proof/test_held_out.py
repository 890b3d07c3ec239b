"""Held-out checks from a folder, or from a commit that no author of work can read."""

from pathlib import Path

import pytest

from pointsman._shared.git import git
from pointsman.proof.held_out import NoChecks, own_checks, read_held_out
from pointsman.proof.results import Outcome, TestReport, TestResult
from tests.unit.proof.deliveries import commit


async def test_a_branch_that_the_base_does_not_reach_holds_checks_and_its_history_does_not(tmp_path: Path) -> None:
    user = tmp_path / "user"
    await git(tmp_path, "init", "-q", "-b", "main", str(user))
    first = await commit(user, {"hidden/test_a.py": "1"})
    base = await commit(user, {"a.py": "1"})
    await git(user, "switch", "-q", "-c", "checks")
    await commit(user, {"hidden/test_b.py": "2"})
    assert await read_held_out("checks:hidden", user, base) == {"test_a.py": b"1", "test_b.py": b"2"}
    for place in (f"{first}:hidden", "main:hidden", "main:"):
        with pytest.raises(NoChecks, match="the base reaches that commit"):
            await read_held_out(place, user, base)


async def test_a_folder_is_read_without_its_repository(tmp_path: Path) -> None:
    (tmp_path / "checks/.git").mkdir(parents=True)
    (tmp_path / "checks/.git/config").write_text("x")
    (tmp_path / "checks/test_a.py").write_text("1")
    assert await read_held_out(str(tmp_path / "checks"), tmp_path) == {"test_a.py": b"1"}


@pytest.mark.parametrize("place", ["nowhere", "nowhere:hidden"])
async def test_what_holds_no_checks_is_said(tmp_path: Path, place: str) -> None:
    await git(tmp_path, "init", "-q", str(tmp_path / "user"))
    with pytest.raises(NoChecks):
        await read_held_out(place, tmp_path / "user", "HEAD")


@pytest.mark.parametrize(
    ("adapter", "real", "forged", "source"),
    [
        ("cargo", "h:tests/h.rs::hidden_a", "h:tests/h.rs::test_a_0", b"mod tests { #[test]\nfn hidden_a() {} }"),
        ("cargo", "h:tests/h.rs::adds::case_1", "h:tests/h.rs::test_a_0", b"#[rstest]\nfn adds(#[case] a: i64) {}"),
        (
            "go",
            "example.com/calc.TestHidden/one",
            "example.com/calc.TestA0",
            b"package calc\nfunc TestHidden(t *testing.T) {}",
        ),
        ("pytest", "test_h.py::test_b[1-a]", "test_h.py::test_a", b"import test_h\ndef test_b(a): pass"),
        (
            "unittest",
            "test_h.TestHidden.test_b",
            "test_h.TestA.test_a",
            b"class TestHidden:\n    def test_b(self): pass",
        ),
    ],
)
def test_a_result_that_no_held_out_file_names_is_no_check(adapter: str, real: str, forged: str, source: bytes) -> None:
    known = "known"
    report = TestReport(adapter, {one: TestResult(one, Outcome.PASSED) for one in (real, forged, known)})
    assert set(own_checks(report, {"h": source}, {known}).tests) == {real, known}
    red = TestReport(adapter, {forged: TestResult(forged, Outcome.ERROR)})
    assert own_checks(red, {"h": source}, {known}) == red
    other = TestReport("node", report.tests)
    assert own_checks(other, {"h": source}, {known}) is other
