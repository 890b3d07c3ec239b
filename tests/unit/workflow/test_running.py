"""The life of a running workflow: readiness, hand-out, failure, retry, skip, waves, the end."""

import pytest

from pointsman.services.chassis.core.errors import Reason
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import ExecutionMode, WorkflowMode, WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.model import Settings
from pointsman.services.workflow.domain.views import waits_for
from tests.unit.workflow.flow import ID, Flow, in_status, planned, refold, running, spec

W = WorkflowStatus


def test_tasks_are_handed_out_in_file_order_when_everything_they_depend_on_is_done() -> None:
    flow = running(spec("c", "a b"), spec("a"), spec("b"))
    assert flow.take(5) == ["a", "b"]
    assert flow.take(5) == []
    flow.complete("a")
    assert flow.take() == []
    flow.complete("b")
    assert flow.take() == ["c"]
    flow.complete("c")
    assert flow.status is W.COMPLETED


def test_a_task_is_handed_out_once_and_again_after_it_was_given_back() -> None:
    flow = running(spec("a"))
    assert flow.take(64) == ["a"]
    assert flow.take(64) == []
    assert flow.do(commands.ReleaseTask(ID, ("a",))).count == 1
    handed = flow.do(commands.NextTasks(ID, worker="ann")).tasks[0]
    assert (handed.attempt, handed.worker) == (2, "ann")


def test_skipping_frees_dependants() -> None:
    flow = running(spec("a"), spec("b", "a"))
    flow.do(commands.SkipTask(ID, "a", "done by hand"))
    assert flow.take() == ["b"]
    assert flow.task("a").reason == "done by hand"


def test_skipping_a_quality_gate_is_a_high_risk_and_skipping_another_task_is_not() -> None:
    blocked = spec("blocked", quality_gate=True, blocked_by=("api_spec",))
    flow = running(spec("a"), spec("gate", quality_gate=True), blocked, spec("z"))
    flow.do(commands.SkipTask(ID, "a", "no"))
    flow.do(commands.SkipTask(ID, "gate", "flaky"))
    flow.do(commands.SkipTask(ID, "blocked", "no API yet"))
    risks = [(risk.severity, risk.subject_id) for risk in flow.state.details.risks]
    assert risks == [("high", "gate"), ("high", "blocked")]
    assert "flaky" in flow.state.details.risks[0].description


def test_a_failed_task_fails_the_workflow_at_once_and_tasks_in_flight_may_still_complete() -> None:
    flow = running(spec("a"), spec("b"), spec("c"), spec("d", "b"))
    flow.take(2)
    flow.fail("a")
    assert flow.status is W.FAILED
    assert flow.state.header.failure_reason == "task 'a' failed: broken"
    assert flow.take(5) == []
    flow.complete("b")
    assert flow.status is W.FAILED
    assert flow.task("d").ready


def test_a_failure_while_paused_goes_through_running_in_one_step() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take()
    flow.do(commands.PauseWorkflow(ID))
    flow.fail("a")
    assert flow.last_events(2) == [("reopened", "paused", "running"), ("failed", "running", "failed")]


def test_a_second_failure_of_a_failed_workflow_is_recorded() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take(2)
    flow.fail("a")
    flow.fail("b")
    assert flow.statuses() == {"a": "failed", "b": "failed"}
    assert flow.status is W.FAILED


def test_retry_runs_the_workflow_again_at_most_three_times() -> None:
    flow = running(spec("a"))
    for count in (1, 2, 3):
        flow.take()
        flow.fail("a")
        assert flow.do(commands.RetryTask(ID, "a")).count == count
        assert flow.status is W.RUNNING
        assert flow.state.header.failure_reason == ""
    flow.take()
    flow.fail("a")
    refusal = flow.refused(commands.RetryTask(ID, "a"))
    assert refusal.reason is Reason.RETRIES_EXHAUSTED
    assert "skip it or re-plan" in refusal.message
    assert flow.status is W.FAILED


def test_skipping_the_failed_task_goes_on_with_the_next() -> None:
    flow = running(spec("a"), spec("b", "a"))
    flow.take()
    flow.fail("a")
    flow.do(commands.SkipTask(ID, "a", "not worth it"))
    assert flow.last_events(1) == [("task_skipped", "failed", "running")]
    assert flow.take() == ["b"]


def test_skipping_another_task_leaves_the_workflow_failed() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take()
    flow.fail("a")
    flow.do(commands.SkipTask(ID, "b", "no"))
    assert flow.status is W.FAILED


