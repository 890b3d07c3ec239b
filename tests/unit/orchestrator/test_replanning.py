"""Re-plans whose planner keeps a task's id: attempts go on counting, the allowance of retries starts anew."""

from itertools import product

from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import Call, Purpose, Reply, State, TaskStatus, Verdict
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.run import MAX_REJECTIONS, RunState
from tests.unit.orchestrator.driver import ALL, START, Driver, plan


def coding(*task_ids: str) -> Driver:
    """A run whose coders are at work on a plan."""
    driver = Driver(ALL).submit().settle()
    return to_code(driver, *task_ids)


def to_code(driver: Driver, *task_ids: str) -> Driver:
    """The planner hands in these tasks, and the run goes on to the coders."""
    assignment = driver.work_until(Purpose.PLAN, Purpose.PATCH).open()[0]
    driver.hand_in(assignment, commands.PlanResult(plan(*task_ids)))
    return driver.work_until(Purpose.STAGE)


def change(driver: Driver) -> Driver:
    """A person changes what is wanted."""
    driver.send(commands.ChangeRequirement("run_1", "and more"))
    return driver.settle()


REASONS = map("".join, product("abcdefghij", repeat=3))
"""Another reason each time: the same one twice would bring a person in."""


def reject(driver: Driver) -> None:
    """The reviewer of the only task wants it done again."""
    driver.work_until(Purpose.REVIEW)
    driver.hand_in(driver.open(Purpose.REVIEW)[0], commands.ReviewResult(Verdict.RETRY, feedback=(next(REASONS),)))


def test_a_task_that_keeps_its_id_over_a_re_plan_goes_on_counting_its_attempts() -> None:
    driver = to_code(change(coding("P31")), "P31")
    assert driver.is_in(State.CODER_EXEC)
    assert (driver.run.tasks["P31"].attempt, driver.run.tasks["P31"].pipeline_id) == (2, "run_1/P31/2")


def test_a_task_that_a_plan_leaves_out_and_a_later_one_takes_up_again_goes_on_counting() -> None:
    driver = to_code(change(coding("A", "B")), "A")
    driver = to_code(change(driver), "A", "B")
    assert driver.is_in(State.CODER_EXEC)
    assert {key: task.pipeline_id for key, task in driver.run.tasks.items()} == {"A": "run_1/A/3", "B": "run_1/B/2"}


def test_the_allowance_of_retries_starts_anew_with_a_re_plan_and_with_a_persons_answer() -> None:
    driver = coding("T1")
    for _ in range(MAX_REJECTIONS):
        reject(driver)
    to_code(change(driver), "T1")
    assert driver.run.tasks["T1"].rejections == ()
    for _ in range(MAX_REJECTIONS):
        reject(driver)
        assert driver.is_in(State.CODER_EXEC)
    reject(driver)
    assert driver.is_in(State.ASK_SWITCH)
    to_code(driver.reply(Reply.CLARIFIED, text="as it says"), "T1")
    reject(driver)
    assert driver.is_in(State.CODER_EXEC)
    assert driver.run.tasks["T1"].attempt == 2 * (MAX_REJECTIONS + 1) + 2


def test_no_pipeline_is_started_twice_however_often_a_run_is_planned() -> None:
    driver = coding("T1", "T2")
    for _ in range(3):
        to_code(change(driver), "T1", "T2")
    calls = [event.data.call for event in driver.journal if isinstance(event.data, events.Called)]
    assert calls.count(Call.START_PIPELINE) == len(driver.pipelines) == 8
    assert "dispatch_failed" not in driver.moves


def test_a_journal_of_before_attempts_went_on_counting_folds_as_it_did() -> None:
    driver = to_code(change(coding("T1")), "T1")
    state: RunState | None = None
    for event in driver.journal:
        data = events.Planned(event.data.plan) if isinstance(event.data, events.Planned) else event.data
        state = MACHINE.apply(state, Event(event.name, event.source, event.target, data), START)
    assert state is not None
    assert (state.run.tasks["T1"].attempt, state.run.attempts) == (1, {})


def test_a_retry_that_the_workflow_does_not_allow_any_more_brings_a_person_in() -> None:
    driver = coding("T1", "T2").work_until(Purpose.REVIEW)
    bad, good = driver.open(Purpose.REVIEW)
    driver.hand_in(bad, commands.ReviewResult(Verdict.RETRY, feedback=(next(REASONS),)))
    epoch = driver.lease(good.assignment_id)
    passed = commands.ReviewResult(Verdict.PASS)
    driver.send(commands.CompleteAssignment("run_1", good.assignment_id, epoch, "agent", passed))
    while driver.effects[0].kind != Call.SETTLE_WAVE:
        driver._deliver(driver.effects.pop(0))
    driver.refuse_next("task 'T1' was retried 3 times; skip it or re-plan").settle()
    assert driver.is_in(State.ASK_SWITCH)
    assert driver.run.tasks["T2"].status is TaskStatus.ACCEPTED
    assert driver.moves[-2:] == ["requirement_changed_or_blocked", "confidence_lt_0_6"]
    driver.pending = []
    to_code(driver.reply(Reply.CLARIFIED, text="as it says"), "T1")
    assert driver.run.tasks["T1"].attempt == 2


def test_accepted_work_that_the_workflow_refuses_to_record_ends_the_run() -> None:
    driver = coding("T1").work_until(Purpose.REVIEW)
    review = driver.open(Purpose.REVIEW)[0]
    epoch = driver.lease(review.assignment_id)
    passed = commands.ReviewResult(Verdict.PASS)
    driver.send(commands.CompleteAssignment("run_1", review.assignment_id, epoch, "agent", passed))
    driver.refuse_next("the workflow is gone")
    assert driver.is_in(State.FAILED)
