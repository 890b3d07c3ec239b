"""Decisions about constraints: merge, record checks, waive."""

from pointsman.services.chassis.core.errors import not_found
from pointsman.services.workflow.domain import commands as asked
from pointsman.services.workflow.domain import events as happened
from pointsman.services.workflow.domain.commands import progress_of
from pointsman.services.workflow.domain.constraints import ConstraintType, find, merge
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.enums import PauseCause, check_command
from pointsman.services.workflow.domain.events import EventName


def merge_constraints(draft: DecisionBuilder, command: asked.MergeConstraints) -> asked.MergeAnswer:
    """Merge the sets with what the workflow holds already."""
    check_command("MergeConstraints", command.entity_id, draft.header.status)
    held = (draft.state.details.constraints,) if draft.header.constrained else ()
    merged = merge((*held, *command.sets))
    draft.emit(EventName.CONSTRAINTS_MERGED, happened.ConstraintsMerged(merged.kept, merged.dropped))
    return asked.MergeAnswer(progress_of(draft.header), merged.kept, merged.dropped)


def record_verification(draft: DecisionBuilder, command: asked.RecordVerification) -> asked.UnmetAnswer:
    """Record results of checks; a workflow that waited only for them completes."""
    check_command("RecordVerification", command.entity_id, draft.header.status)
    for result in command.results:
        _known(draft, result.constraint_id, hard_only=False)
    draft.emit(EventName.CONSTRAINTS_VERIFIED, happened.ConstraintsVerified(command.results))
    return _released(draft)


def waive_constraint(draft: DecisionBuilder, command: asked.WaiveConstraint) -> asked.UnmetAnswer:
    """Take one hard constraint out of the way; a workflow that waited only for it completes."""
    check_command("WaiveConstraint", command.entity_id, draft.header.status)
    _known(draft, command.constraint_id, hard_only=True)
    waived = happened.ConstraintWaived(command.constraint_id, command.reason, command.by)
    draft.emit(EventName.CONSTRAINT_WAIVED, waived)
    return _released(draft)


def _known(draft: DecisionBuilder, constraint_id: str, *, hard_only: bool) -> None:
    found = find(draft.state.details.constraints, constraint_id)
    if found is None or (hard_only and found.type is not ConstraintType.HARD):
        raise not_found("constraint", constraint_id)


def _released(draft: DecisionBuilder) -> asked.UnmetAnswer:
    header = draft.header
    if not header.unmet and header.pause is not None and header.pause.cause is PauseCause.CONSTRAINTS:
        draft.reopen("every hard constraint is met")
        draft.conclude()
    return asked.UnmetAnswer(progress_of(draft.header), draft.header.unmet)
