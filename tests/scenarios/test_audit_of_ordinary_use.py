"""`audit --all` finds nothing to complain about in any store that ordinary use can make."""

import json
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.pipeline.v1 import pipeline_pb2, requests_pb2
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.api.workflow.v1 import tasks_pb2 as tasks
from pointsman.audit.stores import TOGETHER, audit_stores
from pointsman.services.chassis.core.config import StoreSettings
from tests.helpers.eventually import eventually
from tests.robustness import sound
from tests.scenarios.planes import NOBODY, Plane, plane

EXECUTOR = mock.MOCK_ROLE_EXECUTOR
SOMEBODYS_TRACE = (("traceparent", f"00-{'ab' * 16}-{'cd' * 8}-01"),)


async def audit(data: Path) -> None:
    """Read the four stores and what is between them, beside the services that use them."""
    found = await audit_stores(StoreSettings(data=data))
    assert TOGETHER in found
    assert {name: item.violations for name, item in found.items() if item.violations} == {}


@pytest.mark.parametrize("metadata", [(), SOMEBODYS_TRACE], ids=["alone", "in_a_trace"])
@pytest.mark.parametrize("message", ["What is a barrier?", "pwd"])
async def test_a_question_or_a_trivial_command_leaves_stores_that_hold(
    tmp_path: Path, message: str, metadata: tuple[tuple[str, str], ...]
) -> None:
    async with plane(tmp_path) as here:
        answer = await here.runs.Submit(pb.SubmitRequest(request_id="r", message=message), metadata=metadata)
        assert not answer.HasField("run")
        await audit(tmp_path)


async def test_questions_to_the_router_alone_leave_stores_that_hold(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        run = await here.ended((await here.submit()).id)
        router = RouterServiceStub(here.channel)
        for number, run_id in enumerate(["", run.id, "job-of-somebody-else"]):
            for metadata in ((), SOMEBODYS_TRACE):
                await router.Classify(
                    decision_pb2.ClassifyRequest(
                        request_id=f"{number}-{len(metadata)}",
                        message=decision_pb2.Message(text="Fix the test in src/a.py"),
                        run_id=run_id,
                    ),
                    metadata=metadata,
                )
        await audit(tmp_path)


async def test_pipelines_and_workflows_without_a_run_leave_stores_that_hold(tmp_path: Path) -> None:
    await sound.live(tmp_path)
    async with plane(tmp_path, NOBODY) as here:
        run = await here.submit()
        for name, run_id in (("alone", ""), ("for-a-run", run.id), ("for-a-job", "job-42")):
            await here.pipeline.StartPipeline(
                pipeline_pb2.StartPipelineRequest(request_id=name, pipeline_id=name, run_id=run_id, template="full")
            )
            await here.workflow.UpsertPlan(
                plans.UpsertPlanRequest(
                    request_id=name,
                    workflow_id=name,
                    owner_run_id=run_id,
                    tasks=[model.TaskSpec(task_id="T1", name="x")],
                )
            )
        await audit(tmp_path)


async def test_imported_states_leave_stores_that_hold(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        for name, state in IMPORTED_PIPELINES.items():
            await here.pipeline.ImportState(
                requests_pb2.ImportStateRequest(request_id=name, pipeline_id=name, state_json=json.dumps(state))
            )
        for status in ("idle", "planned", "running", "paused", "blocked", "failed", "completed"):
            await here.workflow.ImportState(
                reading.ImportStateRequest(
                    request_id=status,
                    workflow_id=status,
                    state_json=json.dumps({"project_id": status, "status": status}),
                    tasks_markdown="## T1: one\n\n**actions**: read, write\n",
                )
            )
        await audit(tmp_path)


async def test_runs_without_an_agent_parked_merged_kept_and_cancelled_leave_stores_that_hold(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        alone = await here.reached((await here.submit()).id, runs.RUN_STATE_CODER_EXEC)
        for kind in (runs.ANSWER_KIND_SWITCH, runs.ANSWER_KIND_MERGE, runs.ANSWER_KIND_KEEP):
            session = f"s-{kind}"
            first = await here.submit(session_id=session)
            await here.reached(first.id, runs.RUN_STATE_CODER_EXEC)
            second = await here.asked((await here.submit("Rename f in src/lexer.py", session_id=session)).id)
            await here.answer(second, kind)
            await here.ended(first.id if kind == runs.ANSWER_KIND_SWITCH else second.id)
            await audit(tmp_path)
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=alone.id))
        await audit(tmp_path)
    await audit(tmp_path)


async def test_a_workflow_that_is_taken_up_by_hand_after_its_run_was_cancelled_leaves_stores_that_hold(
    tmp_path: Path,
) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        run = await here.taken((await here.submit()).id)
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=run.id))
        await eventually(lambda: _workflow_is(here, run.epic_id, model.WORKFLOW_STATUS_FAILED))
        released = tasks.ReleaseTaskRequest(request_id="give-back", workflow_id=run.epic_id, task_ids=["T1"])
        await here.workflow.ReleaseTask(released)
        replaced = plans.UpsertPlanRequest(
            request_id="by-hand",
            workflow_id=run.epic_id,
            intake_text="once more",
            tasks=[model.TaskSpec(task_id="T9", name="by hand")],
        )
        await here.workflow.UpsertPlan(replaced)
        assert await _workflow_is(here, run.epic_id, model.WORKFLOW_STATUS_RUNNING)
        await audit(tmp_path)


