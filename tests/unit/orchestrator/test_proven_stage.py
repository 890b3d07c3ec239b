"""TEST is the verifier's stage: no judge is paid before it has spoken, and what fails twice alike is asked about."""

from dataclasses import replace

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as protos
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.calls.pipelines import NOT_JUDGED, PipelineSeen
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage
from pointsman.services.orchestrator.domain.commands import CompletionOutcome, StageResult, TaskFinding
from pointsman.services.orchestrator.domain.enums import Call, Capability, PipelineStatus, Purpose, Question, State
from pointsman.services.orchestrator.domain.model import Assignment, Delegation
from pointsman.services.orchestrator.wire.decode import results
from tests.unit.orchestrator.driver import ALL, Driver, plan, work
from tests.unit.orchestrator.test_acceptance import REPOSITORY

RED = ("tests/a.py::test_mean",)


class ReturningDriver(Driver):
    """A run whose pipelines go back to DEV when the last member of the barrier has come and one failed."""

    failed = False
    rounds = 1

    def _on_complete_stage(self, data: CompleteStage) -> commands.CallAnswered | commands.CallRefused:
        left = self.pipelines[data.pipeline_id]
        left.discard(data.stage)
        self.failed = self.failed or data.verdict == "FAIL"
        self.completed.append((data.stage, data.verdict, data.hint))
        assert data.nonce in ("", f"nonce of {data.stage}"), "a route counts with the nonce of its own stage alone"
        if not left and self.failed:
            self.failed, self.rounds = False, self.rounds + 1
            self.pipelines[data.pipeline_id] = {"DEV", "REVIEW", "TEST"}
            return self._seen(data, ("DEV",))
        if not left:
            return commands.CallAnswered("run_1", PipelineSeen(data.call_id, data.task_id, PipelineStatus.COMPLETED))
        return self._seen(data, ("REVIEW", "TEST") if data.stage == "DEV" else ())

    def _seen(self, data: CompleteStage, stages: tuple[str, ...]) -> commands.CallAnswered:
        delegations = tuple(
            Delegation(f"{stage}#{self.rounds}", stage, "{}", "do it", f"nonce of {stage}") for stage in stages
        )
        return commands.CallAnswered(
            "run_1", PipelineSeen(data.call_id, data.task_id, PipelineStatus.ACTIVE, delegations)
        )

    @property
    def completed(self) -> list[tuple[str, str, str]]:
        return self.__dict__.setdefault("_completed", [])  # type: ignore[no-any-return]


def coded(**order: object) -> ReturningDriver:
    """A run in which a coder has handed in its work."""
    driver = ReturningDriver(ALL, **(order or REPOSITORY))
    driver.submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    driver.work_until(Purpose.STAGE)
    return code(driver)


def code(driver: ReturningDriver, patch: str = "c" * 40) -> ReturningDriver:
    """The coder hands in."""
    driver.hand_in(stage(driver, "DEV"), StageResult("PASS", work=replace(work("T1"), result_commit=patch)), "coder")
    return driver


def stage(driver: Driver, name: str) -> Assignment:
    """The open assignment of a stage."""
    return next(item for item in driver.open(Purpose.STAGE) if item.stage == name)


def refuted(*failing: str, reason: str = "tests fail") -> StageResult:
    """A proof that does not hold."""
    return StageResult("FAIL", proof=TaskFinding("T1", False, (), (), reason, failing=failing), document="{}")


PROVEN = StageResult("PASS", proof=TaskFinding("T1", True, ("K1",), ("T1-C1",)), document="{}")


def test_test_is_offered_to_the_verifier_and_judges_wait_for_it() -> None:
    driver = coded()
    assert [(item.stage, item.capability) for item in driver.open()] == [("TEST", Capability.VERIFY)]
    assert [item.stage for item in driver.run.tasks["T1"].deferred] == ["REVIEW"]
    driver.hand_in(stage(driver, "TEST"), PROVEN, "verifier")
    assert [(item.stage, item.capability) for item in driver.open()] == [("REVIEW", Capability.REVIEW)]
    assert driver.run.tasks["T1"].deferred == ()


def test_what_the_verifier_refutes_goes_back_to_its_coder_without_a_judge() -> None:
    driver = coded()
    driver.hand_in(stage(driver, "TEST"), replace(refuted(*RED), hint="test_mean fails"), "verifier")
    assert driver.completed[1:] == [("REVIEW", "FAIL", NOT_JUDGED), ("TEST", "FAIL", "test_mean fails")]
    assert [item.stage for item in driver.open()] == ["DEV"]
    assert driver.run.tasks["T1"].attempt == 1


