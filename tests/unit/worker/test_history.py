"""A working tree holds the history of its commit and nothing else of the user's repository."""

import asyncio
from pathlib import Path

import pytest

from pointsman.worker.git import GitFailed, git, text
from pointsman.worker.history import MAX_HISTORIES, Histories
from tests.unit.worker.repositories import clone_of, commit, repository


async def test_other_branches_and_borrowed_objects_are_not_in_a_working_tree(tmp_path: Path) -> None:
    first = await repository(tmp_path / "r", {"a": "1"})
    base = await commit(tmp_path / "r", {"a": "2"})
    await git(tmp_path / "r", "checkout", "-q", "-b", "secret")
    secret = await commit(tmp_path / "r", {"a": "secret"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    assert await clone.has(secret)
    tree = tmp_path / "tree"
    await clone.check_out(base, tree)
    assert (await text(tree, "rev-list", "HEAD")).split() == [base, first]
    assert await text(tree, "for-each-ref") == ""
    assert await text(tree, "remote") == ""
    assert not (tree / ".git/objects/info/alternates").exists()
    with pytest.raises(GitFailed):
        await git(tree, "cat-file", "-e", secret)


async def test_a_tree_that_an_agent_damages_does_not_damage_the_next(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    await clone.check_out(base, tmp_path / "one")
    for path in (tmp_path / "one/.git/objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"damaged")
    await clone.check_out(base, tmp_path / "two")
    assert (tmp_path / "two/a").read_text() == "1"
    await git(tmp_path / "two", "fsck", "--strict")


async def test_trees_on_one_commit_can_be_laid_out_at_once_by_several_workers(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    workers = [Histories(clone.path, tmp_path / "scratch") for _ in range(4)]
    await asyncio.gather(*(one.lay_out(base, tmp_path / f"tree-{number}") for number, one in enumerate(workers)))
    for number in range(4):
        assert await text(tmp_path / f"tree-{number}", "rev-list", "--count", base) == "1"


async def test_only_the_newest_histories_are_kept(tmp_path: Path) -> None:
    commits = [await repository(tmp_path / "r", {"a": "0"})]
    commits += [await commit(tmp_path / "r", {"a": str(number)}) for number in range(1, MAX_HISTORIES + 3)]
    clone = await clone_of(tmp_path / "r", tmp_path)
    for number, one in enumerate(commits):
        await clone.check_out(one, tmp_path / f"tree-{number}")
    kept = [path.name for path in clone.path.with_suffix(".histories").iterdir()]
    assert len(kept) == MAX_HISTORIES
    assert commits[-1] in kept