def test_retry_and_skip_while_running_change_the_task_only() -> None:
    flow = running(spec("a"), spec("b"), spec("c"))
    flow.take(2)
    flow.fail("a")
    flow.fail("b")
    flow.do(commands.RetryTask(ID, "a"))
    assert flow.status is W.RUNNING
    flow.do(commands.RetryTask(ID, "b"))
    flow.do(commands.SkipTask(ID, "c", "no"))
    assert [event[1:] for event in flow.last_events(2)] == [("running", "running")] * 2


def test_with_failed_tasks_left_and_nothing_to_run_the_workflow_fails_again() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take(2)
    flow.fail("a")
    flow.fail("b")
    flow.do(commands.RetryTask(ID, "a"))
    flow.complete(*flow.take())
    assert flow.status is W.FAILED
    assert "1 failed" in flow.state.header.failure_reason


def test_only_blocked_tasks_left_means_blocked_never_completed() -> None:
    flow = running(spec("a"), spec("b", blocked_by=("api_spec",)), spec("c", "b"))
    flow.complete(*flow.take())
    assert flow.status is W.BLOCKED
    assert waits_for(flow.state.header) == "unblock api_spec"


def test_failed_wins_over_blocked() -> None:
    flow = running(spec("a"), spec("b", blocked_by=("api_spec",)), spec("c"))
    flow.take(2)
    flow.fail("a")
    flow.fail("c")
    flow.do(commands.RetryTask(ID, "a"))
    flow.complete(*flow.take())
    assert flow.status is W.FAILED


def test_unblock_is_idempotent_and_frees_a_task_when_all_its_dependencies_are_there() -> None:
    flow = running(spec("a"), spec("b", blocked_by=("api_spec", "design_spec")), spec("c", blocked_by=("api_spec",)))
    flow.complete(*flow.take())
    assert flow.do(commands.Unblock(ID, "design_spec")).count == 0
    assert flow.state.header.status == "blocked"
    assert flow.do(commands.Unblock(ID, "api_spec")).count == 2
    assert flow.state.header.status == "running"
    events = len(flow.journal)
    assert flow.do(commands.Unblock(ID, "api_spec")).count == 0
    assert len(flow.journal) == events


def test_a_dependency_blocks_as_long_as_one_of_the_tasks_that_wait_for_it() -> None:
    flow = running(spec("a"), spec("b", blocked_by=("legal",)), spec("c", blocked_by=("legal",)))
    flow.do(commands.UpsertPlan(ID, tasks=planned(spec("d")), append=True))
    flow.do(commands.SkipTask(ID, "b", "no"))
    assert flow.state.header.blocking == {"legal": 1}
    flow.do(commands.SkipTask(ID, "c", "no"))
    assert flow.state.header.blocking == {}


def test_all_unblocks_everything() -> None:
    flow = running(spec("a"), spec("b", blocked_by=("legal",)), spec("c", blocked_by=("api_spec", "x")))
    assert flow.do(commands.Unblock(ID, "all")).count == 2
    assert flow.state.header.blocking == {}
    flow.plan(spec("n", blocked_by=("design_spec",)))
    assert flow.statuses()["n"] == "pending"


def test_a_freed_task_that_waits_for_a_blocked_one_leaves_blocked_and_comes_back() -> None:
    flow = running(spec("a", blocked_by=("api_spec",)), spec("b", "a", blocked_by=("design_spec",)))
    assert flow.status is W.BLOCKED
    flow.do(commands.Unblock(ID, "design_spec"))
    assert flow.last_events(2) == [("unblocked", "blocked", "running"), ("blocked", "running", "blocked")]


def test_skipping_the_last_blocked_task_completes_a_blocked_workflow() -> None:
    flow = in_status(W.BLOCKED)
    flow.do(commands.SkipTask(ID, "c", "no api will come"))
    assert flow.last_events(2) == [("task_skipped", "blocked", "running"), ("completed", "running", "completed")]


def test_a_plan_of_settled_tasks_completes_when_it_is_executed() -> None:
    flow = Flow()
    flow.plan(spec("a"))
    flow.do(commands.SkipTask(ID, "a", "no"))
    flow.execute()
    assert flow.status is W.COMPLETED


def test_a_wave_is_settled_in_one_step() -> None:
    flow = running(spec("a"), spec("b"), spec("c"), spec("d", "a"))
    flow.take(3)
    flow.do(commands.SettleTasks(ID, ("a", "c"), (commands.Rejected("b", "no evidence", retry=True),)))
    assert flow.statuses() == {"a": "completed", "b": "pending", "c": "completed", "d": "pending"}
    assert flow.task("b").retry_count == 1
    assert flow.task("b").reason == "no evidence"
    assert flow.status is W.RUNNING
    assert flow.take(5) == ["b", "d"]


