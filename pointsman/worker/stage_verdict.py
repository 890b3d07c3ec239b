"""The verifier's word on a TEST stage: pass, or fail with the tests that fail, for the coder who tries again."""

from collections.abc import Iterator

from pointsman._shared.excerpt import excerpt
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import proof_pb2 as pb
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.worker.evidence_check import SUPPORTED
from pointsman.worker.results import MAX_HINT

SUMMARY_LENGTH = 1900
MESSAGE_LENGTH = 400
SHOWN_TESTS = 20
TRACEBACK = "Traceback (most recent call last):"
MAX_REPORT = 60_000
_RED = (pb.TEST_OUTCOME_FAILED, pb.TEST_OUTCOME_ERROR)


def stage_verdict(finding: work.TaskFinding) -> work.StageResult:
    """The result of a TEST stage: the verdict follows from the finding, and a failure says which tests fail and how."""
    if finding.accepted:
        return work.StageResult(route=work.StageRoute(verdict="PASS"), finding=finding)
    summary = excerpt("\n".join(_one_paragraph(line) for line in _problems(finding)), SUMMARY_LENGTH)
    route = work.StageRoute(verdict="FAIL", severity=handoff.SEVERITY_HIGH, hint=summary[:MAX_HINT])
    text = excerpt("\n\n".join([summary, *_details(finding)]), MAX_REPORT)
    return work.StageResult(route=route, report_md=handoff.Document(text=text), finding=finding)


def _problems(finding: work.TaskFinding) -> Iterator[str]:
    """Why the work is not accepted, the decisive things first; never nothing."""
    yield from (f"conflict in {path}" for path in finding.conflicts)
    yield from finding.proof.reasons
    red = [test for command in finding.proof.commands for test in command.tests if test.outcome in _RED]
    for test in sorted(red, key=lambda one: one.before in _RED)[:SHOWN_TESTS]:
        was = " (it failed on the base too)" if test.before in _RED else ""
        yield f"FAILED {test.id}{was}: {_error_first(excerpt(test.message, MESSAGE_LENGTH))}"
    if not finding.proof.reasons:
        yield from (f"{item.criterion_id}: {item.detail}" for item in finding.criteria if not item.passed)
    for claim in finding.claims:
        if claim.status != SUPPORTED:
            status = work.ClaimStatus.Name(claim.status).removeprefix("CLAIM_STATUS_").lower()
            yield f"claim {claim.claim_id} is {status}: {claim.detail}"
    if not finding.claims:
        yield "no claim was made"


def _error_first(message: str) -> str:
    """A message whose first line says what failed; that of a Python traceback is its last."""
    lines = message.strip().splitlines()
    return "\n".join([lines[-1], *lines]) if message.startswith(TRACEBACK) else message


def _details(finding: work.TaskFinding) -> Iterator[str]:
    """What each command that does not hold printed: head, tail and the failure."""
    for item in finding.criteria:
        if not item.passed and item.detail:
            yield f"## {item.criterion_id}\n\n```\n{item.detail}\n```"


def _one_paragraph(text: str) -> str:
    """A text without blank lines, which would end the summary."""
    return "\n".join(line for line in text.splitlines() if line.strip())
