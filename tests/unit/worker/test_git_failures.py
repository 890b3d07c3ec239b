"""What a person reads when git fails: what happened and what to do, never an exit code alone."""

from pathlib import Path

import pytest

from pointsman._shared import git as git_module
from pointsman._shared.git_failures import NOT_INSTALLED, explain_failure
from pointsman.worker.git import Clone, GitFailed, git, text
from tests.unit.worker.repositories import clone_of, commit, repository

GONE = "0123456789" * 4


async def unrelated(folder: Path) -> str:
    """A commit with a history of its own in the same repository."""
    await git(folder, "checkout", "-q", "--orphan", "other")
    return await commit(folder, {"b": "2\n"})


async def test_work_without_common_history_is_refused_in_words(tmp_path: Path) -> None:
    ours = await repository(tmp_path / "user", {"a": "1\n"})
    theirs = await unrelated(tmp_path / "user")
    clone = await clone_of(tmp_path / "user", tmp_path)
    with pytest.raises(GitFailed) as raised:
        await clone.merge(ours, theirs, "accept T1")
    assert "has no commit in common with what is accepted so far" in str(raised.value)
    assert "build on the commit that it was given" in str(raised.value)
    assert "exit code" not in str(raised.value)


async def test_a_bundle_whose_base_is_missing_says_what_to_fetch(tmp_path: Path) -> None:
    base = await repository(tmp_path / "user", {"a": "1\n"})
    made = await commit(tmp_path / "user", {"a": "2\n"})
    bundle = await (await clone_of(tmp_path / "user", tmp_path)).make_bundle(base, made)
    await repository(tmp_path / "stranger", {"c": "3\n"})
    clone = Clone(tmp_path / "other.git", tmp_path / "stranger")
    await clone.prepare()
    with pytest.raises(GitFailed, match="builds on a commit that is not in this repository; go to the one that"):
        await clone.take_bundle(bundle, made)


async def test_a_commit_that_is_nowhere_says_so(tmp_path: Path) -> None:
    await repository(tmp_path / "user", {"a": "1\n"})
    clone = await clone_of(tmp_path / "user", tmp_path)
    with pytest.raises(GitFailed, match="the commit is not in the repository; fetch or push it there first"):
        await clone.fetch_source(GONE)


async def test_a_repository_that_was_moved_is_named_so(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="copying the repository failed: the repository has been moved or removed"):
        await Clone(tmp_path / "private.git", tmp_path / "gone").prepare()


async def test_a_machine_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFailed) as raised:
        await text(tmp_path, "status")
    assert str(raised.value) == NOT_INSTALLED


async def test_a_git_that_takes_too_long_is_stopped_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await repository(tmp_path / "user", {"a": "1\n"})
    monkeypatch.setattr(git_module, "TIME_LIMIT_SECONDS", 0.0)
    with pytest.raises(GitFailed, match="looking for uncommitted changes took longer than 0 s and was stopped"):
        await git(tmp_path / "user", "status")


def test_a_failure_without_a_word_still_says_what_was_tried() -> None:
    told = explain_failure(("-c", "a=b", "merge-base", "x", "y"), 1, "")
    assert told == "looking for a common commit failed, and git did not say why (git merge-base, exit code 1)"
