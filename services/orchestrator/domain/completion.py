"""What agents hand in: whose lease it is, whether it fits, and what follows from it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pointsman._shared.excerpt import excerpt
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import acceptance, events, execution, planning, research
from pointsman.services.orchestrator.domain.calls import plans
from pointsman.services.orchestrator.domain.commands import (
    AnswersResult,
    CompleteAssignment,
    CompleteAssignments,
    CompletionOutcome,
    CompletionOutcomes,
    DebateResult,
    DesignResult,
    ExpireAssignment,
    FailAssignment,
    MalformedResult,
    PlanResult,
    RequestPermission,
    ResearchResult,
    Result,
    ReviewResult,
    StageResult,
    VerifyResult,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, last_setback
from pointsman.services.orchestrator.domain.enums import WRITING, AssignmentEnd, Capability, Purpose, Verdict
from pointsman.services.orchestrator.domain.failures import failed_alike
from pointsman.services.orchestrator.domain.model import Assignment, Usage
from pointsman.services.orchestrator.domain.planning import plan_problems
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS, Lease

CAUSE_LENGTH = 2000
ACCEPTED = CompletionOutcome(accepted=True)
EXPECTED: Mapping[Purpose, tuple[type, str]] = {
    Purpose.PLAN: (PlanResult, "plan"),
    Purpose.PATCH: (PlanResult, "plan"),
    Purpose.DEBATE: (DebateResult, "review"),
    Purpose.PLAN_ANSWER: (AnswersResult, "answers"),
    Purpose.RESEARCH: (ResearchResult, "research"),
    Purpose.DESIGN: (DesignResult, "design"),
    Purpose.STAGE: (StageResult, "stage"),
    Purpose.REVIEW: (ReviewResult, "review"),
    Purpose.VERIFY: (VerifyResult, "verification"),
}


def complete(builder: DecisionBuilder, command: CompleteAssignment | FailAssignment) -> CompletionOutcome:
    """Take one result, or that an agent gives up."""
    assignment, lease = leased(builder, command)
    if builder.stops_at_limit():
        return ACCEPTED
    if isinstance(command, FailAssignment):
        return _fail(builder, assignment, lease, command)
    outcome = _complete(builder, assignment, lease, command)
    if outcome.accepted and assignment.purpose is Purpose.RESEARCH:
        research.reported(builder, (assignment.slot,))
    return outcome


def complete_all(builder: DecisionBuilder, command: CompleteAssignments) -> CompletionOutcomes:
    """Take several results, each with an outcome of its own.

    Reports that come together pass through the machine together, behind whatever else comes with them: what that
    leads to, such as a slot that is lost, is no news to them then.
    """
    outcomes: dict[str, CompletionOutcome] = {}
    for item in command.items:
        if not _is_report(builder, item):
            outcomes[item.assignment_id] = _unless_refused(complete, builder, item)
    slots: list[str] = []
    for item in command.items:
        if item.assignment_id not in outcomes:
            outcomes[item.assignment_id] = _unless_refused(partial(_take_report, slots), builder, item)
    if slots and not builder.run.ended:
        research.reported(builder, slots)
    return CompletionOutcomes(tuple(outcomes[item.assignment_id] for item in command.items))


def _unless_refused(
    take: Callable[[DecisionBuilder, CompleteAssignment], CompletionOutcome],
    builder: DecisionBuilder,
    item: CompleteAssignment,
) -> CompletionOutcome:
    """One of several results, with all that follows from it, before the next is looked at."""
    try:
        outcome = take(builder, item)
        builder.run_actions()
    except Refusal as refusal:
        return CompletionOutcome(accepted=False, problem=refusal.message, refusal=str(refusal.reason))
    return outcome


def _is_report(builder: DecisionBuilder, item: CompleteAssignment) -> bool:
    """Whether it is a report that is waited for; one that does not fit is a failed attempt like any other."""
    assignment = builder.run.assignments.get(item.assignment_id)
    return assignment is not None and _problem(builder, assignment, item.result) is None and _asks_report(assignment)


def _asks_report(assignment: Assignment) -> bool:
    return assignment.purpose is Purpose.RESEARCH


def _take_report(slots: list[str], builder: DecisionBuilder, item: CompleteAssignment) -> CompletionOutcome:
    assignment, lease = leased(builder, item)
    if builder.stops_at_limit():
        return ACCEPTED
    slots.append(assignment.slot)
    return _complete(builder, assignment, lease, item)


def _complete(
    builder: DecisionBuilder, assignment: Assignment, lease: Lease, command: CompleteAssignment
) -> CompletionOutcome:
    """Take a result; one that does not fit counts as a failed attempt, and says which field."""
    problem = _problem(builder, assignment, command.result)
    if problem is not None:
        error = f"{problem.field}: {problem.problem}"
        _fail_attempt(builder, assignment, lease, error, command.usage)
        return CompletionOutcome(accepted=False, field=problem.field, problem=problem.problem)
    if _asks_report(assignment):
        research.report(builder, assignment, command)
        return ACCEPTED
    builder.end_assignment(
        assignment.assignment_id, AssignmentEnd.DONE, agent_id=command.agent_id, usage=command.usage,
        principal=command.principal, granted=assignment.capability,
    )  # fmt: skip
    _ON_RESULT[assignment.purpose](builder, assignment, command.result, command)
    return ACCEPTED


def _fail(builder: DecisionBuilder, assignment: Assignment, lease: Lease, command: FailAssignment) -> CompletionOutcome:
    """An agent gives up: another attempt, or the end of it."""
    if command.permanent:
        lease = Lease(lease.agent_id, lease.epoch, MAX_ATTEMPTS, leased=True)
    _fail_attempt(builder, assignment, lease, command.error, command.usage)
    return ACCEPTED


def expire(builder: DecisionBuilder, command: ExpireAssignment) -> None:
    """The last lease ran out: nobody could do it."""
    assignment, lease = builder.run.assignments.get(command.assignment_id), builder.leases.get(command.assignment_id)
    if assignment is not None and lease is not None and lease.epoch == command.epoch:
        exhausted = Lease(lease.agent_id, lease.epoch, MAX_ATTEMPTS, leased=True)
        _fail_attempt(builder, assignment, exhausted, "the lease ran out", Usage())


def leased(
    builder: DecisionBuilder, command: CompleteAssignment | FailAssignment | RequestPermission
) -> tuple[Assignment, Lease]:
    """The assignment and its lease, if it is the caller that holds it."""
    if builder.run.ended:
        raise lease_lost(command.assignment_id, "the run has ended")
    assignment = builder.run.assignments.get(command.assignment_id)
    lease: Lease | None = builder.leases.get(command.assignment_id)
    if assignment is None or lease is None or not lease.leased:
        raise lease_lost(command.assignment_id, "nobody has to work on it any more")
    if not lease.is_held_by(command.agent_id, command.principal, command.epoch, command.secret_digest):
        raise lease_lost(command.assignment_id, "another agent holds it")
    if isinstance(command, CompleteAssignment):
        _check_right(builder, assignment, command)
    return assignment, lease


def _check_right(builder: DecisionBuilder, assignment: Assignment, command: CompleteAssignment) -> None:
    """Whether the principal may do such work now, whatever it might when it took the lease; an author never judges."""
    capability, who = assignment.capability, command.principal
    if not may_do(command.granted, capability):
        raise not_granted(capability, who, id=assignment.assignment_id)
    if who in (*assignment.excluded_principals, *builder.run.excluded_from(capability, assignment.task_id)):
        raise Refusal(
            Reason.PERMISSION_DENIED,
            f"{who} is an author of what '{assignment.assignment_id}' judges; give it back, another principal has to do it",
            metadata={"id": assignment.assignment_id, "capability": capability.lower()},
        )


def may_do(granted: Collection[Capability], capability: Capability) -> bool:
    """Whether what was granted covers a piece of work; a surveyor may stand in for a researcher."""
    return capability in granted or (capability is Capability.RESEARCH and Capability.SURVEY in granted)


def not_granted(capability: Capability, principal: str, **metadata: str) -> Refusal:
    """The refusal of work that the principal was not granted."""
    name = capability.lower()
    return Refusal(
        Reason.PERMISSION_DENIED,
        f"{principal} is not granted the capability {name}; show a credential that is, or have {name} added to the "
        f"capabilities of {principal}",
        metadata={"capability": name, **metadata},
    )


def lease_lost(assignment_id: str, why: str) -> Refusal:
    """The refusal of a caller that does not hold the lease."""
    return Refusal(
        Reason.LEASE_LOST,
        f"the lease of '{assignment_id}' is lost: {why}",
        metadata={"id": assignment_id, "state": why},
    )


def _problem(builder: DecisionBuilder, assignment: Assignment, result: Result) -> MalformedResult | None:
    if isinstance(result, MalformedResult):
        return result
    expected, field = EXPECTED[assignment.purpose]
    if not isinstance(result, expected):
        return MalformedResult(field, f"an assignment for {assignment.purpose} takes a {field}")
    match result:
        case StageResult():
            return _stage_problem(assignment, result)
        case ReviewResult():
            return _review_problem(builder, assignment, result)
        case VerifyResult():
            return _verify_problem(builder, result)
    found = plan_problems(result.plan, builder.run) if isinstance(result, PlanResult) else []
    return MalformedResult("plan.tasks", "; ".join(found)) if found else None


def _stage_problem(assignment: Assignment, result: StageResult) -> MalformedResult | None:
    writes = assignment.capability in WRITING
    if writes and result.work is None and result.verdict != "FAIL":
        return MalformedResult("stage.coder_result", "a writing stage hands in claims, evidence and changed files")
    if assignment.capability is Capability.VERIFY:
        return _proof_problem(assignment, result)
    if assignment.capability is Capability.REVIEW and not result.verdict:
        return MalformedResult("stage.route", "a judge says PASS or FAIL in a typed way; its transcript is not read")
    return None


def _proof_problem(assignment: Assignment, result: StageResult) -> MalformedResult | None:
    """A verifier's stage says what it found about the task, and its verdict is that of the finding."""
    found = result.proof
    if found is None or found.task_id != assignment.task_id:
        return MalformedResult("stage.finding", f"a verifier says what it found about {assignment.task_id}")
    if result.verdict != ("PASS" if found.accepted else "FAIL"):
        return MalformedResult("stage.route.verdict", "must be PASS where the finding is accepted, and FAIL elsewhere")
    return None


