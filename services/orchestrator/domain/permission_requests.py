"""An agent at work asks for a permission: once each, not too often, and a person is asked when no other question is open."""

from pointsman.services.orchestrator.domain.commands import PermissionOutcome, RequestPermission
from pointsman.services.orchestrator.domain.completion import leased
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import PermissionState, Question
from pointsman.services.orchestrator.domain.permission_events import PermissionRequested
from pointsman.services.orchestrator.domain.permissions import permission_id

MAX_REQUESTS = 16
"""Of one assignment; an agent that asks more often is denied, so that it cannot wear people out."""


def request_permission(builder: DecisionBuilder, command: RequestPermission) -> PermissionOutcome:
    """What was answered; the first request is recorded and becomes a question."""
    assignment, _ = leased(builder, command)
    name = permission_id(assignment.assignment_id, command.key)
    known = builder.run.permissions.get(name)
    if known is not None:
        return PermissionOutcome(known.state)
    mine = [item for item in builder.run.permissions.values() if item.assignment_id == assignment.assignment_id]
    if len(mine) >= MAX_REQUESTS:
        return PermissionOutcome(PermissionState.DENIED)
    where = "/".join(part for part in (assignment.task_id, assignment.stage) if part) or str(assignment.purpose).lower()
    text = f"The agent at work on {where} asks for permission to {command.text}"
    builder.emit(PermissionRequested(name, assignment.assignment_id, text))
    return PermissionOutcome(PermissionState.PENDING)


def ask_next(builder: DecisionBuilder) -> None:
    """Once no question is open: offer what is held back, then ask about the first permission that waits."""
    if builder.run.ended or builder.run.question is not None:
        return
    builder.offer_held()
    pending = [(key, item) for key, item in builder.run.permissions.items() if item.state is PermissionState.PENDING]
    if pending and builder.run.question is None:
        (name, item), *_ = pending
        builder.ask(Question.PERMISSION, item.text, (name,))
