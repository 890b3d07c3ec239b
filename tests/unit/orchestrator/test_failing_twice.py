"""Agents that fail twice in the same way: no third is started, and a person learns why."""

import pytest

from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import Purpose, Question, Reply, State
from pointsman.services.orchestrator.domain.failures import failed_alike
from tests.unit.orchestrator.driver import ALL, Driver, plan

MISSING = "claims.json: is missing; the command has to write it into the folder $POINTSMAN_HANDOFF"


def failing(driver: Driver, purpose: Purpose, reason: str = MISSING) -> int:
    """Has every agent for a purpose fail until a person is asked; how many were started."""
    starts = 0
    while driver.run.question is None and driver.open(purpose):
        assignment = driver.open(purpose)[0].assignment_id
        starts += 1
        driver.send(commands.FailAssignment("run_1", assignment, driver.lease(assignment), "agent", reason))
        driver.settle()
    return starts


def planned() -> Driver:
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    return driver


def test_a_coder_that_never_writes_its_claims_is_started_twice_and_both_starts_are_paid() -> None:
    driver = planned().work_until(Purpose.STAGE)
    before = driver.run.spent.assignments - 1  # the first start is counted with the assignment
    assert failing(driver, Purpose.STAGE) == 2
    assert driver.run.spent.assignments == before + 2
    asked = driver.run.question
    assert asked is not None
    assert asked.kind is Question.LOW_CONFIDENCE
    assert "twice for the same reason (claims.json: is missing; the command has to write it" in asked.text
    driver.reply(Reply.CLARIFIED, text="the agent was repaired")
    assert driver.work_until(Purpose.STAGE).open(Purpose.STAGE), "an answer lets it be tried again"


def test_a_planner_that_never_writes_a_plan_is_started_twice_and_no_coder_is_paid() -> None:
    driver = Driver(ALL).submit().settle()
    assert failing(driver, Purpose.PLAN, "plan.json: is missing") == 2
    assert driver.is_in(State.ASK_SWITCH)
    assert driver.run.question is not None
    assert "no planner finished, twice for the same reason (plan.json: is missing)" in driver.run.question.text
    driver.reply(Reply.CLARIFIED, text="the planner was repaired")
    assert driver.open(Purpose.PLAN)


def test_a_researcher_that_never_reports_is_started_twice_and_the_question_is_named() -> None:
    driver = planned()
    assert failing(driver, Purpose.RESEARCH, "summary.md: is missing") == 2
    assert driver.run.question is not None
    assert "nobody could find out: " in driver.run.question.text
    assert "summary.md: is missing" in driver.run.question.text


@pytest.mark.parametrize(
    ("setbacks", "alike"),
    [
        ((), False),
        (("a.json: is missing",), False),
        (("a.json: is missing", "a.json: is missing"), True),
        (("it ended with exit code 1 /tmp/x1", "it ended with exit code 2 /tmp/x2"), True),
        (("a.json: is missing", "b.json: is missing"), False),
        (("a.json: is missing", "b.json: is missing", "b.json: is missing"), True),
        (("plan.tasks: T1 is used twice", "plan.tasks: T1 is used twice"), False),
    ],
)
def test_the_last_two_failures_are_compared_by_their_words(setbacks: tuple[str, ...], alike: bool) -> None:
    assert failed_alike(setbacks) is alike
