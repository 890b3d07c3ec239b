"""Conflicts that are seen before work is handed in: live trees of runs, tried against each other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.assignment_pb2 import Assignment
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.landing.prediction import predict
from pointsman.worker import snapshots
from pointsman.worker.git import Clone
from tests.helpers.eventually import eventually
from tests.unit.landing.queues import git, scene

LINES = "".join(f"line {number}\n" for number in range(20))


class Kept:
    """The trees that were sent, and what was predicted from them."""

    def __init__(self) -> None:
        self.trees: dict[str, pb.Snapshot] = {}
        self.told: list[pb.Prediction] = []
        self.puts = 0

    async def put_snapshot(self, agent_id: str, lease: Any, _repository_id: str, snapshot: pb.Snapshot) -> None:
        self.puts += 1
        kept = pb.Snapshot()
        kept.CopyFrom(snapshot)
        kept.run_id = agent_id
        self.trees[agent_id] = kept

    async def snapshots(self, _repository_id: str) -> list[pb.Snapshot]:
        return list(self.trees.values())

    async def put_predictions(self, _repository_id: str, predictions: list[pb.Prediction]) -> None:
        self.told = predictions


class Coders:
    """Coders at work on one repository, each in a tree of its own."""

    def __init__(self, tmp_path: Path) -> None:
        there = scene(tmp_path, {"a.txt": LINES, "b.txt": LINES})
        self.base, self.root, self.kept = git(there.folder, "rev-parse", "HEAD"), tmp_path, Kept()
        self.clone = Clone(tmp_path / "coders.git", there.folder, tmp_path / "scratch")
        self.integrator = Clone(tmp_path / "integrator.git", there.folder, tmp_path / "scratch")

    async def start(self, run_id: str) -> tuple[Any, Path]:
        await self.clone.prepare()
        await self.integrator.prepare()
        tree = self.root / run_id
        await self.clone.check_out(self.base, tree)
        assignment = Assignment(id=f"{run_id}.a1", repository=Repository(id="repository", base_commit=self.base))
        client = SimpleNamespace(landing=self.kept)
        return SimpleNamespace(client=client, agent_id=run_id, key=None, assignment=assignment), tree

    async def send(self, job: Any, tree: Path, sent: str = "") -> str:
        return await snapshots.send_snapshot(job, self.clone, tree, ("made",), sent)

    async def predicted(self) -> list[tuple[str, str, list[str]]]:
        client: Any = SimpleNamespace(landing=self.kept)
        await predict(client, self.integrator, "repository")
        return [(one.run_id, one.other_run_id, list(one.files)) for one in self.kept.told]


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
    for job, tree in ((first, one), (second, two), (third, three)):
        (tree / "made").write_text(job.agent_id)
        await coders.send(job, tree)
    assert await coders.predicted() == [("run_1", "run_2", ["a.txt"])]
    (two / "a.txt").write_text(LINES)
    await coders.send(second, two)
    (two / "b.txt").write_text(LINES.replace("line 5\n", "b\n"))
    await coders.send(second, two)
    assert await coders.predicted() == [], "what was undone is not predicted any more"


async def test_a_tree_is_sent_when_it_has_changed_and_not_when_it_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coders = Coders(tmp_path)
    job, tree = await coders.start("run_1")
    (tree / "a.txt").write_text("new\n")
    sent = await coders.send(job, tree)
    assert (await coders.send(job, tree, sent), coders.kept.puts) == (sent, 1)
    monkeypatch.setattr(snapshots, "MAX_BUNDLE_BYTES", 10)
    (tree / "a.txt").write_text("newer\n")
    await coders.send(job, tree, sent)
    assert coders.kept.puts == 1


async def test_trees_are_sent_while_an_agent_works_and_no_longer(tmp_path: Path) -> None:
    coders = Coders(tmp_path)
    job, tree = await coders.start("run_1")
    (tree / "a.txt").write_text("new\n")

    async def was_sent() -> bool:
        return coders.kept.puts > 0

    async with snapshots.snapshots_sent(job, coders.clone, tree, (), 0.01):
        await eventually(was_sent, 20)
    async with snapshots.snapshots_sent(job, None, tree, (), 0.0):
        pass
    assert coders.kept.puts == 1
