"""Heads of branches that a verifier reports with its polls."""

from pathlib import Path

from pointsman.worker.git import git
from pointsman.worker.heads import MAX_HEADS, branch_heads
from tests.unit.worker.repositories import commit, repository


async def test_what_is_checked_out_and_usual_names_come_first_and_deliveries_never(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    first = await repository(folder, {"a.py": "1\n"})
    await git(folder, "branch", "pointsman/run-1")
    await git(folder, "checkout", "-q", "-b", "feature")
    second = await commit(folder, {"a.py": "2\n"})
    await git(folder, "branch", "later")
    found = await branch_heads({"shop": folder, "gone": tmp_path / "gone"})
    assert [(head.repository_id, head.branch, head.commit) for head in found] == [
        ("shop", "feature", second),
        ("shop", "main", first),
        ("shop", "later", second),
    ]


async def test_repositories_with_many_branches_share_the_room_of_a_poll(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("one", "two")}
    for folder in folders.values():
        at = await repository(folder, {"a.py": "1\n"})
        refs = "".join(f"create refs/heads/b{number} {at}\n" for number in range(MAX_HEADS))
        await git(folder, "update-ref", "--stdin", stdin=refs.encode())
    found = await branch_heads(folders)
    assert [sum(head.repository_id == name for head in found) for name in folders] == [MAX_HEADS // 2] * 2
