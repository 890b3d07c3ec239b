"""Held-out checks from a folder, or from a commit that no author of work can read."""

from pathlib import Path

import pytest

from pointsman._shared.git import git
from pointsman.proof.held_out import NoChecks, read_held_out
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
