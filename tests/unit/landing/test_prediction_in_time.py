"""Fifty tasks of one to two minutes, three in ten of which meet: how many conflicts are named before the hand-in."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.landing.integrator import PREDICT_PAUSE_SECONDS
from pointsman.landing.prediction import Predictor
from pointsman.worker.git import Clone
from pointsman.worker.snapshots import PAUSE_SECONDS
from tests.unit.landing.live_trees import LiveTrees
from tests.unit.landing.queues import Scene, chance, git, scene

TASKS = 50
SHARED = "".join(f"line {number}\n" for number in range(10))
pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True, slots=True)
class Script:
    """A coder: when it begins, writes and hands in, in seconds, and what it writes."""

    number: int
    begins: int
    writes: int
    hands_in: int
    files: dict[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return f"run_{self.number}"

    def sends_at(self) -> float:
        """When its worker looks at the tree for the first time after it was written; at the hand-in at the latest."""
        looks = -(-(self.writes - self.begins) // PAUSE_SECONDS)
        return min(self.begins + looks * PAUSE_SECONDS, self.hands_in)


def scripts() -> Iterator[Script]:
    """Work of 60 to 120 s that is written at any time of it; three in ten change the first line of one file."""
    for number in range(1, TASKS + 1):
        begins, lasts = chance("begin", number, 60), 60 + chance("last", number, 60)
        writes = begins + chance("write", number, lasts)
        shared = {"shared.txt": SHARED.replace("line 0\n", f"said by {number}\n")}
        own = {f"own/{number}.txt": f"{number}\n"}
        yield Script(number, begins, writes, begins + lasts, shared if chance("overlap", number, 10) < 3 else own)


def snapshot_of(there: Scene, script: Script, base: str) -> pb.Snapshot:
    commit = there.work(script.number, script.files, base)
    bundle = subprocess.run(
        ["git", "bundle", "create", "-q", "-", f"{base}..pointsman/{script.run_id}"],
        cwd=there.folder, check=True, capture_output=True,
    )  # fmt: skip
    return pb.Snapshot(base_commit=base, commit=commit, bundle=bundle.stdout, task_id="T1")


async def test_nine_in_ten_conflicts_are_named_before_the_second_of_both_hands_in(tmp_path: Path) -> None:
    there, trees = scene(tmp_path, {"shared.txt": SHARED}), LiveTrees()
    base = git(there.folder, "rev-parse", "HEAD")
    clone = Clone(tmp_path / "integrator.git", there.folder, tmp_path / "scratch")
    await clone.prepare()
    predictor, coders = Predictor(clone, "repository"), list(scripts())
    by_run = {coder.run_id: coder for coder in coders}
    named: dict[frozenset[str], float] = {}
    for at in sorted({coder.sends_at() for coder in coders}):
        for coder in coders:
            if coder.sends_at() == at:
                trees.put(coder.run_id, snapshot_of(there, coder, base))
        await predictor.predict(trees.client)
        for one, other, _files in trees.pairs():
            named.setdefault(frozenset((one, other)), at + PREDICT_PAUSE_SECONDS)
    meeting = [coder for coder in coders if "shared.txt" in coder.files]
    pairs = [frozenset((one.run_id, other.run_id)) for one in meeting for other in meeting if one.number < other.number]
    in_time = [pair for pair in pairs if named.get(pair, 1e9) < max(by_run[run_id].hands_in for run_id in pair)]
    assert set(named) == set(pairs), "each conflict is named in the end, and nothing else is"
    assert len(meeting) >= 0.25 * TASKS
    assert len(in_time) / len(pairs) >= 0.9
