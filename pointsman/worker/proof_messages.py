"""A proof on the wire."""

from collections.abc import Iterator, Sequence

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import proof_pb2 as pb
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.proof.prover import Proof
from pointsman.proof.results import RED, Outcome, TestReport
from pointsman.proof.tree_plan import Change, ProtectedChange
from pointsman.proof.verdict import CommandFacts, Decision, Grade

MOST_TESTS = 512
MOST_SENTENCES = 64
MOST_CHANGES = 256
SENTENCE_LENGTH = 4000
_GRADES = {
    Grade.NONE: pb.GRADE_UNSPECIFIED,
    Grade.ON_WORD: pb.GRADE_ON_WORD,
    Grade.UNBROKEN: pb.GRADE_UNBROKEN,
    Grade.PROVEN: pb.GRADE_PROVEN,
}
_OUTCOMES = {
    Outcome.PASSED: pb.TEST_OUTCOME_PASSED,
    Outcome.FAILED: pb.TEST_OUTCOME_FAILED,
    Outcome.ERROR: pb.TEST_OUTCOME_ERROR,
    Outcome.SKIPPED: pb.TEST_OUTCOME_SKIPPED,
    Outcome.XFAILED: pb.TEST_OUTCOME_XFAILED,
    Outcome.DESELECTED: pb.TEST_OUTCOME_DESELECTED,
}
_CHANGES = {
    Change.ADDED: handoff.FILE_CHANGE_ADDED,
    Change.CHANGED: handoff.FILE_CHANGE_MODIFIED,
    Change.REMOVED: handoff.FILE_CHANGE_DELETED,
}


def proof_message(proof: Proof, base_commit: str, changed: Sequence[handoff.ChangedFile]) -> pb.Proof:
    """The proof of a task; a refused one has no grade."""
    verdict = proof.verdict
    return pb.Proof(
        grade=pb.GRADE_UNSPECIFIED if verdict.decision is Decision.REFUSED else _GRADES[verdict.grade],
        base_commit=base_commit,
        tree_hash=proof.plan.delivered.tree,
        isolation=str(proof.level),
        reasons=_sentences(verdict.reasons),
        questions=_sentences(verdict.questions),
        risks=_sentences(verdict.risks),
        protected_changes=[_protected(change) for change in proof.plan.protected[:MOST_CHANGES]],
        commands=[_command(facts) for facts in proof.commands[:MOST_SENTENCES]],
        changed_files=changed[:4096],
    )


def proof_attributes(findings: Sequence[work.TaskFinding]) -> dict[str, str | int]:
    """Proofs as attributes of the verifier's span: worth, base, tests and protected changes; ids of tests stay out."""
    proofs = [finding.proof for finding in findings]
    commands = [command for proof in proofs for command in proof.commands]
    tests = [test for command in commands for test in command.tests]
    turned = [test for test in tests if test.outcome == pb.TEST_OUTCOME_PASSED]
    red = [test for test in tests if test.outcome in (pb.TEST_OUTCOME_FAILED, pb.TEST_OUTCOME_ERROR)]
    found: dict[str, str | int] = {
        "pointsman.proof.reused": sum(proof.reused for proof in proofs),
        "pointsman.proof.tests.executed": sum(command.executed for command in commands),
        "pointsman.proof.tests.turned_green": len(turned),
        "pointsman.proof.tests.red": len(red),
        "pointsman.proof.tests.flaky": sum(len(command.flaky) for command in commands),
        "pointsman.proof.protected_changes": sum(len(proof.protected_changes) for proof in proofs),
        "pointsman.proof.questions": sum(len(proof.questions) for proof in proofs),
    }
    if proofs:
        found |= {"pointsman.proof.base": proofs[0].base_commit, "pointsman.proof.isolation": proofs[0].isolation}
    if grades := [finding.proof.grade for finding in findings if finding.accepted]:
        found["pointsman.proof.grade"] = pb.Grade.Name(min(grades)).removeprefix("GRADE_")
    return found


def _sentences(lines: Sequence[str]) -> list[str]:
    return [line[:SENTENCE_LENGTH] for line in lines[:MOST_SENTENCES]]


def _protected(change: ProtectedChange) -> pb.ProtectedChange:
    return pb.ProtectedChange(
        path=change.path[:1024],
        change=_CHANGES[change.change],
        kind=str(change.kind),
        why=change.why,
        keys=[key[:256] for key in change.keys[:MOST_SENTENCES]],
    )


def _command(facts: CommandFacts) -> pb.ProofCommand:
    run = facts.restored
    return pb.ProofCommand(
        command=[word[:4096] for word in run.command[:64]],
        adapter=run.report.adapter,
        exit_code=run.result.exit_code,
        executed=len(run.report.executed),
        tests=list(_tests(facts.base.report, run.report, facts.delivered.report))[:MOST_TESTS],
        flaky=[test[:1024] for test in facts.flaky[:MOST_SENTENCES]],
    )


def _tests(base: TestReport, restored: TestReport, delivered: TestReport) -> Iterator[pb.TestResult]:
    """Tests worth naming: red ones, those whose outcome changed, and the author's new ones."""
    for test_id in sorted({*base.tests, *restored.tests, *delivered.tests}):
        now = restored.tests.get(test_id) or (delivered.tests.get(test_id) if test_id not in base.tests else None)
        before, outcome = base.outcome(test_id), now.outcome if now else None
        if outcome != before or outcome in RED:
            yield pb.TestResult(
                id=test_id[:1024],
                outcome=_OUTCOMES[outcome] if outcome else pb.TEST_OUTCOME_UNSPECIFIED,
                before=_OUTCOMES[before] if before else pb.TEST_OUTCOME_UNSPECIFIED,
                message=now.message[:2048] if now else "",
            )
