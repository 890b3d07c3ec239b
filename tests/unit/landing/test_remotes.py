"""Real bare remotes, over the file protocol and over HTTP; never with force, never over what others pushed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pointsman._shared.git import GitFailed
from pointsman._shared.git import git as run_git
from pointsman.landing import target
from pointsman.landing.proposals import Proposals, push_own_branch
from pointsman.landing.steps import Step
from pointsman.landing.target import Blocked, Target
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryReply, EntryState, Way
from tests.helpers.git_http import git_over_http
from tests.unit.landing.queues import Killed, Scene, die_at, git, scene


@pytest.fixture(params=["file", "http"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    made = scene(tmp_path)
    served = tmp_path / "served"
    served.mkdir()
    git(served, "clone", "-q", "--bare", str(made.folder), "remote.git")
    git(served / "remote.git", "config", "http.receivepack", "true")
    git(served / "remote.git", "config", "core.logAllRefUpdates", "always")
    made.remote = "origin"
    if request.param == "file":
        git(made.folder, "remote", "add", "origin", str(served / "remote.git"))
        yield made
        return
    with git_over_http(served) as address:
        git(made.folder, "remote", "add", "origin", f"{address}/remote.git")
        yield made


def remote(there: Scene) -> Path:
    return there.root.parent / "served" / "remote.git"


async def test_entries_land_on_a_remote_and_somebody_elses_push_is_kept(there: Scene) -> None:
    entries = [there.enqueue(number, {f"f{number}": "x\n"}) for number in (1, 2)]
    other = there.root.parent / "other"

    def push() -> None:
        git(there.root.parent, "clone", "-q", str(remote(there)), str(other))
        (other / "theirs").write_text("y\n")
        git(other, "add", "-A")
        git(other, "commit", "-q", "-m", "theirs")
        git(other, "push", "-q", "origin", "HEAD:main")

    there.before_proof = [push]
    await there.settle()
    assert {there.status(entry) for entry in entries} == {EntryState.LANDED}
    assert {"f1", "f2", "theirs"} <= set(git(remote(there), "ls-tree", "--name-only", "main").splitlines())
    tips = git(remote(there), "reflog", "--format=%H", "refs/heads/main").splitlines()
    theirs = git(other, "rev-parse", "HEAD")
    assert set(tips) - {theirs} <= there.proven
    assert git(there.folder, "rev-parse", "main") != tips[0], "the user's own branch is not touched"


@pytest.mark.parametrize("step", [Step.CANDIDATE_REPORTED, Step.PUSHED])
async def test_killed_around_the_push_it_is_pushed_once(step: Step, there: Scene) -> None:
    entry = there.enqueue(1, {"f1": "x\n"})
    assert await there.settle(die_at(step)) == 1
    assert (there.status(entry), there.proofs) == (EntryState.LANDED, 1), "what is proven is not proven again"
    tips = git(remote(there), "reflog", "--format=%H", "refs/heads/main").splitlines()
    assert (len(tips), set(tips) <= there.proven) == (1, True)


async def test_a_recorded_candidate_is_not_pushed_over_what_came_in_between(there: Scene) -> None:
    entry = there.enqueue(1, {"f1": "x\n"})
    theirs = there.work(9, {"theirs": "y\n"})

    def die_and_move(reached: Step) -> None:
        if reached is Step.CANDIDATE_REPORTED and there.proofs == 1:
            git(remote(there), "fetch", "-q", str(there.folder), theirs)
            git(remote(there), "update-ref", "refs/heads/main", theirs)
            raise Killed

    assert await there.settle(die_and_move) == 1
    assert (there.status(entry), there.proofs) == (EntryState.LANDED, 2)
    assert {"f1", "theirs"} <= set(git(remote(there), "ls-tree", "--name-only", "main").splitlines())


async def test_a_commit_that_was_forced_out_of_the_target_comes_back_only_if_a_person_says_so(there: Scene) -> None:
    begin = git(there.folder, "rev-parse", "HEAD")
    leaked = there.work(8, {"secret": "x\n"})
    git(there.folder, "checkout", "-q", "--detach", leaked)
    entries = [there.enqueue(number, {f"f{number}": "x\n"}) for number in (1, 2)]
    git(remote(there), "fetch", "-q", str(there.folder), leaked)
    git(remote(there), "update-ref", "refs/heads/main", leaked)

    def set_back() -> None:
        git(remote(there), "update-ref", "refs/heads/main", begin)

    there.before_proof = [set_back]
    await there.settle()
    assert [there.status(entry) for entry in entries] == [EntryState.ASKED] * 2
    found = there.landing.entries[entries[0]].finding
    assert found is not None
    assert ("main does not hold" in found.text, f"{leaked[:7]} work 8" in found.text) == (True, True)
    assert git(remote(there), "rev-parse", "main") == begin, "what somebody forced is not forced back"
    there.landing.submit(commands.AnswerEntry(entries[0], EntryReply.APPROVE))
    await there.settle()
    assert [there.status(entry) for entry in entries] == [EntryState.LANDED, EntryState.ASKED]
    assert {"secret", "f1"} < set(git(remote(there), "ls-tree", "--name-only", "main").splitlines())


async def test_a_remote_that_refuses_by_a_hook_asks_a_person_with_its_words(there: Scene) -> None:
    hook = remote(there) / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    entry = there.enqueue(1, {"f1": "x\n"})
    await there.settle()
    found = there.landing.entries[entry].finding
    assert there.status(entry) is EntryState.ASKED
    assert found is not None
    assert "refuses to move main" in found.text


async def test_a_plain_remote_gets_a_branch_of_ours_and_a_merge_by_hand_is_seen(there: Scene) -> None:
    there.way = Way.PULL_REQUEST
    entry = there.enqueue(1, {"f1": "x\n"})
    integrator = there.integrator()
    await integrator.round(there.client)
    proposed = there.landing.shown(entry)
    assert there.status(entry) is EntryState.PROPOSED
    assert git(remote(there), "rev-parse", "pointsman/run_1") == proposed.proposal.head
    assert git(remote(there), "rev-list", "--count", "main") == "1", "the target waits for a person"
    await integrator.look(there.client)
    assert there.status(entry) is EntryState.PROPOSED
    git(remote(there), "update-ref", "refs/heads/main", proposed.proposal.head)
    await integrator.look(there.client)
    assert there.status(entry) is EntryState.LANDED


async def test_force_is_for_our_branches_and_only_over_what_was_seen(there: Scene) -> None:
    await there.integrator().prepare()
    clone = next((there.root / "repositories").iterdir())
    here = Target(clone, there.folder, "main", "origin")
    first, second = there.work(1, {"a": "1\n"}), there.work(2, {"a": "2\n"})
    for commit in (first, second):
        git(clone, "fetch", "-q", str(there.folder), commit)
        await push_own_branch(here, "pointsman/run_1", commit)
    assert git(remote(there), "rev-parse", "pointsman/run_1") == second
    with pytest.raises(AssertionError, match="not ours"):
        await push_own_branch(here, "main", first)
    assert await here.advance(await here.tip(), first)
    assert not await here.advance(first, second), "what is no fast-forward is refused by the remote"
    assert git(remote(there), "rev-parse", "main") == first


async def test_a_remote_that_is_not_there_asks_a_person(tmp_path: Path) -> None:
    there = scene(tmp_path)
    there.remote = "nowhere"
    entry = there.enqueue(1, {"f1": "x\n"})
    await there.settle()
    found = there.landing.entries[entry].finding
    assert found is not None
    assert "no remote 'nowhere'" in found.text
    with pytest.raises(Blocked):
        await Target(there.folder, there.folder, "no-such-branch").tip()


async def test_a_remote_that_is_away_for_a_moment_asks_nobody_and_one_that_stays_away_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = scene(tmp_path)
    there.remote = "origin"
    bare = tmp_path / "remote.git"
    git(tmp_path, "clone", "-q", "--bare", str(there.folder), str(bare))
    git(there.folder, "remote", "add", "origin", "http://127.0.0.1:1/remote.git")
    entry = there.enqueue(1, {"f1": "x\n"})
    monkeypatch.setattr(target, "PAUSES_SECONDS", (0.0, 0.0))
    await there.settle()
    found = there.landing.entries[entry].finding
    assert found is not None
    assert "See what `git fetch origin` says, repair it or `git remote set-url`, then answer `retry`" in found.text
    fetches: list[str] = []

    async def away_once(folder: Path, *arguments: str, **options: Any) -> bytes:
        if arguments[0] == "fetch":
            fetches.append(arguments[-1])
            if len(fetches) == 1:
                raise GitFailed("fetching commits failed (git fetch: Could not resolve host: forge)")
        return await run_git(folder, *arguments, **options)

    monkeypatch.setattr(target, "git", away_once)
    git(there.folder, "remote", "set-url", "origin", str(bare))
    there.landing.submit(commands.AnswerEntry(entry, EntryReply.RETRY))
    await there.settle()
    assert (there.status(entry), len(fetches) > 1) == (EntryState.LANDED, True)


async def test_a_token_that_others_can_read_is_not_used_and_a_person_is_asked(tmp_path: Path) -> None:
    there = scene(tmp_path)
    there.remote = "origin"
    git(there.folder, "remote", "add", "origin", "https://github.com/o/r.git")
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    there.proposals = Proposals(there.folder, {"POINTSMAN_FORGE_TOKEN_FILE": str(token)})
    entry = there.enqueue(1, {"f1": "x\n"})
    await there.settle()
    found = there.landing.entries[entry].finding
    assert found is not None
    assert (there.status(entry), "can be read by others" in found.text) == (EntryState.ASKED, True)
