"""Attempts at tasks as lines of text."""

from collections.abc import Iterator

from pointsman.api.handoff.v1.work_pb2 import ClaimStatus
from pointsman.api.orchestrator.v1.evidence_pb2 import Attempt
from pointsman.cli.render.progress_lines import grade_text
from pointsman.cli.render.proven_lines import changed, proven_lines
from pointsman.cli.render.transition_lines import shortened


def attempt_lines(attempt: Attempt) -> Iterator[str]:
    """An attempt: what went wrong, what was claimed and found, and who decided what and why."""
    author = f", by {attempt.author}" if attempt.author else ""
    yield f"{attempt.task_id} attempt {attempt.attempt}: {attempt.status}{author}"
    for setback in attempt.setbacks:
        who = f" by {setback.agent_id}" if setback.agent_id else ""
        yield f"  {setback.stage} failed{who}: {shortened(setback.reason)}"
    yield from _contenders(attempt)
    yield from _claims(attempt)
    for criterion in attempt.finding.criteria:
        detail = "" if criterion.passed else f": {shortened(criterion.detail)}"
        command = f" `{' '.join(criterion.evidence.command)}`" if criterion.evidence.command else ""
        yield f"  criterion {criterion.criterion_id}{command} {'passed' if criterion.passed else 'failed'}{detail}"
    yield from _proof(attempt)
    for judgement in attempt.judgements:
        reason = f": {shortened(judgement.reason)}" if judgement.reason else ""
        yield f"  {judgement.verdict} by the {judgement.judge}{reason}"


def _contenders(attempt: Attempt) -> Iterator[str]:
    """The works among which one was chosen, side by side."""
    for one in attempt.contenders:
        found = one.finding
        refused = "refused" if one.HasField("finding") else "not proven"
        worth = grade_text(found.proof.grade).lstrip(", ") if found.accepted else refused
        why = f": {shortened(one.reason)}" if one.reason and not found.accepted else ""
        files, commit = len(one.work.changed_files), one.work.result_commit[:12]
        mark = "  ← chosen" if one.chosen else ""
        yield f"  contender {one.number} by {one.author}: {worth or 'passed'}, {files} files, {commit}{why}{mark}"


def _proof(attempt: Attempt) -> Iterator[str]:
    """What the verifier's proof is worth, and what it rests on."""
    proof = attempt.finding.proof
    if attempt.finding.HasField("proof"):
        yield from (f"  {line}" for line in proven_lines(proof))
        handed_in = {file.path for file in attempt.work.changed_files}
        others = [file for file in proof.changed_files if file.path not in handed_in]
        yield from (f"    changed and not handed in: {file.path} ({changed(file.change)})" for file in others)


def _claims(attempt: Attempt) -> Iterator[str]:
    found = {finding.claim_id: finding for finding in attempt.finding.claims}
    for claim in attempt.work.claims:
        proof = f" ({', '.join(claim.evidence_ids) or 'no evidence'})"
        word = ""
        if claim.id in found:
            word = f" {ClaimStatus.Name(found[claim.id].status).removeprefix('CLAIM_STATUS_').lower()}"
        yield f"  claim {claim.id}{word}: {claim.statement}{proof}"
