"""Who may judge: no author of the work, in any attempt or stage, and nobody who was not granted it."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import Capability, Purpose, Question, Verdict
from pointsman.services.orchestrator.domain.model import Assignment
from pointsman.services.orchestrator.domain.run import Crew
from tests.unit.orchestrator.driver import ALL, MOCKS, Driver


def coded_by(driver: Driver, principal: str) -> Assignment:
    """The next open judgement, after this principal did all writing stages that wait."""
    while (waiting := driver.open()) and waiting[0].purpose is not Purpose.REVIEW:
        item = waiting[0]
        writes = item.capability is Capability.CODE
        driver.hand_in(item, driver.good_result(item), "coder", principal=principal if writes else "reviewer/r")
    return driver.open(Purpose.REVIEW)[0]


def test_every_principal_that_wrote_for_a_task_is_excluded_from_its_reviews_in_all_later_attempts() -> None:
    driver = Driver().submit().settle()
    first = coded_by(driver, "coder/a")
    assert first.excluded_principals == ("coder/a",)
    driver.hand_in(first, commands.ReviewResult(Verdict.RETRY, feedback=("again",)), principal="reviewer/r")
    second = coded_by(driver, "coder/b")
    assert second.excluded_principals == ("coder/a", "coder/b")


def test_a_review_stage_excludes_the_authors_too() -> None:
    driver = Driver().submit().settle()
    while driver.open()[0].capability is not Capability.REVIEW:
        item = driver.open()[0]
        driver.hand_in(item, driver.good_result(item), "coder", principal="coder/a")
    (stage, *_) = driver.open(Purpose.STAGE)
    assert (stage.capability, stage.excluded_principals) == (Capability.REVIEW, ("coder/a",))


def test_a_verification_excludes_the_authors_of_all_tasks_of_its_wave() -> None:
    driver = Driver(repository_id="r1").submit().settle()
    review = coded_by(driver, "coder/a")
    driver.hand_in(review, commands.ReviewResult(Verdict.PASS), principal="reviewer/r")
    (verify,) = driver.open(Purpose.VERIFY)
    assert verify.excluded_principals == ("coder/a",)


def test_whoever_made_or_patched_the_plan_does_not_debate_it() -> None:
    driver = Driver(ALL, debate=True).submit().settle()
    (planning,) = driver.open(Purpose.PLAN)
    driver.hand_in(planning, driver.good_result(planning), principal="planner/p")
    (debate,) = driver.open(Purpose.DEBATE)
    assert debate.excluded_principals == ("planner/p",)


@pytest.mark.parametrize("purpose", [Purpose.REVIEW, Purpose.VERIFY])
def test_an_author_that_holds_the_lease_even_so_cannot_complete_it(purpose: Purpose) -> None:
    driver = Driver(repository_id="r1").submit().settle()
    judging = coded_by(driver, "coder/a")
    if purpose is Purpose.VERIFY:
        driver.hand_in(judging, commands.ReviewResult(Verdict.PASS), principal="reviewer/r")
        (judging,) = driver.open(Purpose.VERIFY)
    with pytest.raises(Refusal) as caught:
        driver.hand_in(judging, driver.good_result(judging), principal="coder/a")
    assert caught.value.reason is Reason.PERMISSION_DENIED
    assert "coder/a is an author" in str(caught.value)
    assert driver.hand_in(judging, driver.good_result(judging), principal="verifier/v").accepted


def test_a_result_is_taken_only_from_whom_its_capability_is_granted_at_that_moment() -> None:
    driver = Driver(repository_id="r1").submit().settle()
    review = coded_by(driver, "coder/a")
    driver.hand_in(review, commands.ReviewResult(Verdict.PASS), principal="reviewer/r")
    (verify,) = driver.open(Purpose.VERIFY)
    all_but_one = frozenset(Capability) - {Capability.VERIFY}
    with pytest.raises(Refusal) as caught:
        driver.hand_in(verify, driver.good_result(verify), principal="reviewer/r", granted=all_but_one)
    assert caught.value.reason is Reason.PERMISSION_DENIED
    assert caught.value.metadata == {"capability": "verify", "id": verify.assignment_id}
    granted = frozenset({Capability.VERIFY})
    assert driver.hand_in(verify, driver.good_result(verify), principal="verifier/v", granted=granted).accepted


def test_a_surveyor_may_hand_in_the_research_that_it_stands_in_for() -> None:
    driver = Driver().submit().settle()
    research = driver.open(Purpose.RESEARCH)[0]
    granted = frozenset({Capability.SURVEY})
    assert driver.hand_in(research, driver.good_result(research), granted=granted).accepted


def test_where_only_authors_could_review_nobody_does_and_the_run_says_so() -> None:
    driver = Driver().submit().settle()
    driver.crews = (Crew(MOCKS, frozenset({"coder/a"})),)
    while (waiting := driver.open()) and waiting[0].purpose is not Purpose.REVIEW:
        writes = waiting[0].capability is Capability.CODE
        principal = "coder/a" if writes else "reviewer/gone"
        driver.hand_in(waiting[0], driver.good_result(waiting[0]), "coder", principal=principal)
    assert driver.open() == []
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.ACCEPTANCE
    assert any("only authors of T1 were there" in risk.statement for risk in driver.run.risks)


def test_where_only_the_planner_could_debate_a_person_is_asked() -> None:
    driver = Driver(ALL, debate=True).submit().settle()
    driver.crews = (Crew(ALL, frozenset({"planner/p"})),)
    (planning,) = driver.open(Purpose.PLAN)
    driver.hand_in(planning, driver.good_result(planning), principal="planner/p")
    assert driver.open() == []
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.DEBATE


def test_the_journal_says_from_whom_a_result_was_taken_and_what_was_granted() -> None:
    driver = Driver().submit().settle()
    review = coded_by(driver, "coder/a")
    driver.hand_in(review, commands.ReviewResult(Verdict.PASS), principal="reviewer/r")
    ended = [event.data for event in driver.journal if event.name == "assignment_ended"]
    (taken,) = [data for data in ended if data.assignment_id == review.assignment_id]
    assert (taken.principal, taken.granted) == ("reviewer/r", Capability.REVIEW)
