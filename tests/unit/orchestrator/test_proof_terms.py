"""What a user asks of the proof: a grade below which a person is asked, and terms for what is delivered."""

from dataclasses import replace

import pytest

from pointsman.api.handoff.v1 import work_pb2 as protos
from pointsman.api.handoff.v1.proof_pb2 import GRADE_PROVEN
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import run_pb2 as pb
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.commands import TaskFinding, VerifyResult
from pointsman.services.orchestrator.domain.enums import Grade, Purpose, Question, Reply, State
from pointsman.services.orchestrator.domain.model import ProofTerms
from pointsman.services.orchestrator.wire.decode import runs as decode
from pointsman.services.orchestrator.wire.encode import leases
from pointsman.services.orchestrator.wire.encode import runs as encode
from pointsman.services.orchestrator.wire.encode.documents import RunDocuments
from tests.unit.orchestrator.driver import ALL, Driver, plan
from tests.unit.orchestrator.test_acceptance import REPOSITORY

HELD_OUT = "a" * 64


def verifying(*task_ids: str, terms: ProofTerms) -> Driver:
    """A run whose work waits for its proof at acceptance."""
    driver = Driver(ALL, **REPOSITORY, proof_terms=terms).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(*task_ids or ("T1",), command=True)))
    return driver.work_until(Purpose.VERIFY)


def found(task_id: str, grade: Grade) -> TaskFinding:
    return TaskFinding(task_id, True, ("K1",), (f"{task_id}-C1",), grade=grade)


@pytest.mark.parametrize(
    ("required", "grade", "asks"),
    [
        (Grade.PROVEN, Grade.UNBROKEN, True),
        (Grade.PROVEN, Grade.PROVEN, False),
        (Grade.UNBROKEN, Grade.UNBROKEN, False),
        (Grade.UNBROKEN, Grade.ON_WORD, True),
        (None, Grade.ON_WORD, False),
    ],
)
def test_a_person_sees_what_is_worth_less_than_is_required(required: Grade | None, grade: Grade, asks: bool) -> None:
    driver = verifying(terms=ProofTerms(require_grade=required))
    driver.hand_in(driver.open()[0], VerifyResult((found("T1", grade),), "a" * 40, "", "{}"), "verifier")
    assert (driver.run.question is not None) is asks
    if driver.run.question is not None:
        words = str(grade).replace("_", " ")
        assert driver.run.question.kind is Question.ACCEPTANCE
        assert f"it is worth {words}, and {required} is required" in driver.run.question.text
        driver.reply(Reply.ACCEPT)
    assert driver.is_in(State.COMPLETE)
    assert driver.run.tasks["T1"].grade is grade, "a person's yes does not make it worth more"


def test_a_reviewers_word_alone_is_below_every_requirement() -> None:
    driver = Driver(ALL, proof_terms=ProofTerms(require_grade=Grade.UNBROKEN)).submit().settle().work_until()
    assert driver.run.question is not None
    assert "it is worth ON WORD, and UNBROKEN is required" in driver.run.question.text


def request_for(driver: Driver, *task_ids: str) -> protos.VerifyRequest:
    """What the verifier is asked about these tasks."""
    message = agent.Lease().verify
    leases._ask_proof(message, task_ids, RunDocuments(driver.run, {}))
    return message


def test_what_is_delivered_is_held_to_the_terms_and_what_comes_before_is_not() -> None:
    driver = verifying("T1", "T2", terms=ProofTerms(("t::a",), HELD_OUT))
    assert not request_for(driver, "T1").HasField("delivery_terms")
    both = request_for(driver, "T1", "T2").delivery_terms
    assert (list(both.fixes), both.held_out.sha256) == (["t::a"], HELD_OUT)


def test_tests_may_change_in_every_task_where_the_user_says_so() -> None:
    assert request_for(verifying(terms=ProofTerms(tests_may_change=True)), "T1").tasks[0].task_id == "T1"
    planned = RunDocuments(
        verifying(terms=ProofTerms(tests_may_change=True)).run, {"plan": '{"tasks": [{"id": "T1"}]}'}
    )
    message = agent.Lease().verify
    leases._ask_proof(message, ["T1"], planned)
    assert message.tasks[0].tests_may_change


def test_terms_of_a_run_are_those_of_its_order_and_of_no_epic_that_it_resumed() -> None:
    given = pb.ProofTerms(fixes=["t::a"], require_grade=GRADE_PROVEN, tests_may_change=True)
    given.held_out.sha256 = HELD_OUT
    terms = decode.proof_terms(given)
    assert terms == ProofTerms(("t::a",), HELD_OUT, Grade.PROVEN, tests_may_change=True)
    shown = encode._proof_terms(terms)
    assert shown is not None
    assert (list(shown.fixes), shown.held_out.sha256, shown.require_grade) == (["t::a"], HELD_OUT, GRADE_PROVEN)
    run = verifying(terms=terms).run
    assert run.proof_terms == terms
    assert replace(run, queued_epic_id="epic_2").proof_terms == ProofTerms()
