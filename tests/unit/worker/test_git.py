"""Only files are taken from an agent's tree, and nothing is lost in a merge."""

import asyncio
import os
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.sandbox import clean_environment, proof_environment
from pointsman.worker.command import MAX_DIFF_BYTES, bounded_diff
from pointsman.worker.git import (
    Clone,
    GitFailed,
    commit_of_changes,
    git,
    repository_id,
    text,
    tree_hash,
    uncommitted,
)
from tests.unit.worker.repositories import clone_of, commit, repository


async def test_a_repository_is_known_by_its_first_commit(tmp_path: Path) -> None:
    first = await repository(tmp_path / "r", {"a": "1"})
    await commit(tmp_path / "r", {"a": "2"})
    assert await repository_id(tmp_path / "r") == first


async def test_a_tree_is_captured_as_one_commit_with_its_changes(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1\n", "b": "1\n", "c": "a long enough line to be found again\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    tree = tmp_path / "tree"
    await clone.check_out(base, tree)
    (tree / "a").write_text("2\n")
    (tree / "b").unlink()
    (tree / "new").write_text("n\n")
    (tree / "c").rename(tree / "d")
    captured = await clone.capture(tree, base, "box-coder")
    assert {(f.path, f.change) for f in captured.changed_files} == {
        ("a", handoff.FILE_CHANGE_MODIFIED),
        ("b", handoff.FILE_CHANGE_DELETED),
        ("new", handoff.FILE_CHANGE_ADDED),
        ("d", handoff.FILE_CHANGE_RENAMED),
    }
    assert await clone.tree_of(captured.commit) == captured.tree
    assert await text(clone.path, "log", "-1", "--format=%an", captured.commit) == "box-coder"


async def test_an_unchanged_tree_is_its_base(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    await clone.check_out(base, tmp_path / "tree")
    captured = await clone.capture(tmp_path / "tree", base, "x")
    assert (captured.commit, captured.changed_files) == (base, ())
    assert await clone.make_bundle(base, base) == b""


async def test_hooks_and_filters_that_an_agent_sets_in_its_repository_never_run(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    tree, trap = tmp_path / "tree", tmp_path / "trapped"
    await clone.check_out(base, tree)
    for name in ("filter.evil.clean", "core.fsmonitor", "diff.external"):
        await git(tree, "config", name, f"touch {trap}")
    (tree / ".gitattributes").write_text("* filter=evil\n")
    (tree / "a").write_text("2")
    captured = await clone.capture(tree, base, "x")
    await clone.diff(base, captured.commit)
    assert not trap.exists()


async def test_a_repository_inside_the_tree_is_refused_by_name(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    await clone.check_out(base, tmp_path / "tree")
    await repository(tmp_path / "tree" / "inner", {"x": "1"})
    with pytest.raises(GitFailed, match="inner"):
        await clone.capture(tmp_path / "tree", base, "x")


async def test_a_result_travels_by_bundle_to_another_clone(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    here, there = await clone_of(tmp_path / "r", tmp_path / "x"), await clone_of(tmp_path / "r", tmp_path / "y")
    await here.check_out(base, tmp_path / "tree")
    (tmp_path / "tree" / "a").write_text("2")
    captured = await here.capture(tmp_path / "tree", base, "x")
    assert not await there.has(captured.commit)
    await there.take_bundle(await here.make_bundle(base, captured.commit), captured.commit)
    assert await there.tree_of(captured.commit) == captured.tree


async def test_a_diff_for_people_has_names_as_they_are_and_finds_renames(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"größe.txt": "1\n2\n3\n", "old.txt": "a\nb\nc\nd\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    await clone.check_out(base, tmp_path / "tree")
    (tmp_path / "tree" / "größe.txt").write_text("1\n2\n4\n")
    (tmp_path / "tree" / "old.txt").rename(tmp_path / "tree" / "new.txt")
    captured = await clone.capture(tmp_path / "tree", base, "x")
    diff = (await clone.readable_diff(base, captured.commit)).decode()
    assert "diff --git a/größe.txt b/größe.txt\n" in diff
    assert "rename from old.txt\nrename to new.txt\n" in diff


def test_a_long_diff_is_cut_after_a_whole_line() -> None:
    line = b"+" + b"x" * 99 + b"\n"
    cut = bounded_diff(line * 20_000)
    assert len(cut) <= MAX_DIFF_BYTES < len(cut) + len(line)
    assert cut.endswith(b"x\n")
    assert bounded_diff(line) == line


async def test_a_bundle_without_the_named_commit_is_refused(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1"})
    second = await commit(tmp_path / "r", {"a": "2"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    body = await clone.make_bundle(base, second)
    with pytest.raises(GitFailed, match="does not hold"):
        await clone.take_bundle(body, "0" * 40)


async def changed(clone: Clone, base: str, place: Path, files: dict[str, str]) -> str:
    await clone.check_out(base, place)
    for name, content in files.items():
        (place / name).write_text(content)
    return (await clone.capture(place, base, "x")).commit


async def test_two_works_on_different_files_merge(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1\n", "b": "1\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    one = await changed(clone, base, tmp_path / "one", {"a": "2\n"})
    two = await changed(clone, base, tmp_path / "two", {"b": "2\n"})
    merged = await clone.merge(one, two, "both")
    assert merged.conflicts == ()
    assert {file.path for file in await clone.changed_files(base, merged.commit)} == {"a", "b"}


async def test_a_conflict_names_the_files_and_changes_nothing(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    one = await changed(clone, base, tmp_path / "one", {"a": "2\n"})
    two = await changed(clone, base, tmp_path / "two", {"a": "3\n"})
    merged = await clone.merge(one, two, "both")
    assert (merged.commit, merged.conflicts) == ("", ("a",))


async def test_work_on_the_accepted_commit_is_taken_as_it_is(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"a": "1\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    one = await changed(clone, base, tmp_path / "one", {"a": "2\n"})
    assert (await clone.merge(base, one, "s")).commit == one
    assert (await clone.merge(one, base, "s")).commit == one


async def test_uncommitted_changes_are_named_and_can_be_committed_aside(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    head = await repository(folder, {"a": "1"})
    (folder / "a").write_text("2")
    (folder / "new file").write_text("n")
    assert set(await uncommitted(folder)) == {"a", "new file"}
    aside = await commit_of_changes(folder)
    assert await text(folder, "rev-parse", "HEAD") == head
    assert set(await uncommitted(folder)) == {"a", "new file"}
    clone = await clone_of(folder, tmp_path)
    await clone.fetch_source(aside)
    assert await clone.tree_of(aside) == await tree_hash(folder)


async def test_what_is_left_out_may_be_ignored_by_git_in_any_part(tmp_path: Path) -> None:
    base = await repository(tmp_path / "r", {"src/a": "1\n", ".gitignore": "*.egg-info\nversion.py\n"})
    clone = await clone_of(tmp_path / "r", tmp_path)
    tree = tmp_path / "tree"
    await clone.check_out(base, tree)
    (tree / "src" / "a").write_text("2\n")
    made = ("src/x.egg-info/PKG-INFO", "src/version.py", "report.txt", "(top)odd", ":odd")
    (tree / "src" / "x.egg-info").mkdir()
    for path in made:
        (tree / path).write_text("made\n")
    captured = await clone.capture(tree, base, "box-coder", made)
    assert [file.path for file in captured.changed_files] == ["src/a"]
    assert await tree_hash(tree / "src", made) == captured.tree


async def test_a_program_of_an_agents_tree_is_not_taken_for_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await repository(tmp_path / "user", {"a": ""})
    clone = await clone_of(tmp_path / "user", tmp_path)
    tree = tmp_path / "tree"
    await clone.check_out(first, tree)
    (tree / "bin").mkdir()
    (tree / "bin" / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/outside\n")
    (tree / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"bin:.::{os.environ['PATH']}")
    captured = await clone.capture(tree, first, "box")
    assert [file.path for file in captured.changed_files] == ["bin/git"]
    assert not (tmp_path / "outside").exists()
    assert all(Path(entry).is_absolute() for entry in clean_environment({})["PATH"].split(os.pathsep))
    assert all(Path(entry).is_absolute() for entry in proof_environment(tmp_path)["PATH"].split(os.pathsep))


async def test_processes_that_clone_the_same_repository_at_once_share_the_first_clone(tmp_path: Path) -> None:
    first = await repository(tmp_path / "user", {"a": "1\n"})
    processes = [Clone(tmp_path / "private.git", tmp_path / "user") for _ in range(4)]
    await asyncio.gather(*(clone.prepare() for clone in processes))
    assert [await clone.has(first) for clone in processes] == [True] * 4
