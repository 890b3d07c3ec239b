"""Best of N: several coders on one stage of one attempt, graded first, then judged in the order of their worth."""

from dataclasses import replace

import pytest

from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.calls.pipelines import PipelineSeen
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage
from pointsman.services.orchestrator.domain.commands import StageResult, TaskFinding
from pointsman.services.orchestrator.domain.contenders import best_of
from pointsman.services.orchestrator.domain.enums import Call, Capability, Grade, PipelineStatus, Purpose, Reply
from pointsman.services.orchestrator.domain.model import Assignment, Contender
from tests.unit.orchestrator.driver import ALL, Driver, plan, work
from tests.unit.orchestrator.test_acceptance import REPOSITORY


def coding(best_of: int = 3, assignments: int = 500, **order: object) -> Driver:
    """A run whose coders are asked for the first time."""
    driver = Driver(ALL, **{**REPOSITORY, **order, "best_of": best_of}).with_budget(assignments=assignments)
    driver.submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    return driver.work_until(Purpose.STAGE)


def coders(driver: Driver) -> list[Assignment]:
    return [item for item in driver.open(Purpose.STAGE) if item.capability is Capability.CODE]


def proofs(driver: Driver) -> list[Assignment]:
    return [item for item in driver.open(Purpose.STAGE) if item.capability is Capability.VERIFY]


def hand_in_work(driver: Driver, assignment: Assignment) -> None:
    """A coder's work, under a principal and with a commit of its own."""
    number = assignment.contender
    made = replace(work("T1", f"coder-{number}"), result_commit=str(number) * 40)
    driver.hand_in(assignment, StageResult("PASS", work=made), f"coder-{number}", principal=f"p{number}")


def prove(driver: Driver, assignment: Assignment, grade: Grade | None) -> None:
    found = TaskFinding("T1", grade is not None, ("K1",), ("T1-C1",), "" if grade else "it is red", grade)
    verdict = "PASS" if grade else "FAIL"
    driver.hand_in(assignment, StageResult(verdict, proof=found, document="{}"), "verifier", principal="verifier")


def graded(*grades: Grade | None) -> Driver:
    """All have handed in, and the verifier has found this about them."""
    driver = coding(len(grades))
    for assignment in coders(driver):
        hand_in_work(driver, assignment)
    for assignment, grade in zip(proofs(driver), grades, strict=True):
        prove(driver, assignment, grade)
    return driver


def chosen(driver: Driver) -> list[int]:
    return [event.data.number for event in driver.journal if event.name == "contender_chosen"]


def test_a_stage_is_offered_to_n_coders_of_one_attempt_and_n_starts_are_counted() -> None:
    driver = coding(3)
    offered = coders(driver)
    assert [item.contender for item in offered] == [1, 2, 3]
    assert len({item.delegation_id for item in offered}) == 1
    assert driver.run.tasks["T1"].attempt == 1
    before = coding(1).run.spent.assignments
    assert driver.run.spent.assignments == before + 2


def test_the_verifier_proves_every_work_before_anybody_judges_one() -> None:
    driver = coding(3)
    for assignment in coders(driver):
        assert not proofs(driver), "the grade waits for all"
        hand_in_work(driver, assignment)
    assert [(item.contender, item.patch[:1]) for item in proofs(driver)] == [(1, "1"), (2, "2"), (3, "3")]
    assert driver.run.spent.assignments == coding(3).run.spent.assignments, "a proof starts no agent"
    assert chosen(driver) == []


def test_the_best_grade_goes_on_and_the_first_among_equals() -> None:
    driver = graded(Grade.UNBROKEN, Grade.PROVEN, Grade.PROVEN)
    assert chosen(driver) == [2]
    made = driver.run.tasks["T1"].work
    assert made is not None
    assert made.result_commit == "2" * 40
    stages = {(item.capability, item.patch[:1]) for item in driver.open(Purpose.STAGE)}
    assert stages <= {(Capability.REVIEW, "2"), (Capability.VERIFY, "2")}


def test_a_stage_that_writes_later_begins_on_the_chosen_work() -> None:
    task = graded(None, Grade.PROVEN).run.tasks["T1"]
    assert task.work is not None
    assert (task.work.stage, task.work.principal) == ("DEV", "p2")
    assert task.start_of("DOCS") == task.work, "else the documents would be written without the code"
    assert task.start_of("DEV") is None


