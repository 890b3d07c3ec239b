"""A run with a crew of its own: it waits for it, plans until the plan can be carried out, and starts nobody in vain."""

from dataclasses import replace

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import WRITING, Capability, Purpose, Question, Reply, State
from pointsman.services.orchestrator.domain.model import Plan
from pointsman.services.orchestrator.domain.planning import plan_problems
from tests.unit.orchestrator.driver import NOBODY, Driver, outline, plan

CREW = (
    Capability.PLAN, Capability.RESEARCH, Capability.CODE, Capability.REVIEW, Capability.VERIFY, Capability.SURVEY,
)  # fmt: skip


def crewed(**order: object) -> Driver:
    """A run whose crew has not polled yet."""
    return (
        Driver(NOBODY, **{"crew": CREW, "reserved": True, "parallel": 2, "repository_id": "repo", **order})
        .submit()
        .settle()
    )


def tangled() -> Plan:
    """A plan with a problem of every kind."""
    first = replace(outline("T1"), depends=("T2",), files=("../x", "src/a.py"))
    second = replace(outline("T2"), depends=("T1", "T7"), files=("/etc",))
    return Plan((first, second, outline("T2")), (), 0.9, "{}")


def test_a_run_waits_for_the_crew_that_was_promised() -> None:
    driver = crewed()
    (waiting,) = driver.open()
    assert waiting.purpose is Purpose.PLAN
    driver.hand_in(waiting, commands.PlanResult(plan("T1", slots=())))
    assert [item.slot for item in driver.open(Purpose.RESEARCH)] == ["survey"]


def test_a_plan_comes_back_with_all_its_problems_twice_before_the_work_is_one_task() -> None:
    driver = crewed()
    assignment = driver.open(Purpose.PLAN)[0]
    for _ in range(3):
        outcome = driver.hand_in(assignment, commands.PlanResult(tangled()))
        assert not outcome.accepted
        for problem in (
            "the task id T2 is used twice", "the criterion id T2-C1 is used twice", "T2 depends on T7, which is no task",
            "T1: '../x' is no path below the repository", "T2: '/etc' is no path below the repository",
            "tasks wait for each other in a circle: T",
        ):  # fmt: skip
            assert problem in outcome.problem
        if driver.open(Purpose.PLAN):
            assert driver.open(Purpose.PLAN)[0].setbacks[-1].endswith(outcome.problem)
    assert driver.run.plan_built_in
    assert [risk.key for risk in driver.run.risks] == ["planner-lost"]


def test_a_patch_may_depend_on_an_accepted_task_that_it_leaves_out() -> None:
    driver = crewed().work_until(Purpose.VERIFY)
    driver.hand_in(driver.open(Purpose.VERIFY)[0], driver.good_verification())
    accepted = next(iter(driver.run.tasks))
    later = Plan((replace(outline("T9"), depends=(accepted,)),), (), 0.9, "{}")
    assert plan_problems(later, driver.run) == []


def test_a_wave_is_as_wide_as_the_coders_are_many() -> None:
    driver = crewed()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2", "T3", slots=())))
    driver.work_until(Purpose.STAGE)
    assert driver.run.wave == ("T1", "T2")


def asked(**order: object) -> Driver:
    """A run whose plan a person wants to see."""
    driver = crewed(review_plan=True, **order)
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2", slots=())))
    return driver


def test_a_person_sees_the_plan_before_the_work_begins_and_says_yes() -> None:
    driver = asked()
    assert driver.run.question is not None
    assert (driver.run.status, driver.run.question.kind) == (State.PLAN_REVIEW, Question.DEBATE)
    assert driver.run.question.subjects == ("T1: task T1", "T2: task T2")
    driver.reply(Reply.PROCEED)
    assert driver.run.plan_approved
    assert [item.slot for item in driver.open(Purpose.RESEARCH)] == ["survey"]


def test_a_person_brings_another_plan_and_is_asked_again_about_that_one() -> None:
    driver = asked()
    driver.reply(Reply.MODIFY, plan=plan("T5", slots=()), principal="operator")
    assert driver.run.question is not None
    assert (driver.run.status, driver.run.question.subjects) == (State.PLAN_REVIEW, ("T5: task T5",))
    assert [item.slot for item in driver.reply(Reply.PROCEED).open(Purpose.RESEARCH)] == ["survey"]


def test_a_person_s_plan_that_cannot_be_carried_out_is_refused_with_all_its_problems() -> None:
    driver = asked()
    with pytest.raises(Refusal, match="T2 is used twice") as caught:
        driver.reply(Reply.MODIFY, plan=tangled())
    assert "which is no task" in str(caught.value)
    with pytest.raises(Refusal, match="goes with MODIFY"):
        driver.reply(Reply.PROCEED, plan=plan("T5"))


def test_a_person_says_what_is_to_change_and_the_planner_is_asked_again() -> None:
    driver = asked().reply(Reply.MODIFY, text="smaller steps")
    (again,) = driver.open()
    assert (again.purpose, driver.run.reasons[-1:]) == (Purpose.PLAN, ("smaller steps",))
    driver.hand_in(again, commands.PlanResult(plan("T8", slots=())))
    assert driver.run.question is not None
    assert driver.run.question.subjects == ("T8: task T8",)


def test_a_yes_counts_for_the_plan_that_was_shown_alone() -> None:
    driver = asked().reply(Reply.PROCEED)
    driver.send(commands.ChangeRequirement("run_1", "and more"))
    driver.settle()
    driver.hand_in(driver.open(Purpose.PATCH)[0], commands.PlanResult(plan("T9", slots=())))
    assert not driver.run.plan_approved
    assert driver.run.question is not None


@pytest.mark.parametrize("writer", sorted(WRITING))
def test_three_reviewed_tasks_start_no_more_agents_than_planner_surveyor_coders_and_reviewers(
    writer: Capability,
) -> None:
    driver = crewed(resolver=writer is Capability.RESOLVE, crew=(*CREW, Capability.RESOLVE))
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2", "T3", slots=(), command=True)))
    while driver.open():
        waiting = driver.open()[0]
        result = driver.good_result(waiting)
        if waiting.capability is writer:
            result = replace(result, work=replace(result.work, result_commit=f"commit-of-{waiting.task_id}"))
        driver.hand_in(waiting, result, str(waiting.capability))
    assert driver.run.status is State.COMPLETE
    started = [event.data.assignment.capability for event in driver.journal if event.name == "assigned"]
    by_model = [one for one in started if one is not Capability.VERIFY]
    assert len(by_model) <= 3 * 2 + 2
    assert sorted(set(by_model)) == sorted({Capability.PLAN, Capability.RESEARCH, writer, Capability.REVIEW})