def test_a_wave_with_a_final_rejection_records_the_rest_and_fails() -> None:
    flow = running(spec("a"), spec("b"), spec("c"))
    flow.take(3)
    flow.do(
        commands.SettleTasks(ID, ("a",), (commands.Rejected("b", "wrong"), commands.Rejected("c", "late", retry=True)))
    )
    assert flow.statuses() == {"a": "completed", "b": "failed", "c": "pending"}
    assert flow.status is W.FAILED


@pytest.mark.parametrize(
    "wave",
    [
        commands.SettleTasks(ID),
        commands.SettleTasks(ID, ("a", "a")),
        commands.SettleTasks(ID, ("a",), (commands.Rejected("a", "both"),)),
    ],
)
def test_a_wave_names_each_task_once(wave: commands.SettleTasks) -> None:
    flow = running(spec("a"))
    flow.take()
    assert flow.refused(wave).reason is Reason.INVALID_FIELD


def test_a_wave_is_refused_whole_when_one_task_cannot_be_settled() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take()
    assert flow.refused(commands.SettleTasks(ID, ("a", "b"))).reason is Reason.STATE_FORBIDS
    assert flow.statuses() == {"a": "in_progress", "b": "pending"}


def test_a_wave_that_retries_a_task_too_often_is_refused_whole() -> None:
    flow = running(spec("a"))
    for _ in range(3):
        flow.take()
        flow.do(commands.SettleTasks(ID, (), (commands.Rejected("a", "no", retry=True),)))
    flow.take()
    refusal = flow.refused(commands.SettleTasks(ID, (), (commands.Rejected("a", "no", retry=True),)))
    assert refusal.reason is Reason.RETRIES_EXHAUSTED
    flow.do(commands.SettleTasks(ID, (), (commands.Rejected("a", "no"),)))
    assert flow.status is W.FAILED


def test_each_task_that_a_wave_retries_counts_its_own_retries_up_to_the_limit() -> None:
    flow = running(spec("a"), spec("b"))
    again = tuple(commands.Rejected(task_id, "no", retry=True) for task_id in ("a", "b"))
    for _ in range(3):
        flow.take(2)
        flow.do(commands.SettleTasks(ID, (), again))
    assert [flow.task(task_id).retry_count for task_id in ("a", "b")] == [3, 3]
    flow.take(2)
    assert flow.refused(commands.SettleTasks(ID, (), again)).reason is Reason.RETRIES_EXHAUSTED


def test_a_release_has_to_say_what() -> None:
    flow = running(spec("a"))
    flow.take()
    assert flow.refused(commands.ReleaseTask(ID)).reason is Reason.INVALID_FIELD
    assert flow.refused(commands.ReleaseTask(ID, ("a",), every=True)).reason is Reason.INVALID_FIELD
    assert flow.refused(commands.ReleaseTask(ID, ("a", "a"))).reason is Reason.INVALID_FIELD


def test_the_task_in_hand_is_the_handed_one_then_the_next() -> None:
    flow = running(spec("a"), spec("b"))
    assert flow.state.header.current_task == "a"
    flow.take()
    flow.complete("a")
    assert flow.state.header.current_task == "b"
    flow.take()
    flow.complete("b")
    assert flow.state.header.current_task == ""


def test_the_fold_of_the_journal_is_the_state() -> None:
    flow = running(spec("a"), spec("b", "a", blocked_by=("api_spec",)), spec("c", "a"))
    flow.take()
    flow.fail("a")
    flow.do(commands.RetryTask(ID, "a"))
    flow.complete(*flow.take())
    flow.do(commands.Unblock(ID, "all"))
    flow.complete(*flow.take(2))
    assert flow.status is W.COMPLETED
    again = refold(flow.journal)
    assert again is not None
    assert again.header == flow.state.header
    assert again.tasks.by_id == flow.state.tasks.by_id
    assert again.details == flow.state.details


def test_settings_given_with_resume_hold_from_then_on() -> None:
    flow = in_status(W.PAUSED)
    flow.do(commands.Resume(ID, Settings(execution_mode=ExecutionMode.STEP)))
    assert flow.state.header.execution_mode is ExecutionMode.STEP
    flow.do(commands.UpsertPlan(ID, Fields(mode=WorkflowMode.PROGRESSIVE)))
    assert flow.state.header.mode is WorkflowMode.PROGRESSIVE
