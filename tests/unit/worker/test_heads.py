"""Heads of branches that a verifier reports with its polls."""

from pathlib import Path

from pointsman.worker.git import git
from pointsman.worker.heads import branch_heads
from tests.unit.worker.repositories import commit, repository


async def test_what_is_checked_out_and_usual_names_come_first_and_deliveries_never(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    first = await repository(folder, {"a.py": "1\n"})
    await git(folder, "branch", "pointsman/run-1")
    await git(folder, "checkout", "-q", "-b", "feature")
    second = await commit(folder, {"a.py": "2\n"})
    await git(folder, "branch", "later")
    found = await branch_heads(folder, 64)
    assert [(head.branch, head.commit) for head in found] == [("feature", second), ("main", first), ("later", second)]
    assert [head.branch for head in await branch_heads(folder, 1)] == ["feature"]
    assert not await branch_heads(tmp_path / "gone", 64)
