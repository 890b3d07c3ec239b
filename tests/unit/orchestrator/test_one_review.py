"""One review per attempt: a REVIEW stage's pass counts at acceptance for the same patch, where the verifier proves it."""

from dataclasses import replace

from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.commands import StageResult, TaskFinding, VerifyResult
from pointsman.services.orchestrator.domain.enums import Purpose, Severity, State
from pointsman.services.orchestrator.domain.model import Risk, Work
from tests.unit.orchestrator.driver import ALL, Driver, plan, work
from tests.unit.orchestrator.test_acceptance import REPOSITORY

PATCH = "c" * 40


def coding(**order: object) -> Driver:
    """A run with a repository, whose coder has a task."""
    driver = Driver(ALL, **order).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    return driver.work_until(Purpose.STAGE)


def hand_in_work(driver: Driver, patch: str = PATCH) -> Driver:
    """The coder hands in a patch, the verifier proves it; the REVIEW stage waits for its reviewer."""
    made: Work = replace(work("T1"), result_commit=patch)
    driver.hand_in(driver.open(Purpose.STAGE)[0], StageResult("PASS", work=made), made.author)
    if driver.run.needs_verifier:
        driver.hand_in(driver.open(Purpose.STAGE)[0], driver.good_result(driver.open(Purpose.STAGE)[0]), "verifier")
    return driver


def judge(driver: Driver, stage: str, result: StageResult) -> None:
    """A reviewer decides on a stage."""
    assignment = next(item for item in driver.open(Purpose.STAGE) if item.stage == stage)
    driver.hand_in(assignment, result, "reviewer")


def test_a_patch_that_its_review_stage_passed_is_not_reviewed_again() -> None:
    driver = hand_in_work(coding(**REPOSITORY))
    judge(driver, "REVIEW", StageResult("PASS", risks=(Risk("slow", "it is slow", Severity.LOW),)))
    driver.work_until(Purpose.REVIEW, Purpose.VERIFY)
    assert [item.purpose for item in driver.open()] == [Purpose.VERIFY]
    assert driver.run.tasks["T1"].judgement.reviewed
    assert "slow" in {risk.key for risk in driver.run.risks}
    driver.hand_in(driver.open()[0], VerifyResult((TaskFinding("T1", True, ("K1",), ("T1-C1",), ""),), PATCH, "", "{}"))
    assert driver.work_until().is_in(State.COMPLETE)


def test_what_the_verifier_cannot_merge_or_prove_is_not_accepted_by_its_review() -> None:
    driver = hand_in_work(coding(**REPOSITORY)).work_until(Purpose.REVIEW, Purpose.VERIFY)
    finding = TaskFinding("T1", False, (), (), "conflict in a.py")
    driver.hand_in(driver.open(Purpose.VERIFY)[0], VerifyResult((finding,), "", "", "{}"))
    assert driver.run.tasks["T1"].rejections == ("conflict in a.py",)
    assert not driver.is_in(State.COMPLETE)


def test_a_review_of_another_patch_counts_for_nothing() -> None:
    driver = hand_in_work(coding(**REPOSITORY))
    made = replace(work("T1"), result_commit="d" * 40)
    assert driver.state is not None
    driver.state.run.change_task("T1", work=made)
    judge(driver, "REVIEW", StageResult("PASS"))
    driver.work_until(Purpose.REVIEW, Purpose.VERIFY)
    assert [item.purpose for item in driver.open()] == [Purpose.REVIEW]


def test_a_pass_of_another_stage_is_no_review() -> None:
    driver = hand_in_work(coding(**REPOSITORY))
    assert not any(isinstance(event.data, events.StageReviewed) for event in driver.journal)


def test_where_nothing_is_proven_the_work_is_reviewed_at_acceptance() -> None:
    driver = hand_in_work(coding()).work_until(Purpose.REVIEW, Purpose.VERIFY)
    assert [item.purpose for item in driver.open()] == [Purpose.REVIEW]
