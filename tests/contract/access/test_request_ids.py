"""Request ids of one principal are no business of another: a guessed one takes nothing away, and tells nothing."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import schedule_pb2
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2, plans_pb2
from pointsman.services.chassis.core.caller import Caller
from tests.contract.access.guarded import guarded
from tests.scenarios.planes import WISH, Plane

GUESSED = "nightly-2026-11-18"


async def _classify(plane: Plane, who: str) -> str:
    request = decision_pb2.ClassifyRequest(request_id=GUESSED, message=decision_pb2.Message(text=f"{WISH} for {who}"))
    return str((await RouterServiceStub(plane.channel).Classify(request)).decision.decision_id)


async def _submit(plane: Plane, who: str) -> str:
    request = pb.SubmitRequest(request_id=GUESSED, message=f"{WISH} for {who}")
    return str((await plane.runs.Submit(request)).run.id)


async def _schedule(plane: Plane, who: str) -> str:
    order = pb.SubmitRequest(request_id="any", message=f"{WISH} for {who}")
    request = schedule_pb2.CreateScheduleRequest(
        request_id=f"{GUESSED}-schedule", spec=schedule_pb2.ScheduleSpec(cron="0 3 * * *"), order=order
    )
    return str((await ScheduleServiceStub(plane.channel).CreateSchedule(request)).schedule.id)


async def _pipeline(plane: Plane, _: str) -> str:
    request = pipeline_pb2.StartPipelineRequest(
        request_id=GUESSED, template="quick-dev", auto_delegate=pipeline_pb2.AutoDelegate()
    )
    answer = await plane.pipeline.StartPipeline(request)
    return f"{answer.pipeline_id} {answer.next[0].nonce}"


async def _plan(plane: Plane, who: str) -> str:
    tasks = [model_pb2.TaskSpec(task_id="T1", name=who)]
    request = plans_pb2.UpsertPlanRequest(request_id=GUESSED, workflow_id=f"epic-{who}", tasks=tasks)
    answer = await plane.workflow.UpsertPlan(request)
    assert answer.created
    return f"epic-{who}"


ASKED: dict[str, Callable[[Plane, str], Awaitable[str]]] = {
    "router": _classify,
    "orchestrator": _submit,
    "schedules": _schedule,
    "pipeline": _pipeline,
    "workflow": _plan,
}


async def test_a_guessed_request_id_takes_nothing_from_whom_it_belongs_to_in_any_service(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        mallory = await there.as_principal("mallory", "operator")
        alice = await there.as_principal("alice", "operator")
        for service, ask in ASKED.items():
            squatted, hers = await ask(mallory, "mallory"), await ask(alice, "alice")
            assert (service, set(squatted.split()) & set(hers.split())) == (service, set()), "nothing is shared"
            again = await there.as_principal("alice", "operator", "viewer")
            assert (service, await ask(again, "alice")) == (service, hers), "her retry with a new token"
        same = pb.SubmitRequest(request_id="twin", message=WISH)
        both = [(await one.runs.Submit(same)).run.id for one in (mallory, alice)]
        assert len(set(both)) == 2, "not even the same body is the same request"


async def test_a_run_that_was_submitted_before_the_upgrade_is_not_submitted_again_after_it(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        alice = await there.as_principal("alice", "operator")
        with monkeypatch.context() as before:
            before.setattr(Caller, "request_scope", property(lambda caller: caller.project))
            first = [await _submit(alice, "alice"), await _schedule(alice, "alice")]
        assert [await _submit(alice, "alice"), await _schedule(alice, "alice")] == first
        assert len((await alice.runs.ListRuns(pb.ListRunsRequest())).runs) == 1
