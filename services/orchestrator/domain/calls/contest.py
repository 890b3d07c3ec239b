"""Best of N: several coders on one stage of one attempt; the verifier grades their works, and the best goes on to the judges."""

from dataclasses import replace

from pointsman._shared.excerpt import excerpt
from pointsman.services.orchestrator.domain.calls.stage_completion import (
    StageFailure,
    complete_stage,
    note_failure,
)
from pointsman.services.orchestrator.domain.commands import CompleteAssignment, StageResult
from pointsman.services.orchestrator.domain.contender_events import (
    ContenderChosen,
    ContenderHandedIn,
    ContenderProven,
)
from pointsman.services.orchestrator.domain.contenders import best_of
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_setback
from pointsman.services.orchestrator.domain.enums import Capability, Severity
from pointsman.services.orchestrator.domain.events import WorkHandedIn
from pointsman.services.orchestrator.domain.model import Assignment, Contender

STAGE = "DEV"
NOBODY_FINISHED = StageResult("FAIL", "ABORT", Severity.HIGH, "agent_lost: none of the coders handed in work")
REASON_LENGTH = 1000


def takes_over(builder: DecisionBuilder, assignment: Assignment) -> bool:
    """Offer a coder's stage to several, or answer it with the next best work; whether it was either."""
    wanted, contenders = builder.run.order.best_of, builder.run.tasks[assignment.task_id].contenders
    if wanted < 2 or assignment.stage != STAGE or assignment.capability is not Capability.CODE:
        return False
    if not contenders:
        builder.assign_together([replace(assignment, contender=number) for number in range(1, wanted + 1)])
        return True
    chosen = best_of(contenders)
    if chosen is not None:
        _choose(builder, assignment, chosen)
    return chosen is not None


def contender_done(
    builder: DecisionBuilder, assignment: Assignment, result: StageResult, done: CompleteAssignment
) -> None:
    """Keep a coder's work, or what the verifier found about one; once all are there, the best goes on."""
    if assignment.capability is Capability.VERIFY:
        found = result.proof
        assert found is not None
        builder.emit(
            ContenderProven(
                assignment.task_id, assignment.contender, done.agent_id, found.accepted, result.document, found.grade,
                excerpt(found.reason, REASON_LENGTH), found.failing,
            )
        )  # fmt: skip
    elif result.work is not None and result.verdict != "FAIL":
        builder.emit(ContenderHandedIn(assignment.task_id, assignment.contender, result.work, done.principal))
    else:
        said = result.hint or result.report or "it says FAIL and does not say why"
        note_failure(builder, assignment.task_id, StageFailure(assignment.stage, done.agent_id, said))
    _go_on(builder, assignment)


def contender_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """A coder that is gone takes no part; a work that no verifier looked at counts as one that failed."""
    said = f"no agent finished{because(last_setback(assignment))}"
    note_failure(builder, assignment.task_id, StageFailure(assignment.stage, "", said))
    if assignment.capability is Capability.VERIFY:
        builder.emit(
            ContenderProven(assignment.task_id, assignment.contender, "", passed=False, document="", reason=said)
        )
    _go_on(builder, assignment)


def _go_on(builder: DecisionBuilder, assignment: Assignment) -> None:
    """Wait for the others; then have all works proven; then choose."""
    run, task_id = builder.run, assignment.task_id
    live = (*run.assignments.values(), *run.held)
    if any(item.contender and item.task_id == task_id for item in live):
        return
    contenders = run.tasks[task_id].contenders
    unproven = [one for one in contenders if not one.proven]
    best = best_of(contenders)
    if best is None:
        complete_stage(builder, assignment, "", NOBODY_FINISHED, lost=True)
    elif unproven and run.needs_verifier:
        for one in unproven:
            builder.assign(_proof_of(assignment, one))
    else:
        _choose(builder, assignment, best)


def _proof_of(assignment: Assignment, one: Contender) -> Assignment:
    """The verifier's work on a contender, under the delegation of the coders' stage."""
    return replace(
        assignment, assignment_id="", capability=Capability.VERIFY, contender=one.number, patch=one.work.result_commit,
        excluded_agent=one.work.author, directive="", setbacks=(), restarts=0,
    )  # fmt: skip


def _choose(builder: DecisionBuilder, assignment: Assignment, chosen: Contender) -> None:
    """A contender becomes the work of the task, and the stage is done."""
    contenders = builder.run.tasks[assignment.task_id].contenders
    worth = (
        f"{chosen.grade}" if chosen.grade else "passed" if chosen.passed else "failed" if chosen.proven else "unproven"
    )
    passed = sum(one.passed for one in contenders)
    said = f"contender {chosen.number} ({worth.replace('_', ' ')}) of {len(contenders)}, {passed} of which passed"
    builder.emit(ContenderChosen(assignment.task_id, chosen.number, said))
    builder.emit(WorkHandedIn(assignment.task_id, chosen.work))
    complete_stage(builder, assignment, chosen.work.author, StageResult("PASS", report=said), lost=False)
