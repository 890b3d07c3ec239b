"""Claims, evidence, reviewers, the verifier, and what becomes of a wave."""

from dataclasses import replace
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.calls.pipelines import PipelineSeen, pipeline_advanced
from pointsman.services.orchestrator.domain.commands import ReviewResult, StageResult, TaskFinding, VerifyResult
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import (
    Call,
    Capability,
    DebateVerdict,
    EvidenceKind,
    Grade,
    PipelineStatus,
    Purpose,
    Question,
    Reply,
    State,
    TaskStatus,
    Verdict,
)
from pointsman.services.orchestrator.domain.model import ClaimOutline, Plan, Risk, TaskOutline, Work
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.domain.table import TABLE
from tests.unit.orchestrator.driver import ALL, Driver, outline, plan, work

REPOSITORY: dict[str, Any] = {"repository_id": "r", "base_commit": "b" * 40}


def coding(*task_ids: str, the_plan: Plan | None = None, **order: object) -> Driver:
    driver = Driver(ALL, **order).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(the_plan or plan(*task_ids)))
    return driver.work_until(Purpose.STAGE)


def handing_in(driver: Driver, made: Work) -> Driver:
    driver.hand_in(driver.open(Purpose.STAGE)[0], StageResult("PASS", work=made), made.author)
    return driver.work_until(Purpose.REVIEW, Purpose.VERIFY)


def review(
    driver: Driver,
    verdict: Verdict = Verdict.PASS,
    feedback: tuple[str, ...] = (),
    rejected_claims: tuple[str, ...] = (),
) -> None:
    driver.hand_in(driver.open(Purpose.REVIEW)[0], ReviewResult(verdict, rejected_claims, feedback))


def test_a_claim_without_evidence_is_rejected_before_any_reviewer_is_asked() -> None:
    driver = coding("T1")
    handing_in(driver, Work("coder", (ClaimOutline("K7", ("T1-C1",), ()),), (), "{}"))
    assert "reject_or_retry" in driver.moves
    assert driver.run.tasks["T1"].rejections == ("claims without evidence: K7",)
    before = driver.journal[: [event.name for event in driver.journal].index("reject_or_retry")]
    assert Purpose.REVIEW not in [event.data.assignment.purpose for event in before if event.name == "assigned"]


def test_one_bare_claim_among_five_hundred_is_named() -> None:
    driver = coding("T1")
    good = tuple(ClaimOutline(f"K{number}", ("T1-C1",), (EvidenceKind.COMMAND,)) for number in range(499))
    handing_in(driver, Work("coder", (*good, ClaimOutline("BARE", ("T1-C1",), ())), (), "{}"))
    assert driver.run.tasks["T1"].rejections == ("claims without evidence: BARE",)


def test_more_bare_claims_than_a_reason_has_room_for_are_counted() -> None:
    driver = coding("T1")
    bare = tuple(ClaimOutline(f"K{number:03}", ("T1-C1",), ()) for number in range(500))
    handing_in(driver, Work("coder", bare, (), "{}"))
    (said,) = driver.run.tasks["T1"].rejections
    assert said.startswith("claims without evidence: K000, K001, ")
    assert said.endswith(" K249 and 250 more")


def test_a_note_alone_never_supports_a_claim() -> None:
    driver = handing_in(coding("T1"), work("T1", "coder", EvidenceKind.NOTE))
    assert "no claim with evidence speaks to: T1-C1" in driver.run.tasks["T1"].rejections[0]


@pytest.mark.parametrize("kind", [kind for kind in EvidenceKind if kind is not EvidenceKind.NOTE])
def test_every_other_kind_of_evidence_can_support_a_claim(kind: EvidenceKind) -> None:
    driver = handing_in(coding("T1"), work("T1", "coder", kind))
    review(driver)
    assert driver.is_in(State.COMPLETE)


def test_a_pass_accepts_the_task_and_completes_the_run() -> None:
    driver = handing_in(coding("T1"), work("T1"))
    review(driver)
    assert driver.is_in(State.COMPLETE)
    assert driver.run.tasks["T1"].status is TaskStatus.ACCEPTED


def test_a_retry_goes_back_to_the_coder_with_the_reasons() -> None:
    driver = handing_in(coding("T1"), work("T1"))
    review(driver, Verdict.RETRY, feedback=("too slow",), rejected_claims=("K1",))
    assert driver.moves.count("reject_or_retry") == 1
    assert driver.run.tasks["T1"].rejections == ("too slow (claims K1)",)
    assert driver.is_in(State.CODER_EXEC)


