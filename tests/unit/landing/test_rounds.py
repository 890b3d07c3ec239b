"""Landing on real repositories: batches, bisecting, conflicts, moved bases, kills at every step."""

from pathlib import Path

import pytest

from pointsman.landing.steps import Step
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryReply, EntryState
from pointsman.services.orchestrator.domain.landing.model import Work
from tests.unit.landing.queues import Scene, die_at, git, scene

LANDING_STEPS = (
    Step.TAKEN, Step.FETCHED, Step.PLACED, Step.PROVED, Step.CANDIDATE_REPORTED, Step.PUSHED, Step.LANDED_REPORTED,
)  # fmt: skip


LONG = "".join(f"line {number}\n" for number in range(40))


def files_of(there: Scene, ref: str = "main") -> list[str]:
    return git(there.folder, "ls-tree", "-r", "--name-only", ref).splitlines()


def proven_tips(there: Scene) -> bool:
    """Whether every tip but the first was proven."""
    return set(there.tips()[:-1]) <= there.proven


async def test_independent_entries_are_proven_together_and_land_with_one_move(tmp_path: Path) -> None:
    there = scene(tmp_path)
    entries = [there.enqueue(number, {f"f{number}": "x\n"}) for number in range(1, 6)]
    await there.settle()
    assert {there.status(entry) for entry in entries} == {EntryState.LANDED}
    assert (there.proofs, len(there.tips())) == (1, 2)
    assert files_of(there) == ["README", *(f"f{number}" for number in range(1, 6))]
    assert proven_tips(there)


async def test_a_batch_that_fails_is_bisected_and_only_the_guilty_entry_waits(tmp_path: Path) -> None:
    there = scene(tmp_path)
    there.refused = {"f3"}
    entries = [there.enqueue(number, {f"f{number}": "x\n"}) for number in range(1, 8)]
    await there.settle()
    expected = [EntryState.WAITING if entry == "entry_003" else EntryState.LANDED for entry in entries]
    assert [there.status(entry) for entry in entries] == expected
    assert "f3" not in files_of(there)
    assert proven_tips(there)
    ((entry_id, link),) = there.landing.started
    assert (entry_id, "broken by" in link.intent) == ("entry_003", True)
    assert git(there.folder, "cat-file", "-t", link.base_commit) == "commit", "a linked run can start from it"


async def test_two_that_change_the_same_lines_meet_in_the_queue_and_the_second_learns_of_the_first(
    tmp_path: Path,
) -> None:
    there = scene(tmp_path, {"a.txt": "one\n"})
    first = there.enqueue(1, {"a.txt": "uno\n"})
    second = there.enqueue(2, {"a.txt": "eins\n"})
    await there.settle()
    assert (there.status(first), there.status(second)) == (EntryState.LANDED, EntryState.WAITING)
    found = there.landing.entries[second].finding
    assert found is not None
    assert (found.kind, found.files, found.other_run_ids) == (EntryEvent.CONFLICTED, ("a.txt",), ("run_1",))
    for words in ("uno", "eins", "task of run_1", "run_1 does what it should", "+eins"):
        assert words in found.text
    assert found.base == git(there.folder, "rev-parse", "main")
    assert git(there.folder, "rev-parse", "pointsman/run_2"), "the branch of the work stays"


async def test_the_work_of_a_linked_run_lands_in_the_entry_that_it_was_started_for(tmp_path: Path) -> None:
    there = scene(tmp_path, {"a.txt": "one\n"})
    there.enqueue(1, {"a.txt": "uno\n"})
    second = there.enqueue(2, {"a.txt": "eins\n"})
    await there.settle()
    link = there.landing.started[0][1]
    refs = ("for-each-ref", "--format=%(refname)", "refs/pointsman")
    assert git(there.folder, *refs) == f"refs/pointsman/landing/{second}", "its base is there for the linked run"
    commit = there.work(3, {"a.txt": "uno\neins\n"}, link.base_commit)
    there.landing.submit(commands.LinkStarted(second, "run_3"))
    there.landing.submit(commands.LinkEnded(second, "run_3", "COMPLETE", Work("run_3", link.base_commit, commit)))
    await there.settle()
    assert there.status(second) is EntryState.LANDED
    assert git(there.folder, "show", "main:a.txt") == "uno\neins"
    assert git(there.folder, *refs) == "", "and gone once it has landed; the branches stay"
    assert git(there.folder, "rev-parse", "pointsman/run_3") == commit
    assert proven_tips(there)


async def test_a_target_that_somebody_moved_is_proven_again_and_nothing_of_theirs_is_lost(tmp_path: Path) -> None:
    there = scene(tmp_path)
    entry = there.enqueue(1, {"f1": "x\n"})

    def move() -> None:
        git(there.folder, "update-ref", "refs/heads/main", there.work(9, {"theirs": "y\n"}))

    there.before_proof = [move]
    await there.settle()
    assert there.status(entry) is EntryState.LANDED
    assert there.proofs == 2
    assert {"f1", "theirs"} <= set(files_of(there))
    assert there.landing.events.count((entry, "base_moved")) == 1


