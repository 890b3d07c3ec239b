"""Fifty branches, three in ten of which overlap, with kills in between: none lost, no unproven tip, nothing twice."""

from pathlib import Path

import pytest

from pointsman.landing.steps import Step
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryState
from pointsman.services.orchestrator.domain.landing.model import Work
from tests.unit.landing.queues import Killed, Scene, chance, git, scene

BRANCHES = 50
SHARED = "".join(f"line {number}\n" for number in range(10))
pytestmark = pytest.mark.timeout(180)


def dies_by_chance(seed: str) -> object:
    """Kills the integrator at about one step in twelve."""
    steps = 0

    def reach(_step: Step) -> None:
        nonlocal steps
        steps += 1
        if chance(seed, steps, 12) == 0:
            raise Killed

    return reach


def work_of(number: int) -> dict[str, str]:
    """The files of a branch: of its own, or, for three in ten, the first line of one that others change too."""
    if chance("overlap", number, 10) < 3:
        return {"shared.txt": SHARED.replace("line 0\n", f"line 0, said by {number}\n")}
    return {f"own/{number}.txt": f"{number}\n"}


def resolve(there: Scene, entry_id: str, number: int) -> None:
    """What a linked run hands in: the entry's line beside those that are there."""
    started = [link for name, link in there.landing.started if name == entry_id]
    link = started[-1]
    before = git(there.folder, "show", f"{link.base_commit}:shared.txt")
    run_id = f"run_{1000 + number * 10 + len(started)}"
    commit = there.work(
        1000 + number * 10 + len(started), {"shared.txt": f"{before}\nsaid by {number}\n"}, link.base_commit
    )
    there.landing.submit(commands.LinkStarted(entry_id, run_id))
    there.landing.submit(commands.LinkEnded(entry_id, run_id, "COMPLETE", Work(run_id, link.base_commit, commit)))


async def test_fifty_branches_land_or_ask_and_every_tip_was_proven(tmp_path: Path) -> None:
    there = scene(tmp_path, {"shared.txt": SHARED})
    entries = {there.enqueue(number, work_of(number)): number for number in range(1, BRANCHES + 1)}
    overlapping = [entry for entry, number in entries.items() if "shared.txt" in work_of(number)]
    assert len(overlapping) >= 0.25 * BRANCHES
    reach, killed = dies_by_chance("kills"), 0
    for _ in range(4):
        killed += await there.settle(reach)
        for entry_id, number in entries.items():
            if there.status(entry_id) is EntryState.WAITING:
                resolve(there, entry_id, number)
                killed += await there.settle(reach)
    ends = {entry: there.status(entry) for entry in entries}
    assert set(ends.values()) <= {EntryState.LANDED, EntryState.ASKED}
    assert killed >= 5
    assert set(there.tips()[:-1]) <= there.proven
    whole = git(there.folder, "ls-tree", "-r", "--name-only", "main").splitlines()
    said = git(there.folder, "show", "main:shared.txt")
    for entry, number in entries.items():
        if ends[entry] is EntryState.LANDED and entry not in overlapping:
            assert f"own/{number}.txt" in whole
        elif ends[entry] is EntryState.LANDED:
            assert f"said by {number}\n" in f"{said}\n"
        assert git(there.folder, "rev-parse", f"pointsman/run_{number}"), "the branch of the work stays"
    bodies = git(there.folder, "log", "--format=%b", "main")
    assert all(bodies.count(f"Pointsman-Entry: {entry}\n") <= 1 for entry in entries)
    events = there.landing.events
    assert all(
        events.count((entry, "landed")) + events.count((entry, "merged")) == (end is EntryState.LANDED)
        for entry, end in ends.items()
    )
