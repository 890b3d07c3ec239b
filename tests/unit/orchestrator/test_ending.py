"""Cancel, fatal errors, changed requirements, late answers: what ends or turns a run."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import Call, Purpose, Reply, State, Verdict, WorkflowStatus
from pointsman.services.orchestrator.domain.table import CHANGEABLE
from pointsman.services.orchestrator.domain.waiting import waiting_for
from tests.unit.orchestrator.driver import ALL, Driver


def executing() -> Driver:
    return Driver().submit().settle().work_until(Purpose.STAGE)


def test_cancel_stops_assignments_pipelines_and_the_workflow() -> None:
    driver = executing()
    driver.send(commands.Cancel("run_1", "changed my mind"))
    assert (driver.run.status, driver.run.end_reason) == (State.CANCELLED, "cancelled: changed my mind")
    assert driver.run.assignments == {}
    assert [effect.kind for effect in driver.effects] == [Call.CANCEL_PIPELINE, Call.CANCEL_PLAN]
    assert driver.timers == {}


def test_a_fatal_error_keeps_the_workflow_released_and_resumable() -> None:
    driver = executing().work_until(Purpose.REVIEW)
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    passed = commands.ReviewResult(Verdict.PASS)
    driver.send(commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", passed))
    driver.refuse_next("gone")
    assert driver.is_in(State.FAILED)
    assert [effect.kind for effect in driver.effects] == [Call.RELEASE]
    assert driver.effects[0].data.disown


@pytest.mark.parametrize("state", [State.COMPLETE, State.CANCELLED, State.FAILED])
def test_terminal_states_refuse_every_command_and_do_not_change(state: State) -> None:
    driver = ended_in(state)
    before = driver.run
    assert before.status is state
    for command in (
        commands.Cancel("run_1", "again"),
        commands.ChangeRequirement("run_1", "more"),
        commands.Answer("run_1", "q1", Reply.CLARIFIED, "x"),
    ):
        with pytest.raises(Refusal) as caught:
            driver.send(command)
        assert caught.value.reason is Reason.STATE_FORBIDS
        assert caught.value.metadata["state"] == state
    driver.send(commands.TimerFired("run_1", "wall_clock"))
    driver.send(commands.CallAnswered("run_1", events.WorkflowSeen("c1", WorkflowStatus.RUNNING)))
    assert driver.run == before
    assert waiting_for(driver.run) is None


def ended_in(state: State) -> Driver:
    if state is State.COMPLETE:
        return Driver().submit().settle().work_until()
    return cancelled() if state is State.CANCELLED else Driver().submit().refuse_next()


def cancelled() -> Driver:
    driver = executing()
    driver.send(commands.Cancel("run_1", ""))
    return driver


def test_a_completion_after_the_end_is_refused_as_a_lost_lease() -> None:
    driver = executing()
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    driver.send(commands.Cancel("run_1", ""))
    with pytest.raises(Refusal) as caught:
        driver.send(
            commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", commands.StageResult("PASS"))
        )
    assert caught.value.reason is Reason.LEASE_LOST


def test_a_changed_requirement_cancels_live_work_releases_tasks_and_patches_the_plan() -> None:
    driver = executing()
    driver.send(commands.ChangeRequirement("run_1", "and make it blue"))
    assert driver.run.intent == "add a flag\n\nand make it blue"
    assert driver.told == []
    kinds = [effect.kind for effect in driver.effects]
    assert kinds == [Call.CANCEL_PIPELINE, Call.RELEASE, Call.STORE_PLAN]
    driver.settle()
    assert driver.moves[-4:] == ["requirement_changed", "patch_applied", "skip_plan_review", "observe_target_defined"]
    assert driver.run.replans == 0
    assert driver.work_until().run.status is State.COMPLETE


def test_a_changed_requirement_during_review_goes_the_seeds_way() -> None:
    driver = executing().work_until(Purpose.REVIEW)
    driver.send(commands.ChangeRequirement("run_1", "more"))
    assert "requirement_changed_or_blocked" in driver.moves
    assert driver.run.replans == 0


def test_the_requirement_cannot_change_before_there_is_a_plan_or_while_a_person_is_asked() -> None:
    for driver in (Driver().submit(), Driver(confidence=0.1).submit()):
        assert driver.run.status not in CHANGEABLE
        with pytest.raises(Refusal):
            driver.send(commands.ChangeRequirement("run_1", "more"))


def test_a_late_answer_of_a_peer_changes_nothing() -> None:
    driver = executing()
    before = driver.run
    driver.send(commands.CallAnswered("run_1", events.EpicStored("c1", "another")))
    driver.send(commands.CallRefused("run_1", "c99", "no"))
    assert driver.run == before


def test_an_answer_to_a_call_made_before_the_requirement_changed_is_out_of_date() -> None:
    driver = executing()
    assignment = driver.open()[0]
    driver.hand_in(assignment, commands.StageResult("FAIL"))
    driver.send(commands.TimerFired("run_1", "pipelines"))
    call_id = driver.effects[0].data.call_id
    driver.send(commands.ChangeRequirement("run_1", "more"))
    before = driver.run
    driver.send(commands.CallRefused("run_1", call_id, "gone"))
    assert driver.run == before


def test_auto_resume_starts_the_next_epic_after_complete() -> None:
    driver = Driver(auto_resume=True).submit().settle().work_until()
    assert [effect.kind for effect in driver.told] == [Call.REPORT_OUTCOME, Call.START_NEXT]


def test_a_run_that_is_not_there_is_not_found() -> None:
    with pytest.raises(Refusal) as caught:
        Driver().send(commands.Cancel("run_1", ""))
    assert caught.value.reason is Reason.NOT_FOUND


def test_an_unknown_question_leaves_all_agents_undisturbed() -> None:
    driver = Driver(ALL).submit().settle()
    assert driver.run.question is None
    with pytest.raises(Refusal):
        driver.send(commands.Answer("run_1", "q1", Reply.RAISE))
    assert driver.open()