def test_a_replan_goes_to_the_patch_and_releases_the_task() -> None:
    driver = handing_in(coding("T1"), work("T1"))
    review(driver, Verdict.REPLAN, feedback=("wrong idea",))
    assert driver.is_in(State.REPLAN_PATCH)
    assert driver.run.replans == 1
    assert driver.told[-1].kind == Call.RELEASE
    assert driver.told[-1].data.task_ids == ("T1",)
    assert "patch_applied" in driver.work_until(Purpose.STAGE).moves


def test_the_reviewer_is_never_the_author() -> None:
    driver = handing_in(coding("T1"), work("T1", "ada"))
    assert driver.open(Purpose.REVIEW)[0].excluded_agent == "ada"


def test_a_pass_that_rejects_claims_is_contradictory_and_counts_as_a_failed_attempt() -> None:
    driver = handing_in(coding("T1"), work("T1"))
    answer = driver.hand_in(driver.open(Purpose.REVIEW)[0], ReviewResult(Verdict.PASS, ("K1",)))
    assert (answer.accepted, answer.field) == (False, "review.rejected_claims")


def test_a_review_of_unknown_claims_is_malformed() -> None:
    driver = handing_in(coding("T1"), work("T1"))
    answer = driver.hand_in(driver.open(Purpose.REVIEW)[0], ReviewResult(Verdict.RETRY, ("K99",)))
    assert answer.field == "review.rejected_claims"


def test_three_rejections_are_retried_and_the_fourth_brings_a_person_in() -> None:
    driver = coding("T1")
    for reason in ("no test", "no docs", "too slow"):
        review(handing_in(driver, work("T1")), Verdict.RETRY, (reason,))
        assert driver.is_in(State.CODER_EXEC)
    review(handing_in(driver, work("T1")), Verdict.RETRY, ("wrong colour",))
    assert driver.is_in(State.ASK_SWITCH)
    assert driver.run.confidence == 0.0
    assert driver.moves.count("reject_or_retry") == 3


def test_the_same_failure_twice_brings_a_person_in_before_a_third_try() -> None:
    driver = coding("T1")
    review(handing_in(driver, work("T1")), Verdict.RETRY, ("mean([]) fails: line 4",))
    assert driver.is_in(State.CODER_EXEC)
    review(handing_in(driver, work("T1")), Verdict.RETRY, ("mean([]) fails: line 17",))
    assert driver.is_in(State.ASK_SWITCH)
    assert driver.run.question is not None
    assert "mean([]) fails: line 17" in driver.run.question.text


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (DebateVerdict.RETRY, State.CODER_EXEC),
        (DebateVerdict.PIVOT, State.REPLAN_PATCH),
        (DebateVerdict.ESCALATE, State.ASK_SWITCH),
    ],
)
def test_at_each_rejection_the_router_is_consulted(verdict: DebateVerdict, state: State) -> None:
    driver = handing_in(coding("T1"), work("T1"))
    driver.verdicts = [verdict]
    review(driver, Verdict.RETRY)
    assert driver.run.status is state


def test_an_acceptance_after_rejections_tells_the_router_of_the_success() -> None:
    driver = handing_in(coding("T1"), work("T1"))
    review(driver, Verdict.RETRY)
    review(handing_in(driver, work("T1")))
    outcomes = [effect.data.failed for effect in driver.told if effect.kind == Call.REPORT_OUTCOME]
    assert outcomes == [False, False]


def test_a_run_without_a_rejection_tells_the_router_of_its_success_too() -> None:
    driver = Driver().submit().settle().work_until()
    assert driver.is_in(State.COMPLETE)
    outcomes = [effect.data.failed for effect in driver.told if effect.kind == Call.REPORT_OUTCOME]
    assert outcomes == [False]


def test_tasks_that_are_left_make_the_next_wave() -> None:
    driver = Driver(ALL).with_budget(fan_out=1).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2")))
    driver.work_until()
    assert driver.is_in(State.COMPLETE)
    assert driver.moves.count("next_wave") == 1


def test_one_rejected_task_does_not_hold_the_accepted_one_back() -> None:
    driver = coding("T1", "T2")
    driver.work_until(Purpose.REVIEW)
    first, second = driver.open(Purpose.REVIEW)
    driver.hand_in(first, ReviewResult(Verdict.RETRY))
    driver.hand_in(second, ReviewResult(Verdict.PASS))
    assert driver.run.tasks["T2"].status is TaskStatus.ACCEPTED
    assert driver.run.wave == ("T1",)
    assert driver.work_until().run.status is State.COMPLETE