def test_the_same_tests_failing_twice_end_the_attempt_and_ask_a_person() -> None:
    driver = coded()
    driver.hand_in(stage(driver, "TEST"), refuted(*RED, reason="one text"), "verifier")
    code(driver, "d" * 40).hand_in(stage(driver, "TEST"), refuted(*RED, reason="another text"), "verifier")
    assert driver.run.question is not None
    assert (driver.run.question.kind, driver.run.status) == (Question.LOW_CONFIDENCE, State.ASK_SWITCH)
    assert Call.CANCEL_PIPELINE in {Call(effect.kind) for effect in driver.told}


def test_other_tests_failing_is_another_failure_and_is_tried_again() -> None:
    driver = coded()
    driver.hand_in(stage(driver, "TEST"), refuted(*RED), "verifier")
    code(driver, "d" * 40).hand_in(stage(driver, "TEST"), refuted("tests/a.py::test_median"), "verifier")
    assert [item.stage for item in driver.open()] == ["DEV"]


def test_a_verifier_that_is_lost_passes_nothing() -> None:
    driver = coded()
    driver.lose(stage(driver, "TEST"))
    assert ("TEST", "", "") in driver.completed
    assert driver.run.tasks["T1"].proof is None
    assert [item.stage for item in driver.open()] == ["REVIEW"]


@pytest.mark.parametrize(
    "result",
    [
        StageResult("PASS"),
        replace(PROVEN, verdict="FAIL"),
        replace(refuted(), verdict="PASS"),
        replace(PROVEN, proof=TaskFinding("T2", True, (), ())),
    ],
)
def test_a_proof_without_its_finding_or_against_it_is_not_taken(result: StageResult) -> None:
    driver = coded()
    outcome = driver.hand_in(stage(driver, "TEST"), result, "verifier")
    assert isinstance(outcome, CompletionOutcome)
    assert not outcome.accepted
    assert driver.run.tasks["T1"].proof is None


def test_without_a_repository_and_without_commands_a_reviewer_judges_the_tests() -> None:
    driver = coded(session_id="s")
    assert {(item.stage, item.capability) for item in driver.open()} == {
        ("REVIEW", Capability.REVIEW),
        ("TEST", Capability.REVIEW),
    }


def test_the_verifiers_starts_count_against_no_budget() -> None:
    driver = coded()
    before = driver.run.spent.assignments
    driver.hand_in(stage(driver, "TEST"), PROVEN, "verifier")
    assert driver.run.spent.assignments == before + 1  # the reviewer's, which began when the verifier had ended
    driver.work_until()
    ids = [event.data.assignment.assignment_id for event in driver.journal if event.name == "assigned"]
    assert driver.is_in(State.COMPLETE)
    assert len(ids) == len(set(ids))


def test_an_exhausted_budget_of_starts_does_not_keep_paid_work_from_being_proven() -> None:
    driver = ReturningDriver(ALL, **REPOSITORY)
    driver.with_budget(assignments=4).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1")))
    driver.work_until(Purpose.STAGE)
    code(driver)
    assert driver.run.spent.assignments == driver.run.budget.assignments
    assert [item.stage for item in driver.open()] == ["TEST"]
    assert driver.run.question is None


def test_tests_that_a_judge_ran_in_the_authors_tree_are_a_risk_of_its_decision() -> None:
    ran = [["python3", "-m", "pytest"], ["pointsman", "proof", "run"], ["git", "diff"]]
    evidence = [
        handoff.Evidence(id=f"E{number}", kind=handoff.EVIDENCE_KIND_COMMAND, command=command)
        for number, command in enumerate(ran)
    ]
    passed = handoff.ReviewDecision(decision=handoff.REVIEW_VERDICT_PASS, evidence=evidence)
    staged = protos.StageResult(route=protos.StageRoute(verdict="PASS"), evidence=evidence)
    for taken in (
        results.result("box", agent.Completion(review=passed)),
        results.result("box", agent.Completion(stage=staged)),
    ):
        assert isinstance(taken, commands.ReviewResult | StageResult)
        assert [risk.key for risk in taken.risks] == ["bare-run"]
        assert "`python3 -m pytest`" in taken.risks[0].statement
