"""The same runs with every service in its own process, and with any of them killed: at the start, and further on."""

import asyncio
from pathlib import Path

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1 import schedule_pb2 as schedule
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from pointsman.services.chassis.core.crash import CrashPoint
from tests.helpers.eventually import eventually
from tests.scenarios.planes import Plane, clients
from tests.scenarios.processes import CONTEXTS, Processes, mocked, processes

RUNS = 6
KIWI = {"team": "kiwi"}
TICK = (
    CrashPoint.BEFORE_TIMER, CrashPoint.BATCH_DECIDED, CrashPoint.OUTBOX_WRITTEN, CrashPoint.BEFORE_DELIVERY,
    f"{CrashPoint.JOURNAL_WRITTEN}:2", CrashPoint.AFTER_DELIVERY,
)  # fmt: skip
"""Before the timer fires, in the commit of the tick, before its delivery, after the run was made, after that was told."""


async def test_a_run_completes_with_every_service_in_its_own_process(tmp_path: Path) -> None:
    with processes(tmp_path, POINTSMAN_FULL_MOCK_MODE="1") as group:
        async with group.channel() as channel:
            here = clients(channel)
            await here.are_there()
            run = await here.ended((await here.submit()).id)
            assert run.state == runs.RUN_STATE_COMPLETE
            assert [item.task_id for item in (await here.delivery(run.id)).deliverables] == ["T1"]


async def test_runs_survive_the_death_of_any_service_right_after_they_were_submitted(tmp_path: Path) -> None:
    with processes(tmp_path, **mocked()) as group:
        async with group.channel() as channel:
            here = clients(channel)
            await here.are_there()
            for context in CONTEXTS:
                started = [(await here.submit(f"Fix the test in src/{context}{n}.py")).id for n in range(RUNS)]
                await asyncio.to_thread(_kill_and_restart, group, context)
                await _all_complete(here, started)


async def test_a_run_survives_the_death_of_each_service_on_its_way(tmp_path: Path) -> None:
    slow = {f"POINTSMAN_MOCK_{role}_OUTCOME": "slow" for role in ("SEARCHER", "EXECUTOR", "REVIEWER")}
    deaths = (
        (runs.RUN_STATE_RESEARCH_FANOUT, ("orchestrator",)),
        (runs.RUN_STATE_CODER_EXEC, ("pipeline",)),
        (runs.RUN_STATE_REVIEW_ACCEPT, ("workflow", "router")),
    )
    with processes(tmp_path, **mocked(), **slow) as group:
        async with group.channel() as channel:
            here = clients(channel)
            await here.are_there()
            run = await here.submit(crew=pb.Crew(best_of=2))
            for state, contexts in deaths:
                await here.reached(run.id, state)
                for context in contexts:
                    await asyncio.to_thread(_kill_and_restart, group, context)
            await _all_complete(here, [run.id])
            (attempt,) = (await here.runs.GetEvidence(evidence.GetEvidenceRequest(run_id=run.id))).attempts
            assert [one.chosen for one in attempt.contenders] in ([True, False], [False, True])


async def test_a_service_that_is_dead_when_work_is_dispatched_is_waited_for(tmp_path: Path) -> None:
    with processes(tmp_path, **mocked(), POINTSMAN_MOCK_SEARCHER_OUTCOME="slow") as group:
        async with group.channel() as channel:
            here = clients(channel)
            await here.are_there()
            for context, state in (("workflow", runs.RUN_STATE_SCHEDULE), ("pipeline", runs.RUN_STATE_DISPATCH)):
                wish = f"Fix the test in src/{context}.py"
                run = await here.reached((await here.submit(wish)).id, runs.RUN_STATE_RESEARCH_FANOUT)
                await asyncio.to_thread(group.kill, context)
                waiting = await here.reached(run.id, state)
                assert waiting.waiting_for.kind == runs.WAIT_KIND_PEER
                await asyncio.to_thread(group.start, context)
                await _all_complete(here, [run.id])


async def test_a_schedule_starts_each_run_once_whichever_service_is_killed(tmp_path: Path) -> None:
    deaths = ("orchestrator", "router", "orchestrator")
    with processes(tmp_path, **mocked()) as group:
        async with group.channel() as channel:
            here, schedules = clients(channel), ScheduleServiceStub(channel)
            spec = schedule.ScheduleSpec(cron="0 3 1 1 *", overlap=schedule.OVERLAP_POLICY_ALLOW)
            order = pb.SubmitRequest(request_id="x", message="Fix the test in src/a.py")
            request = schedule.CreateScheduleRequest(request_id="nightly", spec=spec, order=order)
            made = (await schedules.CreateSchedule(request)).schedule
            for number, context in enumerate(deaths):
                now = schedule.TriggerScheduleRequest(request_id=f"now-{number}", schedule_id=made.id)
                await schedules.TriggerSchedule(now, wait_for_ready=True)
                await asyncio.to_thread(_kill_and_restart, group, context)

            async def over() -> bool:
                told = await schedules.GetSchedule(
                    schedule.GetScheduleRequest(schedule_id=made.id), wait_for_ready=True
                )
                return [one.outcome for one in told.schedule.starts] == ["COMPLETE"] * len(deaths)

            await eventually(over, 50)
            listed = await here.runs.ListRuns(pb.ListRunsRequest(labels={"schedule": made.id}))
            assert len(listed.runs) == len(deaths)


