"""Permissions of agents at work: asked once, one at a time, answered for whoever holds the lease, gone with the assignment."""

from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import (
    Capability,
    PermissionState,
    Purpose,
    Question,
    Reply,
    State,
)
from pointsman.services.orchestrator.domain.model import Assignment, Budget
from pointsman.services.orchestrator.domain.permission_requests import MAX_REQUESTS
from tests.unit.orchestrator.driver import MOCKS, Driver, plan

PENDING, ALLOWED, DENIED = PermissionState.PENDING, PermissionState.ALLOWED, PermissionState.DENIED


def working(*tasks: str) -> tuple[Driver, list[Assignment]]:
    """A run whose coders are at work."""
    driver = Driver(MOCKS | {Capability.PLAN}).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(*(tasks or ("T1",)))))
    driver.work_until(Purpose.STAGE)
    coding = driver.open(Purpose.STAGE)
    for item in coding:
        driver.lease(item.assignment_id)
    return driver, coding


def ask(driver: Driver, item: Assignment, what: str = "fetch: the index", **changed: Any) -> PermissionState:
    held = driver.leases[item.assignment_id]
    given = {"epoch": held.epoch, "agent_id": held.agent_id, "key": what, **changed}
    answer = driver.send(commands.RequestPermission("run_1", item.assignment_id, text=what, **given))
    assert isinstance(answer, commands.PermissionOutcome)
    return answer.state


def asked(driver: Driver) -> tuple[str, Question] | None:
    question = driver.run.question
    return (question.question_id, question.kind) if question else None


@pytest.mark.parametrize(("reply", "state"), [(Reply.ALLOW, ALLOWED), (Reply.DENY, DENIED)])
def test_a_request_is_one_question_and_its_answer_is_for_every_lease_of_the_assignment(
    reply: Reply, state: PermissionState
) -> None:
    driver, (item,) = working()
    assert ask(driver, item) is PENDING
    question = driver.run.question
    assert question is not None
    assert question.kind is Question.PERMISSION
    assert "T1/DEV asks for permission to fetch: the index" in question.text
    rows = len(driver.journal)
    driver.lease(item.assignment_id, "another")
    assert ask(driver, item) is PENDING
    assert len(driver.journal) == rows, "who takes over asks for the same, and nobody is asked twice"
    driver.reply(reply)
    assert driver.run.question is None
    driver.lease(item.assignment_id, "a third")
    assert ask(driver, item) is state
    assert driver.run.question is None
    assert driver.is_in(State.CODER_EXEC)


def test_several_agents_are_answered_one_after_the_other_behind_other_questions() -> None:
    driver, (first, second) = working("T1", "T2")
    driver.now = driver.timers["wall_clock"]
    driver.fire("wall_clock")
    assert [ask(driver, first), ask(driver, second), ask(driver, first, "execute: make")] == [PENDING] * 3
    assert asked(driver) == ("q1", Question.BUDGET)
    driver.reply(Reply.RAISE, budget=Budget(wall_clock_seconds=10**6))
    assert asked(driver) == ("q2", Question.PERMISSION)
    driver.reply(Reply.ALLOW)
    assert asked(driver) == ("q3", Question.PERMISSION)
    driver.reply(Reply.DENY)
    driver.reply(Reply.ALLOW)
    answers = [ask(driver, first), ask(driver, second), ask(driver, first, "execute: make")]
    assert (answers, asked(driver)) == ([ALLOWED, DENIED, ALLOWED], None)


def test_an_assignment_that_ends_takes_its_question_with_it_and_the_next_one_is_asked() -> None:
    driver, (first, second) = working("T1", "T2")
    ask(driver, first)
    ask(driver, second)
    assert asked(driver) == ("q1", Question.PERMISSION)
    done = commands.CompleteAssignment(
        "run_1", first.assignment_id, driver.leases[first.assignment_id].epoch, "agent", driver.good_result(first)
    )
    driver.send(done)
    assert asked(driver) == ("q2", Question.PERMISSION)
    with pytest.raises(Refusal, match="closed"):
        driver.send(commands.Answer("run_1", "q1", Reply.ALLOW))
    driver.send(commands.ChangeRequirement("run_1", "and another flag"))
    assert asked(driver) is None
    assert driver.run.permissions == {}


def test_work_that_the_budget_held_back_meanwhile_is_asked_about_when_the_question_has_gone() -> None:
    driver, (first, second) = working("T1", "T2")
    ask(driver, first)
    driver.budget = driver.run.budget
    assert driver.state is not None
    driver.state.run.change(budget=Budget(assignments=driver.run.spent.assignments))
    driver.send(
        commands.CompleteAssignment(
            "run_1",
            second.assignment_id,
            driver.leases[second.assignment_id].epoch,
            "agent",
            driver.good_result(second),
        )
    )
    driver.settle()
    assert driver.run.held
    assert asked(driver) == ("q1", Question.PERMISSION)
    driver.send(
        commands.CompleteAssignment(
            "run_1", first.assignment_id, driver.leases[first.assignment_id].epoch, "agent", driver.good_result(first)
        )
    )
    assert asked(driver) == ("q2", Question.BUDGET)


def test_an_agent_that_asks_for_ever_is_denied_without_a_person() -> None:
    driver, (item,) = working()
    for number in range(MAX_REQUESTS):
        assert ask(driver, item, f"execute: {number}") is PENDING
    assert ask(driver, item, "execute: one more") is DENIED
    assert len(driver.run.permissions) == MAX_REQUESTS


@pytest.mark.parametrize("changed", [{"epoch": 9}, {"agent_id": "another"}])
def test_nobody_asks_in_the_name_of_another(changed: dict[str, Any]) -> None:
    driver, (item,) = working()
    with pytest.raises(Refusal) as refused:
        ask(driver, item, **changed)
    assert refused.value.reason is Reason.LEASE_LOST
