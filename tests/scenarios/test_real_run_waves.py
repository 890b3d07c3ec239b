"""Plans of several tasks on two machines: work travels by bundle, conflicts are reported and repaired, nothing is lost."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1.assignment_pb2 import Capability
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.delivery_branch import NotDelivered, put_on_branch
from pointsman.cli.session.workers import profile_for, worker_running
from pointsman.client import Again, Client, Order
from pointsman.worker import CommandAgent, Job, Surveyor, Verifier, Worker, Workspace
from pointsman.worker.git import git, text
from tests.scenarios.scripted import PASS
from tests.unit.worker.repositories import repository

AGENT = Path(__file__).parent / "agents" / "appender.py"
FILES = {"Makefile": "check:\n\t@test -f log\n", "log": "start\n", "other": "start\n", ".gitignore": "__pycache__/\n"}
pytestmark = pytest.mark.timeout(150)


@dataclass(frozen=True, slots=True)
class World:
    """A control plane, the user's repository, and its id."""

    client: Client
    folder: Path
    base: str


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    base = await repository(tmp_path / "user", FILES)
    async with control_plane() as plane:
        yield World(Client(plane.channels["orchestrator"]), tmp_path / "user", base)


def planned(*tasks: tuple[str, str, tuple[str, ...]]) -> work.Plan:
    """A plan of tasks (id, file, what it depends on), each proven by the repository's own check."""
    return work.Plan(
        tasks=[
            work.PlanTask(
                id=task_id,
                name=f"append {task_id}",
                actions=["append"],
                files=[path] if path else [],
                depends=depends,
                acceptance_criteria=[
                    handoff.AcceptanceCriterion(
                        id=f"{task_id}-C1",
                        statement="the check passes",
                        verify_command=["make", "check"],
                        required=True,
                    )
                ],
            )
            for task_id, path, depends in tasks
        ],
        confidence=0.9,
    )


async def run_to_end(
    world: World, plan: work.Plan, place: Path, earlier: str = "", *, reviewed: bool = False
) -> list[Transition]:
    """Submit, or do an earlier run again from its second wave, with coder and verifier as on two machines."""
    first, second = (Workspace(place / name, {world.base: world.folder}) for name in ("first", "second"))
    coder, verifier = Worker("first", [world.base], capacity=2), Worker("second", [world.base])
    profile = profile_for("", shlex.join((sys.executable, "-I", str(AGENT))))
    assert profile is not None
    coder.coder(CommandAgent(first, profile).work)
    verifier.verifier(Verifier(second).verify)
    verifier.researcher(Surveyor(second).research)

    @verifier.planner
    def make_plan(_job: Job) -> work.Plan:
        return plan

    if reviewed:
        coder.reviewer(lambda _job: PASS)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker_running(world.client, coder))
        await stack.enter_async_context(worker_running(world.client, verifier))
        order = Order("append to the log", Repository(id=world.base, base_commit=world.base), as_action=True)
        if earlier:
            run_id = (await world.client.runs.rerun(earlier, Again(wave=2))).id
        else:
            run_id = (await world.client.runs.submit(order)).run.id
        return [transition async for transition in world.client.runs.watch(run_id)]


async def delivered(world: World, journal: list[Transition], path: str) -> str:
    run_id = journal[-1].entity_id
    await put_on_branch(world.client, run_id, world.folder, "result")
    return await text(world.folder, "show", f"result:{path}")


def rejections(journal: list[Transition]) -> list[str]:
    judged = [json.loads(row.payload_json) for row in journal if row.event == "task_judged"]
    return [judgement["reason"] for judgement in judged if judgement["accepted"] is False]


async def test_a_dependant_starts_from_the_accepted_work_of_another_machine(world: World, tmp_path: Path) -> None:
    plan = planned(("T1", "log", ()), ("T2", "log", ("T1",)))
    journal = await run_to_end(world, plan, tmp_path)
    assert journal[-1].to_state == "COMPLETE", journal[-1]
    assert await delivered(world, journal, "log") == "start\nappend T1\nappend T2"
    assert rejections(journal) == []


async def test_a_run_from_the_second_wave_on_works_on_what_the_first_wave_had_accepted(
    world: World, tmp_path: Path
) -> None:
    plan = planned(("T1", "log", ()), ("T2", "log", ("T1",)))
    first = await run_to_end(world, plan, tmp_path / "one")
    journal = await run_to_end(world, work.Plan(), tmp_path / "two", first[-1].entity_id)
    assert journal[-1].to_state == "COMPLETE", journal[-1]
    done = [list(row.run.wave_claimed.task_ids) for row in journal if row.event == "wave_claimed"]
    assert done == [["T2"]]
    assert await delivered(world, journal, "log") == "start\nappend T1\nappend T2"


async def test_parallel_tasks_on_different_files_are_merged(world: World, tmp_path: Path) -> None:
    journal = await run_to_end(world, planned(("T1", "log", ()), ("T2", "other", ())), tmp_path)
    assert journal[-1].to_state == "COMPLETE", journal[-1]
    assert await delivered(world, journal, "log") == "start\nappend T1"
    assert await text(world.folder, "show", "result:other") == "start\nappend T2"


async def test_three_reviewed_tasks_without_a_failure_start_each_coder_and_reviewer_once(
    world: World, tmp_path: Path
) -> None:
    plan = planned(("T1", "log", ()), ("T2", "other", ()), ("T3", "log", ("T1",)))
    journal = await run_to_end(world, plan, tmp_path, reviewed=True)
    assert journal[-1].to_state == "COMPLETE", journal[-1]
    made = [one async for one in world.client.agents.assignments(journal[-1].entity_id)]
    starts = Counter(
        Capability.Name(one.capability).removeprefix("CAPABILITY_") for one in made for _ in range(one.attempt)
    )
    del starts["VERIFY"]
    assert starts == {"PLAN": 1, "RESEARCH": 1, "CODE": 3, "REVIEW": 3}


async def test_a_conflict_is_reported_and_the_later_task_is_done_again_on_the_accepted_work(
    world: World, tmp_path: Path
) -> None:
    journal = await run_to_end(world, planned(("T1", "", ()), ("T2", "", ())), tmp_path)
    assert journal[-1].to_state == "COMPLETE", journal[-1]
    assert len(rejections(journal)) == 1
    assert "conflict in log" in rejections(journal)[0]
    assert await delivered(world, journal, "log") == "start\nappend T1\nappend T2"


async def test_tasks_on_the_same_file_are_done_one_after_the_other(world: World, tmp_path: Path) -> None:
    journal = await run_to_end(world, planned(("T1", "log", ()), ("T2", "log", ())), tmp_path)
    assert journal[-1].to_state == "COMPLETE", journal[-1]
    assert rejections(journal) == []
    assert await delivered(world, journal, "log") == "start\nappend T1\nappend T2"


async def test_a_branch_of_that_name_is_never_overwritten(world: World, tmp_path: Path) -> None:
    journal = await run_to_end(world, planned(("T1", "log", ())), tmp_path)
    await git(world.folder, "branch", "result")
    with pytest.raises(Exception, match="exists"):
        await delivered(world, journal, "log")
    assert await text(world.folder, "rev-parse", "result") == world.base
    with pytest.raises(NotDelivered, match=r"'a\.\.b' cannot be the name of a branch; choose another with --branch"):
        await put_on_branch(world.client, journal[-1].entity_id, world.folder, "a..b")
