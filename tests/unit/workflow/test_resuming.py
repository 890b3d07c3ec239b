"""Workflows that stand still: cancelled, let go, and what each waits for until a run takes it up."""

import pytest

from pointsman.services.chassis.core.errors import Reason
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.constraints import Constraint, ConstraintSet
from pointsman.services.workflow.domain.enums import ConstraintType, ExecutionMode, WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.views import waits_for
from tests.unit.workflow.flow import ID, Flow, in_status, planned, running, spec

W = WorkflowStatus


def test_cancel_from_each_state() -> None:
    expected = {
        W.IDLE: ["idle"],
        W.PLANNED: ["idle"],
        W.RUNNING: ["failed"],
        W.PAUSED: ["running", "failed"],
        W.BLOCKED: ["running", "failed"],
        W.FAILED: ["failed"],
    }
    for status, targets in expected.items():
        flow = in_status(status)
        tasks = flow.statuses()
        events = len(flow.journal)
        flow.do(commands.CancelPlan(ID))
        assert [event.target for event, _ in flow.journal[events:]] == targets
        assert flow.statuses() == tasks
        assert not flow.state.header.resumable
        if flow.status is W.FAILED:
            assert flow.state.header.failure_reason == "cancelled"
        events = len(flow.journal)
        flow.do(commands.CancelPlan(ID))
        assert len(flow.journal) == events


def test_a_cancelled_plan_is_resumable_again_once_a_new_plan_is_stored() -> None:
    flow = in_status(W.PLANNED)
    flow.do(commands.CancelPlan(ID))
    assert not flow.state.header.resumable
    flow.plan(spec("n"))
    assert flow.state.header.resumable


@pytest.mark.parametrize("status", W)
def test_resumable_is_what_stands_still_without_an_owner(status: W) -> None:
    flow = in_status(status)
    assert flow.state.header.resumable is (status not in (W.RUNNING, W.COMPLETED))
    if status is not W.COMPLETED:
        flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r1")))
        assert not flow.state.header.resumable


def test_an_idle_workflow_without_intake_is_not_resumable() -> None:
    flow = Flow()
    flow.do(commands.UpsertPlan(ID, Fields(title="nothing asked")))
    assert not flow.state.header.resumable


def test_letting_a_workflow_go_gives_back_its_tasks_and_pauses_it() -> None:
    flow = running(spec("a"), spec("b"))
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r1")))
    flow.take(2)
    assert flow.do(commands.ReleaseTask(ID, release_owner=True)).count == 2
    assert flow.status is W.PAUSED
    assert flow.pause_cause == "owner_released"
    assert flow.state.header.resumable
    assert flow.state.header.executable
    assert flow.statuses() == {"a": "pending", "b": "pending"}


def test_what_each_state_waits_for() -> None:
    assert [waits_for(in_status(status).state.header) for status in W] == [
        "a plan",
        "execute",
        "",
        "resume (requested)",
        "unblock api_spec",
        "retry or skip a",
        "",
    ]


def test_a_failed_workflow_waits_for_its_failed_task_also_after_more_tasks_were_appended() -> None:
    flow = in_status(W.FAILED)
    flow.complete("b")
    flow.do(commands.UpsertPlan(ID, tasks=planned(spec("d")), append=True))
    assert waits_for(flow.state.header) == "retry or skip a"


def test_a_cancelled_workflow_that_is_asked_for_again_waits_for_a_plan_since_nothing_failed() -> None:
    flow = running(spec("a"), spec("b"))
    flow.do(commands.CancelPlan(ID))
    flow.do(commands.UpsertPlan(ID, Fields(intake_text="try it once more")))
    assert flow.state.header.resumable
    assert waits_for(flow.state.header) == "a new plan"


def test_what_starts_nothing_alone_is_told_with_what_has_to_come_first() -> None:
    flow = Flow()
    flow.plan(spec("a", blocked_by=("design_spec", "api_spec")))
    assert waits_for(flow.state.header) == "unblock api_spec, design_spec, then execute"
    flow.do(commands.UpsertPlan(ID, tasks=planned(spec("b")), append=True))
    assert waits_for(flow.state.header) == "execute"
    flow.execute(execution_mode=ExecutionMode.STEP)
    flow.take()
    flow.do(commands.PauseWorkflow(ID))
    assert waits_for(flow.state.header) == "resume (requested)"
    flow.complete("b")
    assert waits_for(flow.state.header) == "unblock api_spec, design_spec, then resume (requested)"


def test_a_pause_for_constraints_waits_for_those_and_not_for_resume() -> None:
    flow = running(spec("a"))
    held = ConstraintSet(hard=(Constraint("C1", "holds", ConstraintType.HARD),))
    flow.do(commands.MergeConstraints(ID, (held,)))
    flow.complete(*flow.take())
    assert waits_for(flow.state.header) == "verify or waive C1"


def test_what_a_run_asked_before_it_cancelled_the_plan_does_not_bring_it_back() -> None:
    flow = in_status(W.PLANNED)
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r1")))
    flow.do(commands.CancelPlan(ID))
    for late in (Fields(owner_run_id="r1"), Fields(owner_run_id="r1", intake_text="again")):
        refusal = flow.refused(commands.UpsertPlan(ID, late, planned(spec("n"))))
        assert refusal.reason is Reason.STATE_FORBIDS
        assert "cancelled" in refusal.message
    assert flow.status is W.IDLE
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r2"), planned(spec("n"))))
    assert flow.statuses()["n"] == "pending"


def test_a_run_that_takes_a_cancelled_workflow_up_has_not_cancelled_it() -> None:
    flow = in_status(W.PLANNED)
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r1")))
    flow.do(commands.CancelPlan(ID))
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r2", title="taken up")))
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r2"), planned(spec("n"))))
    assert flow.status is W.PLANNED


def test_a_run_that_took_a_cancelled_workflow_up_cancels_it_again_and_lets_it_go() -> None:
    flow = in_status(W.PLANNED)
    flow.do(commands.CancelPlan(ID))
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r2")))
    flow.do(commands.CancelPlan(ID))
    assert flow.state.header.owner_run_id == ""
    refusal = flow.refused(commands.UpsertPlan(ID, Fields(owner_run_id="r2"), planned(spec("n"))))
    assert refusal.reason is Reason.STATE_FORBIDS


def test_a_pause_for_constraints_with_new_tasks_at_hand_waits_for_resume() -> None:
    flow = running(spec("a"))
    held = ConstraintSet(hard=(Constraint("C1", "holds", ConstraintType.HARD),))
    flow.do(commands.MergeConstraints(ID, (held,)))
    flow.complete(*flow.take())
    flow.plan(spec("b"))
    assert waits_for(flow.state.header) == "resume (constraints)"


def test_executable_is_what_is_idle_or_has_a_task_at_hand() -> None:
    flow = Flow()
    flow.plan(spec("a"), spec("b", blocked_by=("api_spec",)))
    flow.execute(use_subagent=True)
    flow.take()
    flow.do(commands.PauseWorkflow(ID))
    in_flight = flow.state.header.executable
    flow.complete("a")
    assert (in_flight, flow.state.header.executable) == (True, False)