def test_a_task_without_a_required_criterion_is_for_a_person() -> None:
    optional = TaskOutline("T1", "task", outline("T1", required=False).criteria)
    driver = handing_in(coding(the_plan=Plan((optional,), (), 0.9, "{}")), work("T1"))
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.ACCEPTANCE
    assert driver.run.question.subjects == ("T1",)
    assert driver.reply(Reply.ACCEPT).run.status is State.COMPLETE


def test_work_without_any_claim_is_for_a_person_and_a_rejection_is_retried() -> None:
    driver = handing_in(coding("T1"), Work("coder", (), (), "{}"))
    assert driver.run.question is not None
    driver.reply(Reply.REJECT, text="nothing there")
    assert driver.run.tasks["T1"].rejections == ("nothing there",)
    assert driver.is_in(State.CODER_EXEC)


def test_no_reviewer_and_no_command_leaves_it_to_a_person() -> None:
    driver = Driver(frozenset({Capability.CODE})).submit().settle()
    driver.hand_in(driver.open()[0], StageResult("PASS", work=work("T1")), "coder")
    assert driver.run.question is not None
    assert driver.reply(Reply.ACCEPT, task_id="T1").run.status is State.COMPLETE


def test_a_person_cannot_accept_a_task_that_the_question_is_not_about() -> None:
    driver = Driver(frozenset({Capability.CODE, Capability.PLAN})).submit().settle()
    driver.hand_in(driver.open()[0], commands.PlanResult(plan("T1", "T2", slots=())))
    driver.work_until(Purpose.STAGE)
    for made in (work("T1", "coder", EvidenceKind.NOTE), work("T2")):
        driver.hand_in(driver.open()[0], StageResult("PASS", work=made), "coder")
    assert driver.run.question is not None
    assert driver.run.question.subjects == ("T2",)
    with pytest.raises(Refusal) as caught:
        driver.reply(Reply.ACCEPT, task_id="T1")
    assert caught.value.reason is Reason.INVALID_FIELD
    assert driver.reply(Reply.ACCEPT, task_id="T2").run.tasks["T1"].rejections


def verifying(**order: object) -> Driver:
    driver = coding(the_plan=plan("T1", command=True), **REPOSITORY, **order)
    driver = handing_in(driver, work("T1"))
    review(driver)
    return driver


def verify(driver: Driver, *findings: TaskFinding) -> None:
    driver.hand_in(driver.open(Purpose.VERIFY)[0], VerifyResult(findings, "c" * 40, "", "{}"))


def test_one_verification_per_wave_follows_the_reviews() -> None:
    driver = verifying()
    assert [item.purpose for item in driver.open()] == [Purpose.VERIFY]
    verify(driver, TaskFinding("T1", True, ("K1",), ("T1-C1",)))
    assert driver.is_in(State.COMPLETE)
    assert driver.run.accepted_commit == "c" * 40


@pytest.mark.parametrize(
    "finding",
    [
        TaskFinding("T1", False, ("K1",), ("T1-C1",), "conflict in a.py"),
        TaskFinding("T1", True, ("K1",), ()),
        TaskFinding("T1", True, (), ("T1-C1",)),
    ],
    ids=["conflict", "command failed", "claim not supported"],
)
def test_a_required_criterion_with_a_command_is_supported_only_by_that_command(finding: TaskFinding) -> None:
    driver = verifying()
    verify(driver, finding)
    assert "reject_or_retry" in driver.moves


def test_a_task_that_the_verifier_says_nothing_about_is_rejected() -> None:
    driver = verifying()
    verify(driver)
    assert driver.run.tasks["T1"].rejections == ("the verifier did not accept it",)


def test_a_verification_of_another_waves_task_is_malformed() -> None:
    driver = verifying()
    result = VerifyResult((TaskFinding("T77", True, (), ()),), "", "", "{}")
    assert driver.hand_in(driver.open()[0], result).field == "verification.tasks"


def test_a_lost_verifier_leaves_it_to_a_person() -> None:
    driver = verifying()
    driver.lose(driver.open()[0])
    assert driver.run.question is not None
    assert driver.reply(Reply.ACCEPT).run.status is State.COMPLETE


def test_a_lost_reviewer_leaves_it_to_the_verifier_and_is_a_risk() -> None:
    driver = handing_in(coding(the_plan=plan("T1", command=True), **REPOSITORY), work("T1"))
    driver.lose(driver.open(Purpose.REVIEW)[0])
    verify(driver, TaskFinding("T1", True, ("K1",), ("T1-C1",)))
    assert driver.is_in(State.COMPLETE)
    assert [risk.key for risk in driver.run.risks] == ["unreviewed-T1"]


