"""Runs over four real services: the branches of the seed, and where each mock behaviour ends."""

from pathlib import Path

import grpc
import pytest

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.pipeline.v1 import requests_pb2 as pipelines
from pointsman.api.pipeline.v1 import state_pb2 as pipeline_state
from pointsman.api.router.v1 import log_pb2 as log
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockRole
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.scenarios.behaviours import ENDS, state_of
from tests.scenarios.planes import NO_CODER, NOBODY, WISH, plane

STRAIGHT = [
    "submitted", "auto", "no_resumable", "user_input", "intake_ok", "bd_upsert_done", "skip_plan_review",
    "observe_target_defined", "result_arrived", "artifacts_loaded", "enough_info", "design_ready",
    "handoff_bundle_ready", "resource_ready", "dispatch_success", "claims_evidence_arrived", "pass",
]  # fmt: skip


async def test_a_run_with_mock_agents_completes_and_delivers(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        run = await here.ended((await here.submit()).id)
        assert run.state == runs.RUN_STATE_COMPLETE, run
        assert await here.moves(run.id) == STRAIGHT
        delivered = await here.delivery(run.id)
        assert (delivered.outcome, [item.task_id for item in delivered.deliverables]) == ("COMPLETE", ["T1"])
        assert delivered.deliverables[0].claims[0].evidence_ids == ["E1"]
        workflow = await here.workflow.GetWorkflow(reading.GetWorkflowRequest(workflow_id=run.epic_id))
        assert workflow.workflow.progress.status == model.WORKFLOW_STATUS_COMPLETED
        request = pipelines.GetPipelineRequest(pipeline_id=run.tasks[0].pipeline_id)
        pipeline = (await here.pipeline.GetPipeline(request)).pipeline
        assert pipeline.summary.state == pipeline_state.PIPELINE_STATE_COMPLETED


async def test_a_watcher_sees_every_transition_once_and_then_the_end(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        run = await here.submit()
        seen = [item.transition async for item in here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id))]
        assert [item.seq for item in seen] == list(range(1, len(seen) + 1))
        assert seen[-1].to_state == "COMPLETE"
        [whole] = [item async for item in here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id, batch_size=200))]
        assert [whole.transition, *whole.more] == seen
        late = pb.WatchRunRequest(run_id=run.id, after_seq=len(seen) - 2)
        assert [item.transition.seq async for item in here.runs.WatchRun(late)] == [len(seen) - 1, len(seen)]


@pytest.mark.parametrize(("message", "fast_path"), [("What is a barrier?", False), ("pwd", True)])
async def test_talk_and_trivial_commands_start_no_run(tmp_path: Path, message: str, fast_path: bool) -> None:
    async with plane(tmp_path) as here:
        answer = await here.runs.Submit(pb.SubmitRequest(request_id="r", message=message))
        assert not answer.HasField("run")
        assert answer.routing.fast_path == fast_path
        assert (await here.runs.ListRuns(pb.ListRunsRequest())).runs == []


