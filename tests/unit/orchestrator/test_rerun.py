"""Doing a run again: from its plan, from a wave, from a task; what was accepted stays, what was not is done anew."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import Capability, Purpose, Reply, State
from pointsman.services.orchestrator.domain.model import Plan
from pointsman.services.orchestrator.domain.rerun import Moment, Point, Restart, moments, restart
from tests.unit.orchestrator.driver import ALL, START, Driver, outline

BUNDLE = '{"sha256": "' + "b" * 64 + '"}'
WITHOUT_CRITIC = ALL - {Capability.DEBATE, Capability.DESIGN}


def three_tasks(*, built_in: bool = False) -> Plan:
    """T2 waits for T1, T3 for T2."""
    tasks = (
        outline("T1"),
        replace(outline("T2"), depends=("T1",), files=("a.py",)),
        replace(outline("T3"), depends=("T2", "T1")),
    )
    document = {
        "tasks": [{"id": task.task_id, "name": task.name, "depends": list(task.depends)} for task in tasks],
        "confidence": 0.9,
    }
    return Plan(tasks, (), 0.9, json.dumps(document), built_in=built_in)


def begun(**order: Any) -> Driver:
    """A run with a plan of three tasks that are done one after the other."""
    terms = {"parallel": 1, "repository_id": "repo", "base_commit": "0" * 40, "project": "local", **order}
    driver = Driver(WITHOUT_CRITIC, **terms).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(three_tasks()))
    return driver


def accept_wave(driver: Driver, commit: str) -> None:
    """Work up to the verification of the wave, and accept all of it."""
    driver.work_until(Purpose.VERIFY)
    verified = replace(driver.good_verification(), accepted_commit=commit * 40, bundle=BUNDLE)
    driver.hand_in(driver.open(Purpose.VERIFY)[0], verified)


def two_of_three(**order: Any) -> Driver:
    """A run that was cancelled when two of its tasks were accepted and the third was at work."""
    driver = begun(**order)
    accept_wave(driver, "1")
    accept_wave(driver, "2")
    driver.work_until(Purpose.STAGE)
    driver.send(commands.Cancel("run_1", "enough"))
    return driver


def past(driver: Driver) -> list[Moment]:
    return moments((event, START) for event in driver.journal)


def again(driver: Driver, point: Point) -> Restart:
    return restart(past(driver), point)


def started(terms: Restart, present: frozenset[Capability] = WITHOUT_CRITIC) -> Driver:
    """The new run, as far as it gets without an agent."""
    driver = Driver(present)
    driver.order = terms.order
    driver.send(commands.Submit("run_1", "add a flag", terms.order, driver.budget, terms.plan))
    return driver.settle()


@pytest.mark.parametrize(
    ("point", "commit", "left"),
    [
        (Point(wave=1), "", ["T1", "T2", "T3"]),
        (Point(wave=2), "1" * 40, ["T2", "T3"]),
        (Point(wave=3), "2" * 40, ["T3"]),
        (Point(task_id="T2"), "1" * 40, ["T2", "T3"]),
        (Point(task_id="T3"), "2" * 40, ["T3"]),
    ],
)
def test_a_point_has_its_accepted_commit_and_the_tasks_that_were_left(
    point: Point, commit: str, left: list[str]
) -> None:
    terms = again(two_of_three(), point)
    assert terms.order.origin is not None
    assert (terms.order.origin.run_id, terms.order.origin.point) == ("run_1", str(point))
    assert (terms.order.origin.accepted_commit, terms.order.base_commit) == (commit, "0" * 40)
    assert terms.order.origin.accepted_bundle == (BUNDLE if commit else "")
    assert terms.plan is not None
    assert [task.task_id for task in terms.plan.tasks] == left
    written = json.loads(terms.plan.document)["tasks"]
    assert [task["id"] for task in written] == left
    assert all(name in left for task in written for name in task["depends"])
    assert all(name in left for task in terms.plan.tasks for name in task.depends)


def test_the_new_run_works_on_the_accepted_commit_with_the_plan_that_was_left_and_asks_no_planner() -> None:
    new = started(again(two_of_three(), Point(wave=2)))
    assert new.run.accepted_commit == "1" * 40
    assert new.run.accepted_bundle == BUNDLE
    assert list(new.run.tasks) == ["T2", "T3"]
    assert not new.open(Purpose.PLAN)
    assert new.run.earlier_plan is None
    new.work_until(Purpose.VERIFY)
    assert new.run.wave == ("T2",)


def test_from_the_plan_a_run_is_planned_anew_on_its_base() -> None:
    terms = again(two_of_three(), Point())
    assert (terms.plan, terms.order.origin and terms.order.origin.accepted_commit) == (None, "")
    new = started(terms)
    assert new.run.accepted_commit == ""
    assert [item.purpose for item in new.open()] == [Purpose.PLAN]


def test_a_later_plan_of_the_new_run_is_the_planners() -> None:
    new = started(again(two_of_three(), Point(wave=3)))
    new.work_until(Purpose.STAGE)
    new.send(commands.ChangeRequirement("run_1", "another thing"))
    new.settle()
    assert [item.purpose for item in new.open()] == [Purpose.PATCH]


def test_a_story_names_its_first_run_however_long_it_gets() -> None:
    driver = two_of_three()
    first = again(driver, Point(wave=2))
    second = started(first)
    second.send(commands.Cancel("run_1", "enough"))
    third = again(second, Point())
    assert third.order.origin is not None
    assert third.order.origin.first_run_id == "run_1"


def test_a_task_that_was_never_begun_goes_on_at_the_end() -> None:
    driver = begun()
    accept_wave(driver, "1")
    driver.work_until(Purpose.STAGE)
    driver.send(commands.Cancel("run_1", "enough"))
    terms = again(driver, Point(task_id="T3"))
    assert terms.plan is not None
    assert terms.order.origin is not None
    assert [task.task_id for task in terms.plan.tasks] == ["T2", "T3"]
    assert terms.order.origin.accepted_commit == "1" * 40


@pytest.mark.parametrize("end", [State.COMPLETE, State.CANCELLED, State.FAILED])
def test_a_run_can_be_done_again_however_it_ended(end: State) -> None:
    driver = begun() if end is State.COMPLETE else two_of_three()
    for commit in "123" if end is State.COMPLETE else "":
        accept_wave(driver, commit)
    if end is State.FAILED:
        driver = begun()
        driver.run.budget = replace(driver.run.budget, transitions=driver.run.spent.transitions)
        driver.hand_in(driver.open()[0], driver.good_result(driver.open()[0]))
    assert driver.run.status is end
    assert started(again(driver, Point())).open(Purpose.PLAN)


def refused(driver: Driver, point: Point) -> Refusal:
    with pytest.raises(Refusal) as caught:
        again(driver, point)
    return caught.value


def test_a_point_that_is_not_there_is_refused_with_those_that_are() -> None:
    driver = two_of_three()
    no_wave, no_task = refused(driver, Point(wave=4)), refused(driver, Point(task_id="T9"))
    assert "no wave 4: it had 3 (1: T1; 2: T2; 3: T3)" in no_wave.message
    assert "no task 'T9'; its tasks are T1, T2, T3" in no_task.message
    assert no_wave.reason is no_task.reason is Reason.INVALID_FIELD
    early = Driver(WITHOUT_CRITIC).submit().settle()
    early.send(commands.Cancel("run_1", "enough"))
    assert "it had none; go on from its plan" in refused(early, Point(wave=1)).message
    assert "ended before it had a plan" in refused(early, Point(task_id="T1")).message


def test_a_run_that_lives_is_not_done_again() -> None:
    found = refused(begun(), Point())
    assert found.reason is Reason.STATE_FORBIDS
    assert "cancel it first" in found.message


def test_what_tied_the_old_run_to_others_is_not_taken_over() -> None:
    terms = again(
        two_of_three(parent_entry="entry_1", session_id="s", crew=(Capability.CODE,), reserved=True), Point(wave=1)
    )
    kept = terms.order
    assert (kept.parent_entry, kept.crew, kept.reserved, kept.epic_id) == ("", (), False, "")
    assert kept.session_id == "s"


def test_a_plan_that_a_person_approved_is_not_asked_about_again() -> None:
    driver = begun(review_plan=True)
    driver.reply(Reply.PROCEED)
    accept_wave(driver, "1")
    driver.send(commands.Cancel("run_1", "enough"))
    new = started(again(driver, Point(wave=2)))
    assert new.run.question is None
    assert new.run.plan_approved
    unseen = begun(review_plan=True)
    unseen.send(commands.Cancel("run_1", "enough"))
    assert started(again(unseen, Point(task_id="T1"))).run.question is not None


def test_a_plan_that_the_user_brought_is_the_plan_again() -> None:
    driver = Driver(WITHOUT_CRITIC, review_plan=True, brings_plan=True).submit().settle()
    driver.reply(Reply.MODIFY, plan=three_tasks())
    driver.reply(Reply.PROCEED)
    driver.send(commands.Cancel("run_1", "enough"))
    terms = again(driver, Point())
    assert terms.plan is not None
    assert [task.task_id for task in terms.plan.tasks] == ["T1", "T2", "T3"]
    assert not terms.order.brings_plan
    assert started(terms).run.question is None
