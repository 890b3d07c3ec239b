"""Decisions about constraints: merge, record checks, waive."""

from pointsman.services.chassis.core.errors import not_found
from pointsman.services.workflow.domain import commands, events
from pointsman.services.workflow.domain.constraints import find, merge
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.enums import ConstraintType, EventName, PauseCause


def merge_constraints(builder: DecisionBuilder, command: commands.MergeConstraints) -> commands.MergeAnswer:
    """Merges the sets with the constraints of the workflow."""
    builder.check_command("MergeConstraints")
    current = (builder.state.details.constraints,) if builder.header.constrained else ()
    result = merge((*current, *command.sets))
    builder.emit(EventName.CONSTRAINTS_MERGED, events.ConstraintsMerged(result.merged, result.dropped))
    return commands.MergeAnswer(builder.progress, result.merged, result.dropped)


def record_verification(builder: DecisionBuilder, command: commands.RecordVerification) -> commands.UnmetAnswer:
    """Records results of checks; a workflow that waited only for them completes."""
    builder.check_command("RecordVerification")
    for result in command.results:
        _require_constraint(builder, result.constraint_id, hard_only=False)
    builder.emit(EventName.CONSTRAINTS_VERIFIED, events.ConstraintsVerified(command.results))
    return _complete_if_met(builder)


def waive_constraint(builder: DecisionBuilder, command: commands.WaiveConstraint) -> commands.UnmetAnswer:
    """Waives one hard constraint; a workflow that waited only for it completes."""
    builder.check_command("WaiveConstraint")
    _require_constraint(builder, command.constraint_id, hard_only=True)
    waived = events.ConstraintWaived(command.constraint_id, command.reason, command.by)
    builder.emit(EventName.CONSTRAINT_WAIVED, waived)
    return _complete_if_met(builder)


def _require_constraint(builder: DecisionBuilder, constraint_id: str, *, hard_only: bool) -> None:
    found = find(builder.state.details.constraints, constraint_id)
    if found is None or (hard_only and found.type is not ConstraintType.HARD):
        raise not_found("constraint", constraint_id)


def _complete_if_met(builder: DecisionBuilder) -> commands.UnmetAnswer:
    header = builder.header
    if not header.unmet and header.pause is not None and header.pause.cause is PauseCause.CONSTRAINTS:
        builder.reopen("every hard constraint is met")
        builder.conclude()
    return commands.UnmetAnswer(builder.progress, builder.header.unmet)