async def test_a_strong_decision_cannot_be_overridden_where_a_message_is_submitted(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        request = pb.SubmitRequest(
            request_id="r",
            message="fix the bug in src/api/auth.ts and update tests",
            mode_override=pb.MODE_OVERRIDE_ANSWER,
        )
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await here.runs.Submit(request)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "STRONG" in str(refused.value.details())
        assert (await here.runs.ListRuns(pb.ListRunsRequest())).runs == []


async def test_with_hard_routing_off_a_strong_decision_gives_way_where_a_message_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENABLE_HARD_ROUTING", "false")
    async with plane(tmp_path) as here:
        request = pb.SubmitRequest(
            request_id="r",
            message="fix the bug in src/api/auth.ts and update tests",
            mode_override=pb.MODE_OVERRIDE_ANSWER,
        )
        answer = await here.runs.Submit(request)
        assert not answer.HasField("run")
        assert (await here.runs.ListRuns(pb.ListRunsRequest())).runs == []


async def test_a_weak_order_in_vague_terms_is_asked_about_and_the_router_counts_the_clarification(
    tmp_path: Path,
) -> None:
    async with plane(tmp_path) as here:
        run = await here.asked((await here.submit("fix something")).id)
        assert run.question.kind == runs.QUESTION_KIND_LOW_CONFIDENCE
        router = RouterServiceStub(here.channel)

        async def counted() -> log.GetStatsResponse | None:
            stats: log.GetStatsResponse = await router.GetStats(log.GetStatsRequest())
            return stats if stats.clarifications else None

        stats = await eventually(counted)
        assert stats is not None
        assert (stats.decisions, stats.weak, stats.clarifications, stats.override_rate) == (1, 1, 1, 1.0)
        await here.answer(run, runs.ANSWER_KIND_CLARIFIED, text="fix the parser in src/parser.py and test it")
        assert (await here.ended(run.id)).state == runs.RUN_STATE_COMPLETE


async def test_the_plan_of_an_order_with_high_stakes_is_debated_once_a_session_unless_the_user_is_sure(
    tmp_path: Path,
) -> None:
    order = "Drop the users table in src/db.py and add a test"
    messages = [(order, "one"), (order, "one"), (order, "two"), (f"Just do it: {order}", "three"), (WISH, "four")]
    async with plane(tmp_path) as here:
        debated = []
        for message, session in messages:
            run = await here.ended((await here.submit(message, session_id=session)).id)
            assert run.state == runs.RUN_STATE_COMPLETE, run
            moves = await here.moves(run.id)
            debated.append("need_plan_review" in moves[: moves.index("dispatch_success")])
    assert debated == [True, False, True, False, False]


async def test_talk_that_is_submitted_as_action_starts_a_run_whose_plan_is_to_be_debated(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        request = pb.SubmitRequest(
            request_id="r", message="should I drop the users table?", mode_override=pb.MODE_OVERRIDE_ACTION
        )
        answer = await here.runs.Submit(request)
        assert answer.HasField("run")
        assert answer.routing.debate


async def test_the_same_request_starts_one_run(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        request = pb.SubmitRequest(request_id="once", message=WISH)
        first, second = await here.runs.Submit(request), await here.runs.Submit(request)
        assert first.run.id == second.run.id
        assert len((await here.runs.ListRuns(pb.ListRunsRequest())).runs) == 1


EXECUTOR, REVIEWER, SEARCHER = mock.MOCK_ROLE_EXECUTOR, mock.MOCK_ROLE_REVIEWER, mock.MOCK_ROLE_SEARCHER


@pytest.mark.parametrize(("role", "outcome"), ENDS, ids=str)
async def test_a_run_of_each_mock_behaviour_ends_where_the_table_says(
    tmp_path: Path, role: MockRole, outcome: MockOutcome
) -> None:
    end = ENDS[role, outcome]
    lease_seconds = 1.0 if outcome is MockOutcome.SLOW else 0.3
    async with plane(tmp_path, lease_seconds=scaled(lease_seconds), sweep_seconds=0.05) as here:
        await here.behave(
            mock.MockRole.Value(f"MOCK_ROLE_{role.name}"), mock.MockOutcome.Value(f"MOCK_OUTCOME_{outcome.name}")
        )
        run_id = (await here.submit()).id
        run = await (here.asked(run_id) if end else here.ended(run_id))
        assert runs.RunState.Name(run.state) == f"RUN_STATE_{state_of(end)}", run
        assert runs.QuestionKind.Name(run.question.kind) == f"QUESTION_KIND_{end or 'UNSPECIFIED'}", run
        assert [task.status for task in run.tasks if task.status == "accepted"] == ([] if end else ["accepted"])


async def test_a_mock_that_is_healed_lets_the_clarified_run_complete(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_NO_EVIDENCE)
        run = await here.asked((await here.submit()).id)
        await here.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_SUCCESS)
        await here.answer(run, runs.ANSWER_KIND_CLARIFIED, text=WISH)
        assert (await here.ended(run.id)).state == runs.RUN_STATE_COMPLETE


async def test_cancel_ends_the_run_its_pipelines_and_its_workflow(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        run = await here.taken((await here.submit()).id)
        cancelled = await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=run.id, reason="enough"))
        assert cancelled.run.state == runs.RUN_STATE_CANCELLED
        assert cancelled.run.end_reason == "cancelled: enough"

        async def workflow_failed() -> bool:
            workflow = await here.workflow.GetWorkflow(reading.GetWorkflowRequest(workflow_id=run.epic_id))
            return bool(workflow.workflow.progress.status == model.WORKFLOW_STATUS_FAILED)

        await eventually(workflow_failed)
        request = pipelines.GetPipelineRequest(pipeline_id=run.tasks[0].pipeline_id)
        pipeline = (await here.pipeline.GetPipeline(request)).pipeline
        assert pipeline.summary.state == pipeline_state.PIPELINE_STATE_CANCELLED
        assert (await here.delivery(run.id)).outcome == "CANCELLED"


async def test_a_changed_requirement_patches_the_plan_and_the_run_completes(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        run = await here.taken((await here.submit()).id)
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SUCCESS)
        changed = pb.ChangeRequirementRequest(request_id="c", run_id=run.id, message="and keep the old flag")
        await here.runs.ChangeRequirement(changed)
        run = await here.ended(run.id)
        assert run.state == runs.RUN_STATE_COMPLETE, run
        assert run.intent.endswith("and keep the old flag")
        assert "patch_applied" in await here.moves(run.id)


async def test_a_run_goes_on_after_the_control_plane_was_stopped_in_the_middle(tmp_path: Path) -> None:
    async with plane(tmp_path, NO_CODER) as here:
        run = await here.submit()
        await here.reached(run.id, runs.RUN_STATE_CODER_EXEC)
    async with plane(tmp_path) as here:
        run = await here.ended(run.id)
        assert run.state == runs.RUN_STATE_COMPLETE


async def test_unfinished_work_is_asked_about_resumed_and_the_message_follows_by_itself(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        first = await here.taken((await here.submit(session_id="s")).id)
        second = await here.asked((await here.submit("Rename the function in src/lexer.py", session_id="s")).id)
        assert second.question.kind == runs.QUESTION_KIND_CONFLICT
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SUCCESS)
        await here.answer(second, runs.ANSWER_KIND_SWITCH)
        assert (await here.ended(first.id)).end_reason == "parked"
        assert (await here.ended(second.id)).state == runs.RUN_STATE_COMPLETE
        third = await here.asked(
            (await here.submit("Delete the unused import in src/lexer.py", resume=pb.RESUME_ASK)).id
        )
        assert third.question.kind == runs.QUESTION_KIND_RESUME
        await here.answer(third, runs.ANSWER_KIND_RESUME_YES)
        resumed = await here.ended(third.id)
        assert (resumed.state, resumed.epic_id) == (runs.RUN_STATE_COMPLETE, first.epic_id)


async def test_an_exhausted_budget_waits_and_goes_on_when_raised(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        run = await here.asked((await here.submit(budget=runs.Budget(assignments=2))).id)
        assert run.waiting_for.kind == runs.WAIT_KIND_BUDGET
        assert run.waiting_for.who == "assignments"
        await here.answer(run, runs.ANSWER_KIND_RAISE, budget=runs.Budget(assignments=50))
        assert (await here.ended(run.id)).state == runs.RUN_STATE_COMPLETE


async def test_ended_runs_are_forgotten_in_all_stores_and_live_ones_never(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        ended = await here.ended((await here.submit()).id)
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        live = await here.taken((await here.submit("Rename the class in src/lexer.py")).id)
    async with plane(tmp_path, NOBODY, retention_days=1e-9) as here:

        async def is_gone() -> bool:
            listed = await here.runs.ListRuns(pb.ListRunsRequest())
            return [run.id for run in listed.runs] == [live.id]

        await eventually(is_gone)
        for call in (
            here.runs.ListTransitions(pb.ListTransitionsRequest(run_id=ended.id)),
            here.workflow.GetWorkflow(reading.GetWorkflowRequest(workflow_id=ended.epic_id)),
            here.pipeline.GetPipeline(pipelines.GetPipelineRequest(pipeline_id=ended.tasks[0].pipeline_id)),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert (await here.get(live.id)).state == runs.RUN_STATE_CODER_EXEC


async def test_the_kept_message_of_a_resumed_run_starts_by_itself_after_complete(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        first = await here.taken((await here.submit(session_id="s")).id)
        rival = await here.asked((await here.submit("Rename the function in src/lexer.py", session_id="s")).id)
        await here.answer(rival, runs.ANSWER_KIND_SWITCH)
        await here.ended(first.id)
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=rival.id))
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SUCCESS)

        async def only_the_first_can_be_resumed() -> bool:
            listed = await here.workflow.ListResumable(reading.ListResumableRequest())
            return [entry.workflow_id for entry in listed.workflows] == [first.epic_id]

        await eventually(only_the_first_can_be_resumed)
        second = await here.ended((await here.submit("Move src/a.py to src/b.py", resume=pb.RESUME_YES)).id)
        assert (second.state, second.epic_id) == (runs.RUN_STATE_COMPLETE, first.epic_id)
        assert second.queued_epic_id not in ("", first.epic_id)

        async def completed() -> list[str]:
            request = pb.ListRunsRequest(states=[runs.RUN_STATE_COMPLETE])
            listed = [run.intent for run in (await here.runs.ListRuns(request)).runs]
            return listed if len(listed) == 2 else []

        assert (await eventually(completed, 20))[0] == "Move src/a.py to src/b.py"
