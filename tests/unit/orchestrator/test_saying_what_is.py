"""What a run says of itself: why it waits, what came of attempts, what was started, which tasks are at work."""

from typing import Any

from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import Purpose, Question, Reply, State, WorkflowStatus
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.domain.views import RunView
from pointsman.services.orchestrator.wire import encode
from tests.unit.orchestrator.driver import ALL, Driver, plan


def coding(*task_ids: str, **budget: Any) -> Driver:
    driver = Driver(ALL).with_budget(**budget).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(*task_ids)))
    return driver.work_until(Purpose.STAGE)


def reason_of(driver: Driver, event_name: str) -> str:
    """Why the run last moved in this way."""
    reasons = [event.data.reason for event in driver.journal if event.name == event_name]
    return str(reasons[-1])


def scheduled(status: WorkflowStatus, detail: str) -> Driver:
    """A run whose workflow answers so when it is executed."""
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    driver.work_until(Purpose.DESIGN)
    assignment = driver.open()[0]
    epoch = driver.lease(assignment.assignment_id)
    driver.send(
        commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", commands.DesignResult("{}"))
    )
    call_id = driver.effects.pop(0).data.call_id
    driver.send(commands.CallAnswered("run_1", events.WorkflowSeen(call_id, status, detail)))
    return driver


def test_a_pause_is_called_a_pause_with_its_reason() -> None:
    driver = scheduled(WorkflowStatus.PAUSED, "task 'T1' is done")
    assert driver.is_in(State.QUEUE)
    assert reason_of(driver, "resource_busy") == "the workflow is paused: task 'T1' is done"


def test_nothing_to_claim_says_that_no_task_is_ready() -> None:
    driver = coding("T1")
    driver.send(commands.ChangeRequirement("run_1", "more"))
    driver.settle()
    driver.hand_in(driver.open(Purpose.PATCH)[0], commands.PlanResult(plan("T2")))
    driver.pending = []
    driver.work_until(Purpose.STAGE)
    assert reason_of(driver, "resource_busy") == "no task is ready to be started"


def test_the_end_of_attempts_says_what_came_of_each() -> None:
    driver = coding("T1", "T2")
    lost, good = driver.open(Purpose.STAGE)
    driver.lose(lost)
    driver.hand_in(good, driver.good_result(good), "coder")
    driver.work_until(Purpose.REVIEW)
    said = reason_of(driver, "claims_evidence_arrived")
    assert said == "T1 was aborted: DEV: no agent finished (the lease ran out); T2 handed in 1 claim"


def test_every_start_of_an_agent_is_counted_also_after_a_lease_that_ran_out() -> None:
    driver = coding("T1")
    before = driver.run.spent.assignments
    stage = driver.open(Purpose.STAGE)[0]
    driver.lease(stage.assignment_id, "first")
    epoch = driver.lease(stage.assignment_id, "second")
    driver.send(commands.FailAssignment("run_1", stage.assignment_id, epoch, "second", "broken"))
    assert driver.run.spent.assignments == before + 1
    driver.hand_in(stage, driver.good_result(stage), "coder")
    starts_of_stages_after_it = len(driver.open(Purpose.STAGE))
    assert driver.run.spent.assignments == before + 2 + starts_of_stages_after_it


def test_a_permanent_failure_at_the_first_start_is_one_start() -> None:
    driver = coding("T1")
    before = driver.run.spent.assignments
    stage = driver.open(Purpose.STAGE)[0]
    epoch = driver.lease(stage.assignment_id)
    driver.send(commands.FailAssignment("run_1", stage.assignment_id, epoch, "agent", "never", permanent=True))
    assert driver.run.spent.assignments == before


def test_repeated_starts_use_up_the_budget_and_raising_it_goes_on() -> None:
    driver = coding("T1", assignments=6)
    assert driver.run.spent.assignments == 4
    stage = driver.open(Purpose.STAGE)[0]
    driver.lease(stage.assignment_id, "lost")
    driver.hand_in(stage, driver.good_result(stage), "coder")
    assert driver.run.question is not None
    assert driver.run.question.subjects == ("assignments",)
    driver.reply(Reply.RAISE, budget=Budget(assignments=50))
    assert driver.work_until().is_in(State.COMPLETE)


def test_a_task_of_a_run_that_was_cancelled_is_not_shown_as_running() -> None:
    driver = coding("T1", "T2")
    assert [task.status for task in encode.runs.run(RunView(driver.run, 1, 1, 1)).tasks] == ["running", "running"]
    driver.send(commands.Cancel("run_1", "enough"))
    assert [task.status for task in encode.runs.run(RunView(driver.run, 1, 1, 1)).tasks] == ["abandoned", "abandoned"]


def test_another_start_on_the_same_work_needs_room_in_the_budget_too() -> None:
    driver = Driver().with_budget(assignments=2).submit().settle()
    first = driver.open()[0].assignment_id
    for reason in ("no model answers", "no disk"):
        epoch = driver.lease(first)
        driver.send(commands.FailAssignment("run_1", first, epoch, "agent", reason))
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.BUDGET
    assert driver.open() == []
    assert driver.run.spent.assignments == 2
    driver.reply(Reply.RAISE, budget=Budget(100, 0, 0, 0, 0, 0.0))
    (again,) = driver.open()
    assert again.assignment_id != first
    assert again.setbacks == ("no model answers", "no disk")