def test_no_author_of_a_contender_judges_whichever_won() -> None:
    driver = graded(None, Grade.PROVEN, None)
    assert driver.run.authors["T1"] == ("p1", "p2", "p3")
    assert driver.run.excluded_from(Capability.REVIEW, "T1") == ("p1", "p2", "p3")
    driver.work_until(Purpose.REVIEW)
    for judged in driver.journal:
        if judged.name == "assigned" and judged.data.assignment.capability is Capability.REVIEW:
            assert set(judged.data.assignment.excluded_principals) == {"p1", "p2", "p3"}


class ReturningDriver(Driver):
    """A run whose reviewer refuses as often as a test says; each time the pipeline goes back to DEV."""

    refusals = 1

    def _on_complete_stage(self, data: CompleteStage) -> commands.CallAnswered | commands.CallRefused:
        if data.stage == "REVIEW" and self.refusals:
            self.refusals -= 1
            self.pipelines[data.pipeline_id] = {"DEV", "REVIEW", "TEST"}
            seen = self._pipeline(data.call_id, data.pipeline_id, data.task_id, ("DEV",))
            again = tuple(replace(item, delegation_id=f"d-DEV-{self.refusals}") for item in seen.answer.delegations)
            answer = PipelineSeen(data.call_id, data.task_id, PipelineStatus.ACTIVE, again)
            return commands.CallAnswered("run_1", answer)
        return super()._on_complete_stage(data)  # type: ignore[no-any-return]


def test_a_work_that_the_reviewer_refuses_is_followed_by_the_next_best_without_a_start() -> None:
    driver = ReturningDriver(ALL, **{**REPOSITORY, "best_of": 3})
    driver.refusals = 2
    driver.submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    driver.work_until(Purpose.STAGE)
    for assignment in coders(driver):
        hand_in_work(driver, assignment)
    for assignment, grade in zip(proofs(driver), (Grade.UNBROKEN, None, Grade.PROVEN), strict=True):
        prove(driver, assignment, grade)
    starts = driver.run.spent.assignments
    for winner in ([3], [3, 1]):
        assert chosen(driver) == winner
        for assignment in proofs(driver):
            prove(driver, assignment, Grade.PROVEN)
        (review,) = [item for item in driver.open(Purpose.STAGE) if item.capability is Capability.REVIEW]
        starts += 1
        assert driver.run.spent.assignments == starts
        driver.hand_in(review, StageResult("FAIL"), "reviewer", principal="reviewer")
    (repair,) = coders(driver)
    assert repair.contender == 0, "what failed its proof has no turn; one coder repairs"
    assert chosen(driver) == [3, 1]


def test_where_all_fail_their_proof_the_one_with_the_fewest_failures_is_what_is_repaired() -> None:
    made = work("T1")
    many = Contender(1, made, proven=True, failing=3)
    few = Contender(2, made, proven=True, failing=1)
    assert best_of((many, few)) == few
    assert best_of((many, replace(few, chosen=True))) is None


def test_a_coder_that_is_lost_takes_no_part_and_the_others_go_on() -> None:
    driver = coding(2)
    first, second = coders(driver)
    driver.lose(first)
    hand_in_work(driver, second)
    (proof,) = proofs(driver)
    assert proof.contender == 2
    driver.lose(proof)
    assert chosen(driver) == [2], "without a grade, the judges decide"


def test_where_every_coder_is_lost_the_attempt_is_aborted_once() -> None:
    driver = coding(2)
    for assignment in coders(driver):
        driver.lose(assignment)
    aborted = [
        event for event in driver.journal if event.name == "pipeline_advanced" and event.data.status == "ABORTED"
    ]
    assert len(aborted) == 1


def test_n_starts_are_reserved_or_none_is_given_out() -> None:
    room = coding(1).run.spent.assignments
    driver = coding(3, assignments=room + 1)
    assert coders(driver) == []
    assert [item.contender for item in driver.run.held] == [1, 2, 3]
    assert driver.run.question is not None
    driver.reply(Reply.RAISE, budget=replace(driver.run.budget, assignments=room + 2))
    assert [item.contender for item in coders(driver)] == [1, 2, 3]


def test_without_a_verifier_the_first_work_goes_to_the_judges() -> None:
    driver = coding(2, repository_id="")
    assert not driver.run.needs_verifier
    for assignment in coders(driver):
        hand_in_work(driver, assignment)
    assert chosen(driver) == [1]


@pytest.mark.parametrize("best", [0, 1])
def test_one_alone_is_no_contest(best: int) -> None:
    (alone,) = coders(coding(best))
    assert alone.contender == 0


def test_a_cancelled_run_leaves_no_contender_at_work() -> None:
    driver = coding(3)
    driver.send(commands.Cancel("run_1", "enough"))
    assert driver.run.assignments == {}
    assert any(effect.kind == Call.CANCEL_PIPELINE for effect in driver.effects)