def _review_problem(builder: DecisionBuilder, assignment: Assignment, result: ReviewResult) -> MalformedResult | None:
    task = builder.run.tasks[assignment.task_id]
    known = {claim.claim_id for claim in task.work.claims} if task.work else set()
    unknown = [claim for claim in result.rejected_claims if claim not in known]
    if unknown:
        return MalformedResult("review.rejected_claims", f"the work has no claim {unknown[0]}")
    if result.verdict is Verdict.PASS and result.rejected_claims:
        return MalformedResult("review.rejected_claims", "a pass cannot reject claims")
    return None


def _verify_problem(builder: DecisionBuilder, result: VerifyResult) -> MalformedResult | None:
    unknown = [finding.task_id for finding in result.findings if finding.task_id not in builder.run.wave]
    if unknown:
        return MalformedResult("verification.tasks", f"the wave has no task {unknown[0]}")
    return None


def _fail_attempt(builder: DecisionBuilder, assignment: Assignment, lease: Lease, said: str, usage: Usage) -> None:
    assignment_id, error = assignment.assignment_id, excerpt(said, CAUSE_LENGTH)
    if assignment.capability is not Capability.VERIFY and failed_alike((*assignment.setbacks, error)):
        lease = replace(lease, attempt=MAX_ATTEMPTS)
    if lease.attempt < MAX_ATTEMPTS and not builder.may_start_again(assignment_id, usage):
        builder.end_assignment(
            assignment_id, AssignmentEnd.EXHAUSTED, agent_id=lease.agent_id, error=error, usage=usage
        )
        builder.assign(replace(assignment, assignment_id="", setbacks=(*assignment.setbacks, error), restarts=0))
        return
    if lease.attempt < MAX_ATTEMPTS:
        restarts = builder.restarts(assignment_id)
        builder.emit(events.AssignmentRetried(assignment_id, lease.agent_id, lease.attempt, error, usage, restarts))
        return
    builder.end_assignment(assignment_id, AssignmentEnd.EXHAUSTED, agent_id=lease.agent_id, error=error, usage=usage)
    _ON_LOSS[assignment.purpose](builder, replace(assignment, setbacks=(*assignment.setbacks, error)))