async def test_retention_leaves_stores_that_hold_also_where_a_workflow_outlives_its_run(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.ended((await here.submit()).id)
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        parked = await here.taken((await here.submit(session_id="s")).id)
        rival = await here.asked((await here.submit("Rename f in src/lexer.py", session_id="s")).id)
        await here.answer(rival, runs.ANSWER_KIND_SWITCH)
        assert (await here.ended(parked.id)).end_reason == "parked"
        await eventually(lambda: _is_released(here, parked.epic_id))
    async with plane(tmp_path, NOBODY, retention_days=1e-9) as here:

        async def only_the_live_one() -> bool:
            return [run.id for run in (await here.runs.ListRuns(pb.ListRunsRequest())).runs] == [rival.id]

        await eventually(only_the_live_one)
        assert await _workflow_is(here, parked.epic_id, model.WORKFLOW_STATUS_PAUSED)
        await audit(tmp_path)


async def _workflow_is(here: Plane, epic_id: str, status: model.WorkflowStatus.ValueType) -> bool:
    return bool((await _workflow(here, epic_id)).progress.status == status)


async def _is_released(here: Plane, epic_id: str) -> bool:
    return not (await _workflow(here, epic_id)).owner_run_id


async def _workflow(here: Plane, epic_id: str) -> Any:
    return (await here.workflow.GetWorkflow(reading.GetWorkflowRequest(workflow_id=epic_id))).workflow


def _imported(**changes: Any) -> dict[str, Any]:
    return {
        "version": 3,
        "classification": {"pipelineId": "quick-dev"},
        "dag": {"DEV": {"deps": []}, "REVIEW": {"deps": ["DEV"]}, "TEST": {"deps": ["REVIEW"]}},
        "stages": {"DEV": {"status": "completed"}, "REVIEW": {"status": "failed"}, "TEST": {"status": "completed"}},
        "retries": {"REVIEW": 1},
        "enforced": True,
        **changes,
    }


IMPORTED_PIPELINES: dict[str, dict[str, Any]] = {
    "ended": _imported(),
    "in-a-retry": _imported(pendingRetry={"stages": [{"id": "REVIEW", "severity": "HIGH", "round": 1}]}),
    "tried-too-often": _imported(pendingRetry={"stage": "REVIEW"}, retries={"REVIEW": 9}),
    "at-its-barrier": _imported(stages={"DEV": {"status": "completed"}, "REVIEW": {"status": "active"}}),
    "cancelled": _imported(enforced=False),
}
