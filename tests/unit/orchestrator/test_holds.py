"""Work holds its share of the budget from its start until it is known what it used."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import Purpose, Question, Reply, State
from pointsman.services.orchestrator.domain.model import NOTHING_SPENT, Assignment, Budget, Usage
from pointsman.services.orchestrator.domain.spending import held_by
from pointsman.services.orchestrator.domain.waiting import waiting_for
from tests.unit.orchestrator.driver import ALL, Driver, plan

TASKS = ("T1", "T2", "T3", "T4", "T5")


def coding(**limits: int) -> Driver:
    """Five tasks whose coders are about to start; nothing before them was paid for."""
    driver = Driver(ALL).with_budget(**limits).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(*TASKS)))
    return driver.work_until(Purpose.STAGE)


def coders(driver: Driver) -> list[Assignment]:
    return [item for item in driver.open(Purpose.STAGE) if item.stage == "DEV"]


def hand_in(driver: Driver, item: Assignment, **used: int) -> None:
    epoch = driver.lease(item.assignment_id, "coder")
    result, usage = driver.good_result(item), Usage(**used)
    driver.send(commands.CompleteAssignment("run_1", item.assignment_id, epoch, "coder", result, usage))
    driver.settle()


def fail(driver: Driver, item: Assignment, why: str, **used: int) -> None:
    epoch = driver.lease(item.assignment_id, "coder")
    driver.send(commands.FailAssignment("run_1", item.assignment_id, epoch, "coder", why, usage=Usage(**used)))
    driver.settle()


@pytest.mark.parametrize("limit", ["tokens", "cost_micros"])
def test_the_first_of_a_kind_holds_all_that_is_left_and_the_others_as_much_as_it_used(limit: str) -> None:
    driver = coding(**{limit: 1000})
    (first,) = coders(driver)
    assert first.holds == Usage(**{limit: 1000})
    assert len(driver.run.held) == 4
    assert driver.run.question is None, "nobody is asked: it goes on by itself"
    waiting = waiting_for(driver.run)
    assert waiting is not None
    assert "4 more when the budget has room" in waiting.action
    hand_in(driver, first, **{limit: 300})
    assert [item.holds for item in coders(driver)] == [Usage(**{limit: 300})] * 2
    assert len(driver.run.held) >= 2
    assert held_by(driver.run) == Usage(**{limit: 600}), "300 are spent, 100 are left for nobody"


def test_without_a_limit_nothing_is_held() -> None:
    driver = coding()
    assert len(coders(driver)) == 5
    assert (held_by(driver.run), driver.run.held, driver.run.dearest) == (NOTHING_SPENT, (), {})


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_what_is_spent_beyond_the_limit_was_held_by_work_that_ran(data: st.DataObject) -> None:
    """Where no start uses more than the dearest of its kind before it, one start alone passes the limit."""
    limit, dearest = data.draw(st.integers(500, 3000)), 300
    driver = coding(tokens=limit)
    hand_in(driver, coders(driver)[0], tokens=dearest)
    while driver.run.question is None and driver.open():
        held, paid = held_by(driver.run).tokens, [item for item in driver.open() if item.holds.tokens]
        assert driver.run.spent.tokens + held <= limit or len(paid) <= 1
        item = data.draw(st.sampled_from(driver.open()))
        hand_in(driver, item, tokens=data.draw(st.integers(0, min(item.holds.tokens, dearest))))
        assert driver.run.spent.tokens <= limit + dearest
    assert driver.run.status is State.COMPLETE or driver.run.spent.tokens >= limit


def test_an_attempt_that_used_up_the_limit_is_not_followed_by_another() -> None:
    driver = coding(tokens=1000)
    (first,) = coders(driver)
    fail(driver, first, "cannot", tokens=1000)
    assert coders(driver) == []
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.BUDGET
    driver.reply(Reply.RAISE, budget=Budget(0, 0, 0, 10_000, 0, 0.0))
    assert len(coders(driver)) == 5, "1,000 for each of five, and 1,000 are spent"


def test_a_failure_that_used_nothing_says_nothing_about_what_such_work_uses() -> None:
    driver = coding(tokens=1000)
    fail(driver, coders(driver)[0], "no login")
    assert [item.holds.tokens for item in coders(driver)] == [1000]


def test_an_agent_that_says_it_used_nothing_frees_what_it_held_and_nothing_more() -> None:
    driver = coding(tokens=1000)
    hand_in(driver, coders(driver)[0], tokens=0)
    assert len(coders(driver)) == 4
    hand_in(driver, coders(driver)[0], tokens=400)
    assert driver.run.dearest["CODE"].tokens == 400


def test_work_that_was_held_back_and_dropped_leaves_no_name_for_another() -> None:
    driver = coding(tokens=1000)
    names = {item.assignment_id for item in (*coders(driver), *driver.run.held)}
    driver.send(commands.ChangeRequirement("run_1", "something else"))
    driver.settle()
    assert driver.run.held == ()
    again = {item.assignment_id for item in driver.open()}
    assert again
    assert not again & names
