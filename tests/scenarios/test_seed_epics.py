"""Seed 002 as its users see it: unfinished work, rival runs of a session, queued work, and runs that fail."""

from pathlib import Path

import grpc
import pytest

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, WISH, Plane, plane
from tests.scenarios.scripted import crew, path_of, planning, released


async def unfinished(here: Plane, workflow_id: str, priority: int, **spec: object) -> None:
    """Work that somebody planned and did not finish."""
    task = model.TaskSpec(task_id="T1", name=f"do {workflow_id}", actions=["do it"], **spec)  # type: ignore[arg-type]
    request = plans.UpsertPlanRequest(
        request_id=here.request_id(), workflow_id=workflow_id, title=workflow_id, priority=priority, tasks=[task]
    )
    await here.workflow.UpsertPlan(request)


async def test_unfinished_work_is_offered_executable_first_then_by_priority_then_the_latest(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        await unfinished(here, "blocked", 0, blocked_by=["api_spec"])
        await unfinished(here, "older", 5)
        await unfinished(here, "urgent", 1)
        await unfinished(here, "newer", 5)
        refused = await here.asked((await here.submit(resume=pb.RESUME_ASK)).id)
        offered = ["urgent: urgent", "newer: newer", "older: older", "blocked: blocked"]
        assert (refused.question.kind, list(refused.question.subjects)) == (runs.QUESTION_KIND_RESUME, offered)
        await here.answer(refused, runs.ANSWER_KIND_RESUME_NO)
        await here.reached(refused.id, runs.RUN_STATE_CODER_EXEC)
        assert (await path_of(here, refused.id))[3] == ("RESUME_ASK", "user_resume_no", "IDLE")
        resumed = await here.asked((await here.submit("Move src/a.py to src/b.py", resume=pb.RESUME_ASK)).id)
        assert list(resumed.question.subjects) == offered
        await here.answer(resumed, runs.ANSWER_KIND_RESUME_YES)
        run = await here.reached(resumed.id, runs.RUN_STATE_CODER_EXEC)
        assert (run.epic_id, run.intent) == ("urgent", "urgent")
        assert (await path_of(here, run.id))[3:5] == [
            ("RESUME_ASK", "user_resume_yes", "RESUME_PLAN"),
            ("RESUME_PLAN", "resume_queue_loaded", "OBSERVE"),
        ]


async def rivals(here: Plane) -> tuple[runs.Run, runs.Run]:
    """A run that works, and another of the same session that asks which of the two goes on."""
    first = await here.reached((await here.submit(session_id="s")).id, runs.RUN_STATE_CODER_EXEC)
    second = await here.asked((await here.submit("Rename the function in src/lexer.py", session_id="s")).id)
    assert (await path_of(here, second.id))[-1] == ("INTAKE", "conflict_with_current_epic", "ASK_SWITCH")
    assert (second.question.kind, list(second.question.subjects)) == (runs.QUESTION_KIND_CONFLICT, [first.id])
    return first, second


async def test_keep_leaves_the_other_run_alone_and_keeps_this_wish_for_later(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        first, second = await rivals(here)
        await here.answer(second, runs.ANSWER_KIND_KEEP)
        kept = await here.ended(second.id)
        assert (kept.state, kept.end_reason) == (runs.RUN_STATE_CANCELLED, "kept")
        await released(here, kept.epic_id)
        assert (await here.get(first.id)).state == runs.RUN_STATE_CODER_EXEC


async def test_merge_hands_this_wish_to_the_other_run_which_patches_its_plan(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        first, second = await rivals(here)
        await here.answer(second, runs.ANSWER_KIND_MERGE)
        merged = await here.ended(second.id)
        assert (merged.state, merged.end_reason) == (runs.RUN_STATE_CANCELLED, f"merged into {first.id}")

        async def is_patched() -> bool:
            return ("REPLAN_PATCH", "patch_applied", "PLAN_BASELINE") in await path_of(here, first.id)

        await eventually(is_patched)
        assert (await here.get(first.id)).intent == f"{WISH}\n\nRename the function in src/lexer.py"


async def test_auto_resume_takes_the_first_of_the_queue_without_a_question(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        await unfinished(here, "later", 2)
        await unfinished(here, "urgent", 1)
        run = await here.reached((await here.submit(resume=pb.RESUME_YES)).id, runs.RUN_STATE_CODER_EXEC)
        assert run.epic_id == "urgent"
        assert (await path_of(here, run.id))[2] == ("IDLE_PROBE_BD", "found_resumable", "RESUME_PLAN")


async def test_a_run_that_reaches_its_limit_fails_refuses_everything_and_can_be_resumed(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        failed = await here.ended((await here.submit(budget=runs.Budget(transitions=25))).id)
        assert failed.state == runs.RUN_STATE_FAILED
        assert failed.end_reason == "the limit of 25 transitions is reached"
        assert (await here.delivery(failed.id)).outcome == "FAILED"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=failed.id))
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert (await here.get(failed.id)).state == runs.RUN_STATE_FAILED
        await released(here, failed.epic_id)
        resumed = await here.ended((await here.submit("Move src/a.py to src/b.py", resume=pb.RESUME_YES)).id)
        assert (resumed.state, resumed.epic_id) == (runs.RUN_STATE_COMPLETE, failed.epic_id)


async def test_blocked_work_waits_in_the_queue_and_is_dispatched_when_a_person_frees_it(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here, crew(here, planner=planning(blocked_by=["api_spec"])):
        run = await here.asked((await here.submit()).id)
        assert (await path_of(here, run.id))[-1] == ("SCHEDULE", "resource_busy", "QUEUE")
        assert run.question.kind == runs.QUESTION_KIND_BLOCKED
        assert "api_spec" in run.question.text
        await here.answer(run, runs.ANSWER_KIND_UNBLOCK, text="api_spec")
        await here.reached(run.id, runs.RUN_STATE_CODER_EXEC)
        assert (await path_of(here, run.id))[-2:] == [
            ("QUEUE", "resource_available", "DISPATCH"),
            ("DISPATCH", "dispatch_success", "CODER_EXEC"),
        ]