async def test_a_time_of_a_schedule_starts_one_run_wherever_the_tick_is_killed(tmp_path: Path) -> None:
    """The clock of the orchestrator is set past the time: it is killed at each step of the tick, then goes on."""
    with processes(tmp_path, **mocked()) as group:
        async with group.channel() as channel:
            spec = schedule.ScheduleSpec(cron="0 * * * *", missed=schedule.MISSED_POLICY_ALL)
            order = pb.SubmitRequest(request_id="x", message="Fix the test in src/a.py")
            request = schedule.CreateScheduleRequest(request_id="hourly", spec=spec, order=order)
            made = (await ScheduleServiceStub(channel).CreateSchedule(request)).schedule
        group.kill("orchestrator")
        group.set_ahead(made.next_at.seconds - made.created_at.seconds + 1)
        for point in TICK:
            await asyncio.to_thread(group.start_until, point, "orchestrator")
        group.start("orchestrator")
        async with group.channel() as channel:
            here, schedules = clients(channel), ScheduleServiceStub(channel)

            async def now() -> schedule.Schedule:
                return (await schedules.GetSchedule(schedule.GetScheduleRequest(schedule_id=made.id))).schedule

            async def over() -> bool:
                return any(one.outcome for one in (await now()).starts)

            await eventually(over, 50)
            told = await now()
            assert [(one.nominal_at, one.outcome) for one in told.starts] == [(made.next_at, "COMPLETE")]
            assert (told.started, told.missed, told.overlapped, told.refused) == (1, 0, 0, 0)
            assert told.next_at.seconds == made.next_at.seconds + 3600
            listed = await here.runs.ListRuns(pb.ListRunsRequest(labels={"schedule": made.id}))
            assert [one.id for one in listed.runs] == [told.starts[0].run_id]


async def test_a_change_of_many_runs_goes_on_where_it_was_killed_and_does_nothing_twice(tmp_path: Path) -> None:
    with processes(tmp_path) as group:
        async with group.channel() as channel:
            here = clients(channel)
            first = [(await here.submit(f"Fix the test in src/{n}.py", labels=KIWI)).id for n in range(4)]
            for run_id in first:
                await here.reached(run_id, runs.RUN_STATE_CODER_EXEC)
        for change in ({"cancel": pb.CancelEach(reason="enough")}, {"rerun": pb.RerunEach()}):
            chosen = pb.RunSelection(labels=KIWI, created_before=Timestamp(seconds=2**33))
            request = pb.ChangeRunsRequest(request_id=next(iter(change)), selection=chosen, **change)
            listed = await _killed_and_done(group, request)
        ended = [one.id for one in listed if one.state == runs.RUN_STATE_CANCELLED]
        again = [one.origin.run_id for one in listed if one.HasField("origin")]
        assert (len(listed), sorted(ended), sorted(again)) == (8, sorted(first), sorted(first))


async def _killed_and_done(group: Processes, request: pb.ChangeRunsRequest) -> list[runs.Run]:
    """The orchestrator is killed while it writes the third run, and is asked again with the same request_id."""
    group.kill("orchestrator")
    group.start_armed(f"{CrashPoint.JOURNAL_WRITTEN}:3", "orchestrator")
    async with group.channel() as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await clients(channel).runs.ChangeRuns(request)
    await asyncio.to_thread(_kill_and_restart, group, "orchestrator")
    async with group.channel() as channel:
        here = clients(channel)
        await here.runs.ChangeRuns(request)
        listed = (await here.runs.ListRuns(pb.ListRunsRequest(labels=KIWI))).runs
        for run in listed:
            assert (await here.moves(run.id)).count("cancel") <= 1
        return list(listed)


async def _all_complete(here: Plane, started: list[str]) -> None:
    """Each run ends well, and its journal has no hole."""
    ended = await asyncio.gather(*(here.ended(run_id, 50) for run_id in started))
    assert [runs.RunState.Name(run.state) for run in ended] == ["RUN_STATE_COMPLETE"] * len(started)
    for run_id in started:
        page = pb.ListTransitionsRequest(run_id=run_id)
        seqs = [item.seq for item in (await here.runs.ListTransitions(page)).transitions]
        assert seqs == list(range(1, len(seqs) + 1))


def _kill_and_restart(group: Processes, context: str) -> None:
    group.kill(context)
    group.start(context)