@pytest.mark.parametrize("step", LANDING_STEPS)
@pytest.mark.parametrize("times", [1, 2])
async def test_killed_at_any_step_everything_lands_once_and_nothing_unproven(
    step: Step, times: int, tmp_path: Path
) -> None:
    there = scene(tmp_path, {"long.txt": LONG})
    entries = [there.enqueue(number, {f"f{number}": "x\n"}) for number in (1, 2)]
    entries.append(there.enqueue(3, {"long.txt": f"top\n{LONG}"}))
    entries.append(there.enqueue(4, {"long.txt": f"{LONG}end\n"}))
    loser = there.enqueue(5, {"f1": "other\n", "g": "z\n"})
    killed = await there.settle(die_at(step, times))
    assert killed == (0 if (step, times) == (Step.TAKEN, 2) else 1)
    assert {there.status(entry) for entry in entries} == {EntryState.LANDED}
    assert there.status(loser) is EntryState.WAITING
    assert proven_tips(there)
    bodies = git(there.folder, "log", "--format=%b", "main")
    assert max(bodies.count(f"Pointsman-Entry: {entry}") for entry in entries) == 1
    assert sorted(name for name, event in there.landing.events if event == "landed") == entries


async def test_what_the_proof_asks_is_asked_and_lands_once_a_person_approves(tmp_path: Path) -> None:
    there = scene(tmp_path)
    there.asks = {"test_x"}
    entry = there.enqueue(1, {"test_x": "changed\n"})
    await there.settle()
    assert there.status(entry) is EntryState.ASKED
    there.landing.submit(commands.AnswerEntry(entry, EntryReply.APPROVE))
    await there.settle()
    assert there.status(entry) is EntryState.LANDED


async def test_a_branch_that_is_checked_out_moves_with_its_clean_tree_and_not_with_a_dirty_one(tmp_path: Path) -> None:
    there = scene(tmp_path)
    git(there.folder, "checkout", "-q", "main")
    first = there.enqueue(1, {"f1": "x\n"})
    await there.settle()
    assert (there.status(first), (there.folder / "f1").read_text()) == (EntryState.LANDED, "x\n")
    assert git(there.folder, "status", "--porcelain") == ""
    (there.folder / "README").write_text("my own words\n")
    second = there.enqueue(2, {"f2": "x\n"})
    await there.settle()
    found = there.landing.entries[second].finding
    assert there.status(second) is EntryState.ASKED
    assert found is not None
    assert "uncommitted changes" in found.text
    assert (there.folder / "README").read_text() == "my own words\n"
    git(there.folder, "stash", "-q")
    there.landing.submit(commands.AnswerEntry(second, EntryReply.RETRY))
    await there.settle()
    assert there.status(second) is EntryState.LANDED


async def test_squashed_work_is_one_commit_that_tells_task_claims_and_trailers(tmp_path: Path) -> None:
    there = scene(tmp_path)
    there.squash = True
    entry = there.enqueue(1, {"f1": "x\n"})
    await there.settle()
    assert git(there.folder, "rev-list", "--count", "main") == "2"
    message = git(there.folder, "log", "-1", "--format=%B", "main")
    assert message.splitlines()[0] == "Do task 1"
    for line in (
        "- run_1 does what it should (T1, UNSPECIFIED)",
        "Pointsman-Run: run_1",
        "Pointsman-Task: T1",
        f"Pointsman-Entry: {entry}",
        "Co-authored-by: ada <pointsman@localhost>",
    ):
        assert line in message.splitlines()


async def test_work_that_is_in_the_target_already_is_merged_and_not_landed_again(tmp_path: Path) -> None:
    there = scene(tmp_path)
    entry = there.enqueue(1, {"f1": "x\n"})
    git(there.folder, "update-ref", "refs/heads/main", "pointsman/run_1")
    await there.settle()
    assert (there.status(entry), there.proofs) == (EntryState.LANDED, 0)
    assert there.landing.events[-1] == (entry, "merged")


async def test_a_remote_that_nobody_named_is_not_touched(tmp_path: Path) -> None:
    there = scene(tmp_path)
    git(tmp_path, "clone", "-q", "--bare", str(there.folder), "remote.git")
    git(there.folder, "remote", "add", "origin", str(tmp_path / "remote.git"))
    entry = there.enqueue(1, {"f1": "x\n"}, remote="origin")
    await there.settle()
    found = there.landing.entries[entry].finding
    assert (there.status(entry), found is not None and "nothing allows a push" in found.text) == (
        EntryState.ASKED,
        True,
    )
    assert git(tmp_path / "remote.git", "rev-list", "--count", "main") == "1"
