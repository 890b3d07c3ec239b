"""What a claim is worth: rules that need nobody's judgement."""

from pointsman._shared.globs import covers
from pointsman.services.orchestrator.domain.enums import EvidenceKind
from pointsman.services.orchestrator.domain.model import ClaimOutline, Task, Work


def without_evidence(work: Work) -> tuple[str, ...]:
    """Claims that name no evidence at all."""
    return tuple(claim.claim_id for claim in work.claims if not claim.evidence)


def can_support(claim: ClaimOutline) -> bool:
    """Whether the claim's evidence can support it: a NOTE alone never does."""
    return any(kind is not EvidenceKind.NOTE for kind in claim.evidence)


def uncovered_criteria(task: Task) -> tuple[str, ...]:
    """Required criteria to which no claim with more than notes speaks."""
    claims = task.work.claims if task.work else ()
    covered = {criterion for claim in claims if can_support(claim) for criterion in claim.criterion_ids}
    return tuple(c.criterion_id for c in task.outline.criteria if c.required and c.criterion_id not in covered)


def unsupported_criteria(task: Task, supported_claims: tuple[str, ...], passed: tuple[str, ...]) -> tuple[str, ...]:
    """Required criteria that the verifier's findings leave open: its own command decides where there is one."""
    claims = task.work.claims if task.work else ()
    covered = {criterion for claim in claims if claim.claim_id in supported_claims for criterion in claim.criterion_ids}
    open_ones = []
    for criterion in task.outline.criteria:
        holds = criterion.criterion_id in (passed if criterion.has_command else covered)
        if criterion.required and not (holds and criterion.criterion_id in covered):
            open_ones.append(criterion.criterion_id)
    return tuple(open_ones)


def needs_person(task: Task) -> str:
    """Why nobody but a person can accept the task; empty when rules, reviewer and verifier can."""
    if task.work is None or not task.work.claims:
        return "no claim was made"
    if not any(criterion.required for criterion in task.outline.criteria):
        return "the task has no required criterion"
    return ""


def touched_tests(task: Task) -> tuple[str, ...]:
    """Changed files that a criterion names as its tests."""
    tests = {path for criterion in task.outline.criteria for path in criterion.test_files}
    changed = task.work.changed_files if task.work else ()
    return tuple(path for path in changed if path in tests)


def touched_outside(task: Task) -> tuple[str, ...]:
    """Changed files that no glob of the task covers; none where the plan names no files."""
    globs = task.outline.files
    changed = task.work.changed_files if task.work and globs else ()
    return tuple(path for path in changed if not any(covers(glob, path) for glob in globs))