def test_a_criterion_without_a_command_needs_a_reviewers_or_a_persons_yes() -> None:
    driver = handing_in(coding("T1", **REPOSITORY), work("T1"))
    driver.lose(driver.open(Purpose.REVIEW)[0])
    verify(driver, TaskFinding("T1", True, ("K1",), ()))
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.ACCEPTANCE


def found(grade: Grade, *questions: str) -> TaskFinding:
    return TaskFinding("T1", True, ("K1",), ("T1-C1",), grade=grade, questions=questions)


def unreviewed() -> Driver:
    driver = handing_in(coding(the_plan=plan("T1", command=True), **REPOSITORY), work("T1"))
    driver.lose(driver.open(Purpose.REVIEW)[0])
    return driver


def test_the_grade_of_the_proof_is_the_tasks_and_the_runs() -> None:
    driver = verifying()
    verify(driver, found(Grade.PROVEN))
    assert (driver.run.tasks["T1"].grade, driver.run.grade) == (Grade.PROVEN, Grade.PROVEN)


def test_what_a_proof_asks_is_asked_of_a_person_where_nobody_reviewed() -> None:
    driver = unreviewed()
    verify(driver, found(Grade.ON_WORD, "only tests changed"))
    assert driver.run.question is not None
    assert "only tests changed" in driver.run.question.text
    assert driver.reply(Reply.ACCEPT).run.grade is Grade.ON_WORD


def test_a_reviewers_yes_answers_a_proof_and_the_question_stays_as_a_risk() -> None:
    driver = verifying()
    verify(driver, found(Grade.UNBROKEN, "the code looks for a test runner"))
    assert driver.is_in(State.COMPLETE)
    assert [risk.key for risk in driver.run.risks] == ["asked-T1"]


def test_a_stage_that_was_forced_on_is_the_grade() -> None:
    driver = verifying()
    forced = Risk("stage-T1-QA", "T1: the stage QA is no proof (forced_on)", task_id="T1", forced=True)
    assert driver.state is not None
    driver.state = RunState(driver.run.change(risks=(forced,)))
    verify(driver, found(Grade.PROVEN))
    assert driver.run.grade is Grade.FORCED


def test_no_agent_hides_a_risk_of_ours_by_naming_its_key_first() -> None:
    said = "T1: the stage QA is no proof (forced_on)"
    taken = (Risk("tests-T1", "nothing"), Risk("stage-T1-QA", said, task_id="T1"))
    driver = handing_in(
        coding("T1", the_plan=replace(plan("T1"), risks=taken)), work("T1", files=("tests/test_it.py",))
    )
    assert driver.state is not None
    builder = DecisionBuilder(driver.state, driver.now, TABLE)
    forced = Risk("stage-T1-QA", said, task_id="T1", forced=True)
    pipeline_advanced(builder, PipelineSeen("c", "T1", PipelineStatus.COMPLETED, risks=(forced,)))
    assert builder.run.risks[:2] == taken
    assert {risk.key for risk in builder.run.risks[2:]} == {"tests-T1-2", "stage-T1-QA-2"}
    assert [risk.key for risk in builder.run.risks if risk.forced] == ["stage-T1-QA-2"]


def test_changes_to_files_that_a_criterion_names_as_its_tests_are_a_residual_risk() -> None:
    driver = handing_in(coding("T1"), work("T1", files=("tests/test_it.py", "a.py")))
    review(driver)
    assert [risk.key for risk in driver.run.risks] == ["tests-T1"]


def test_changes_outside_the_files_that_the_plan_names_for_a_task_are_a_residual_risk() -> None:
    driver = coding("T1")
    task = driver.run.tasks["T1"]
    driver.run.change_task("T1", outline=replace(task.outline, files=("src/**", "README.md")))
    handing_in(driver, work("T1", files=("src/deep/a.py", "readme.md", "setup.py", "docs/b.md")))
    review(driver)
    (risk,) = driver.run.risks
    assert (risk.key, risk.task_id) == ("outside-T1", "T1")
    assert risk.statement == "T1 changed what the plan does not name for it: setup.py, docs/b.md"


def test_no_wave_passes_with_a_rejected_task_whatever_is_said() -> None:
    driver = handing_in(coding("T1"), work("T1", "coder", EvidenceKind.NOTE))
    assert "pass" not in driver.moves
    assert "next_wave" not in driver.moves
