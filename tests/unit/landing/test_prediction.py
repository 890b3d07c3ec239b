"""Conflicts that are seen before work is handed in: live trees of runs, tried against each other."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from pointsman.api.handoff.v1.handoff_pb2 import MasterTask
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.assignment_pb2 import Assignment
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.landing.prediction import Predictor, conflicts_of
from pointsman.landing.touched import Touched, touched_by
from pointsman.worker import snapshots
from pointsman.worker.git import Clone
from tests.helpers.eventually import eventually
from tests.unit.landing.live_trees import LiveTrees
from tests.unit.landing.queues import git, scene

LINES = "".join(f"line {number}\n" for number in range(20))


class Coders:
    """Coders at work on one repository, each in a tree of its own."""

    def __init__(self, tmp_path: Path) -> None:
        there = scene(tmp_path, {"a.txt": LINES, "b.txt": LINES})
        self.base, self.root, self.kept = git(there.folder, "rev-parse", "HEAD"), tmp_path, LiveTrees()
        self.clone = Clone(tmp_path / "coders.git", there.folder, tmp_path / "scratch")
        self.integrator = Clone(tmp_path / "integrator.git", there.folder, tmp_path / "scratch")
        self.predictor = Predictor(self.integrator, "repository")
        self.declared: list[str] = []
        self.scene = there

    async def start(self, run_id: str) -> tuple[snapshots.Sender, Path]:
        await self.clone.prepare()
        await self.integrator.prepare()
        tree = self.root / run_id
        await self.clone.check_out(self.base, tree)
        assignment = Assignment(
            id=f"{run_id}.a1", task_id="T1", repository=Repository(id="repository", base_commit=self.base)
        )
        work = SimpleNamespace(handoff=SimpleNamespace(master_task=MasterTask(files=self.declared)))
        client = self.kept.client
        job = SimpleNamespace(client=client, agent_id=run_id, key=None, assignment=assignment, work=work)
        return snapshots.Sender(job, self.clone, tree, ("made",)), tree  # type: ignore[arg-type]

    async def predicted(self) -> list[tuple[str, str, list[str]]]:
        await self.predictor.predict(self.kept.client)
        return self.kept.pairs()


async def test_trees_that_change_the_same_lines_are_named_with_the_files_before_anything_is_handed_in(
    tmp_path: Path,
) -> None:
    coders = Coders(tmp_path)
    first, one = await coders.start("run_1")
    second, two = await coders.start("run_2")
    third, three = await coders.start("run_3")
    (one / "a.txt").write_text(LINES.replace("line 3\n", "uno\n"))
    (two / "a.txt").write_text(LINES.replace("line 3\n", "eins\n"))
    (three / "a.txt").write_text(LINES.replace("line 18\n", "elsewhere\n"))
    for sender, tree in ((first, one), (second, two), (third, three)):
        (tree / "made").write_text(str(tree))
        await sender.send(0.0)
    assert await coders.predicted() == [("run_1", "run_2", ["a.txt"])]
    (two / "a.txt").write_text(LINES)
    (two / "b.txt").write_text(LINES.replace("line 5\n", "b\n"))
    await second.send(1.0)
    assert await coders.predicted() == [], "what was undone is not predicted any more"
    assert coders.kept.sent_bundles == 4, "a tree is sent to the integrator once"
    refs = git(coders.integrator.path, "for-each-ref", "--format=%(objectname)", "refs/pointsman/trees").split()
    assert git(coders.clone.path, "for-each-ref", "refs/pointsman/results") == "", "the sender keeps none"
    assert sorted(refs) == sorted(one.commit for one in coders.kept.trees.values()), "older trees are dropped"


async def test_a_tree_is_sent_when_it_has_changed_or_before_it_counts_as_left_and_not_when_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coders = Coders(tmp_path)
    sender, tree = await coders.start("run_1")
    (tree / "a.txt").write_text("new\n")
    for now in (0.0, 5.0, 10.0):
        await sender.send(now)
    assert coders.kept.puts == 1
    await sender.send(snapshots.RENEW_SECONDS)
    assert coders.kept.puts == 2
    monkeypatch.setattr(snapshots, "MAX_BUNDLE_BYTES", 10)
    (tree / "a.txt").write_text("newer\n")
    await sender.send(snapshots.RENEW_SECONDS + 5)
    assert coders.kept.puts == 2


async def test_plans_that_name_the_same_files_are_predicted_at_the_claim_until_trees_say_more(tmp_path: Path) -> None:
    coders = Coders(tmp_path)
    coders.declared = ["*.txt", "src/"]
    first, one = await coders.start("run_1")
    coders.declared = ["a.txt"]
    second, two = await coders.start("run_2")
    coders.declared = ["docs/*.md"]
    third, _ = await coders.start("run_3")
    for sender in (first, second, third):
        await sender.claim()
    assert await coders.predicted() == [("run_1", "run_2", ["*.txt"])]
    assert coders.kept.stored[0].declared
    (one / "a.txt").write_text(LINES.replace("line 3\n", "uno\n"))
    (two / "a.txt").write_text(LINES.replace("line 15\n", "elsewhere\n"))
    for sender in (first, second):
        await sender.send(1.0)
    assert await coders.predicted() == [], "both have written, and their trees merge"


@pytest.mark.parametrize("state", [pb.ENTRY_STATE_QUEUED, pb.ENTRY_STATE_LANDED])
async def test_a_live_tree_is_tried_against_what_waits_or_has_landed_but_not_against_its_own_entry(
    state: pb.EntryState.ValueType, tmp_path: Path
) -> None:
    coders = Coders(tmp_path)
    commit = coders.scene.work(7, {"a.txt": LINES.replace("line 3\n", "drei\n")})
    link = pb.LinkedRun(run_id="run_9")
    landed = commit if state == pb.ENTRY_STATE_LANDED else ""
    coders.kept.entries = [
        pb.Entry(
            run_id="run_7", base_commit=coders.base, commit=commit, links=[link], state=state, landed_commit=landed
        )
    ]
    for run_id in ("run_1", "run_7", "run_9"):
        sender, tree = await coders.start(run_id)
        (tree / "a.txt").write_text(LINES.replace("line 3\n", f"{run_id}\n"))
        await sender.send(0.0)
    found = {tuple(sorted((one, other))) for one, other, _ in await coders.predicted()}
    assert ("run_1", "run_7") in found
    of_entry = [one for one in coders.kept.stored if not one.other_task_id and one.other_run_id == "run_7"]
    assert {one.run_id for one in of_entry} == {"run_1"}, "its own run and its linked run are the same work"
    for entry in coders.kept.entries:
        entry.landed_commit = coders.base
    await coders.predicted()
    assert [one for one in coders.kept.stored if not one.other_task_id] == [], "who begins after it knows it"


async def test_trees_are_sent_while_an_agent_works_and_once_more_at_its_end(tmp_path: Path) -> None:
    coders = Coders(tmp_path)
    sender, tree = await coders.start("run_1")
    (tree / "a.txt").write_text("new\n")

    async def was_sent() -> bool:
        return any(one.bundle for one in coders.kept.trees.values())

    async with snapshots.snapshots_sent(sender.job, coders.clone, tree, (), 0.01):
        await eventually(was_sent, 20)
    before = coders.kept.trees["run_1"].commit
    async with snapshots.snapshots_sent(sender.job, coders.clone, tree, (), 3600.0):
        (tree / "a.txt").write_text("the last word\n")
    assert coders.kept.trees["run_1"].commit != before, "as it is at the end"
    puts = coders.kept.puts
    async with snapshots.snapshots_sent(sender.job, None, tree, (), 0.0):
        pass
    assert coders.kept.puts == puts


KINDS = {
    "the same file": ({"d/f"}, {"d/f"}, True),
    "another file of a folder": ({"d/f"}, {"d/g"}, False),
    "a file where the other adds a folder": ({"new"}, {"new/f"}, True),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_pairs_that_cannot_conflict_are_left_out(kind: str, tmp_path: Path) -> None:
    one, other, meet = KINDS[kind]
    there = scene(tmp_path, {"README": "x\n"})
    base = git(there.folder, "rev-parse", "HEAD")
    sides = [there.work(number, dict.fromkeys(files, f"{number}\n")) for number, files in ((1, one), (2, other))]
    touched = [await touched_by(there.folder, base, commit) for commit in sides]
    assert (touched[0].meets(touched[1]), touched[1].meets(touched[0])) == (meet, meet)
    assert bool(await conflicts_of(there.folder, *sides)) <= meet


async def test_a_folder_that_moved_away_under_a_new_file_is_not_left_out() -> None:
    moved = Touched(frozenset({"old/f", "new/f"}), frozenset({"new"}), frozenset({"old"}))
    added = Touched(frozenset({"old/g"}), frozenset({"old"}))
    assert (moved.meets(added), added.meets(moved)) == (True, True)
