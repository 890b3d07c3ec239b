"""Bounds of work before it is checked out: a small bundle that stands for many files is refused, at the edge nothing is."""

from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.worker.bounds import Extent, TreeLimits
from pointsman.worker.git import Clone, GitFailed, git, text
from tests.unit.worker.repositories import clone_of, commit, repository
from tests.unit.worker.test_verifier import Yard, yard

__all__ = ["yard"]
BASE = {"a": "1\n", "deep/er/file": "22\n"}
LOOSE = TreeLimits(entries=1000, size_bytes=1000, depth=1000)


async def bomb(clone: Clone, base: str, width: int, levels: int) -> str:
    """A commit of width ** levels files that shares one blob and one tree for each level."""
    made = (await git(clone.path, "hash-object", "-w", "--stdin", stdin=b"x")).decode().strip()
    kind = "100644 blob"
    for _ in range(levels):
        names = "".join(f"{kind} {made}\t{number:02d}\n" for number in range(width))
        made = (await git(clone.path, "mktree", stdin=names.encode())).decode().strip()
        kind = "040000 tree"
    return await text(clone.path, "commit-tree", made, "-p", base, "-m", "small")


async def bounded(folder: Path, limits: TreeLimits) -> Clone:
    clone = Clone(folder / "bounded.git", folder / "user", limits=limits)
    await clone.prepare()
    return clone


@pytest.mark.parametrize("levels", [3, 12])
async def test_a_bundle_of_some_hundred_bytes_does_not_become_thousands_of_files(levels: int, tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", BASE)
    maker = await clone_of(tmp_path / "user", tmp_path)
    body = await maker.make_bundle(base, made := await bomb(maker, base, 27, levels))
    assert len(body) < 2000
    clone = await bounded(tmp_path, TreeLimits())
    await clone.take_bundle(body, made)
    with pytest.raises(GitFailed, match=r"too large to be checked out: it has more than 10004 files and folders"):
        await clone.require_bounds(made, base)


async def test_empty_folders_without_end_are_counted_too(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", BASE)
    clone = await bounded(tmp_path, TreeLimits())
    made = (await git(clone.path, "mktree", stdin=b"")).decode().strip()
    for _ in range(8):
        names = "".join(f"040000 tree {made}\t{number:02d}\n" for number in range(27))
        made = (await git(clone.path, "mktree", stdin=names.encode())).decode().strip()
    empty = await text(clone.path, "commit-tree", made, "-p", base, "-m", "nothing")
    with pytest.raises(GitFailed, match="files and folders"):
        await clone.require_bounds(empty, base)


@pytest.mark.parametrize(
    ("name", "edge", "words"),
    [("entries", 3, "files and folders"), ("size_bytes", 6, "bytes"), ("depth", 4, "names")],
)
async def test_a_bound_holds_at_its_edge_and_not_one_past_it(name: str, edge: int, words: str, tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", BASE)
    added = await commit(tmp_path / "user", {"b": "123\n", "deep/er/and/deeper": "1\n"})
    past, at = (replace(LOOSE, **{name: limit}) for limit in (edge - 1, edge))
    (tmp_path / "past").mkdir()
    refusing = Clone(tmp_path / "past" / "bounded.git", tmp_path / "user", limits=past)
    await refusing.prepare()
    with pytest.raises(GitFailed, match=words):
        await refusing.require_bounds(added, base)
    await (await bounded(tmp_path, at)).require_bounds(added, base)


async def test_a_large_repository_may_be_worked_on(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {f"{number}/file": "x" * 10 for number in range(20)})
    added = await commit(tmp_path / "user", {"one": "more"})
    await (await bounded(tmp_path, TreeLimits(entries=1, size_bytes=4, depth=1))).require_bounds(added, base)


async def test_work_that_was_refused_once_is_refused_again(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", BASE)
    clone = await bounded(tmp_path, TreeLimits(entries=5))
    made = await bomb(clone, base, 10, 2)
    for _ in range(2):
        with pytest.raises(GitFailed, match="too large"):
            await clone.require_bounds(made, base)


async def test_a_verifier_leaves_out_work_that_is_out_of_bounds_and_proves_the_rest(yard: Yard) -> None:
    good, bad = await yard.task("T1", {"a": "2\n"}), await yard.task("T2", {"b": "2\n"})
    made = bad.coder_result
    made.result_commit = await bomb(yard.coder, yard.base, 27, 12)
    made.tree_hash = await yard.coder.tree_of(made.result_commit)
    made.bundle.CopyFrom(await yard.shelf.put(await yard.coder.make_bundle(yard.base, made.result_commit), "bundle"))
    report = await yard.verify(good, bad)
    assert [task.accepted for task in report.tasks] == [True, False]
    assert "too large to be checked out" in report.tasks[1].claims[0].detail


def test_what_is_beyond_is_told_with_the_setting_that_moves_it() -> None:
    most = Extent(1, 1, 1)
    assert "POINTSMAN_WORKER_TREE_ENTRIES" in Extent(2, 0, 0).excess_over(most)
    assert "POINTSMAN_WORKER_TREE_BYTES" in Extent(0, 2, 0).excess_over(most)
    assert "POINTSMAN_WORKER_TREE_DEPTH" in Extent(0, 0, 2).excess_over(most)
    assert most.excess_over(most) == ""