_ON_RESULT: Mapping[Purpose, Callable[[DecisionBuilder, Assignment, Any, CompleteAssignment], None]] = {
    Purpose.PLAN: lambda builder, _, result, done: planning.planned(builder, result, done.principal),
    Purpose.PATCH: lambda builder, _, result, done: planning.planned(builder, result, done.principal),
    Purpose.DEBATE: lambda builder, _, result, _done: planning.remarked(builder, result),
    Purpose.PLAN_ANSWER: lambda builder, _, result, _done: planning.answered_remarks(builder, result),
    Purpose.DESIGN: lambda builder, _, result, _done: research.designed(builder, result),
    Purpose.STAGE: execution.stage_done,
    Purpose.REVIEW: lambda builder, assignment, result, _done: acceptance.reviewed(builder, assignment, result),
    Purpose.VERIFY: lambda builder, _, result, _done: acceptance.verified(builder, result),
}
_ON_LOSS: Mapping[Purpose, Callable[[DecisionBuilder, Assignment], None]] = {
    Purpose.PLAN: plans.planner_lost,
    Purpose.PATCH: plans.planner_lost,
    Purpose.DEBATE: lambda builder, assignment: planning.ask_person_to_debate(builder, last_setback(assignment)),
    Purpose.PLAN_ANSWER: lambda builder, _: planning.resolve_debate(builder, ""),
    Purpose.RESEARCH: research.slot_lost,
    Purpose.DESIGN: research.designer_lost,
    Purpose.STAGE: execution.stage_lost,
    Purpose.REVIEW: acceptance.reviewer_lost,
    Purpose.VERIFY: acceptance.verifier_lost,
}
