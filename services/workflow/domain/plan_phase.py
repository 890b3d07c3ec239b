"""Decisions about whole plans: store, import, execute, pause, resume, unblock, cancel."""

from dataclasses import replace

from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field, invalid_fields, state_forbids
from pointsman.services.workflow.domain import commands, events
from pointsman.services.workflow.domain.collaboration import collaboration_for
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.dependency_classes import DEPENDENCY_CLASSES
from pointsman.services.workflow.domain.enums import (
    ALL_DEPENDENCIES,
    KIND,
    EventName,
    PauseCause,
    TaskStatus,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.events import NO_FIELDS
from pointsman.services.workflow.domain.model import READY, Workflow
from pointsman.services.workflow.domain.pause_rules import RequiredPause
from pointsman.services.workflow.domain.plan import problems, tasks_to_store
from pointsman.services.workflow.domain.transitions import check_transition, commands_allowed_in
from pointsman.services.workflow.domain.views import Progress
from pointsman.services.workflow.domain.zero_decision_audit import Audit, audit


def upsert_plan(builder: DecisionBuilder, command: commands.UpsertPlan) -> commands.PlanAnswer:
    """Creates the workflow if it is new, sets its fields, stores its plan."""
    created = not builder.exists
    before = builder.state if builder.exists else None
    if before is not None:
        builder.check_command("UpsertPlan")
        _check_owner(before, command.fields.owner_run_id)
        _check_cancelled_by(before, command.fields.owner_run_id)
    _check_plan(before, command)
    if created:
        builder.emit(EventName.CREATED, events.Created(command.entity_id), WorkflowStatus.IDLE)
    _set_fields(builder, command)
    if command.tasks:
        _store_plan(builder, command)
    return commands.PlanAnswer(builder.progress, builder.header.collaboration, created)


def _check_owner(state: Workflow, wanted: str | None) -> None:
    owner = state.header.owner_run_id
    if wanted and owner and wanted != owner:
        raise _owned(state)


def _check_cancelled_by(state: Workflow, wanted: str | None) -> None:
    """Refuses a late request of the run that cancelled the plan: it must not restore it."""
    header = state.header
    if header.cancelled and wanted and wanted == header.cancelled_by:
        message = (
            f"run '{wanted}' has cancelled this plan; only another run, or a caller that names none, may store one"
        )
        raise state_forbids(KIND, header.workflow_id, header.status, commands_allowed_in(header.status), message)


def _owned(state: Workflow) -> Refusal:
    owner = state.header.owner_run_id
    return Refusal(
        Reason.WORKFLOW_OWNED,
        f"run '{owner}' works on this workflow; wait until it lets go",
        metadata={"id": state.header.workflow_id, "owner_run_id": owner},
    )


def _check_plan(state: Workflow | None, command: commands.UpsertPlan) -> None:
    if not command.tasks and not command.unreadable:
        return
    if state is not None:
        _check_nothing_in_flight(state, "a plan")
    found = problems(state, command)
    if found:
        raise invalid_fields(found)


def _check_nothing_in_flight(state: Workflow, what: str) -> None:
    header = state.header
    count = header.counts[TaskStatus.IN_PROGRESS]
    if count:
        message = f"{what} cannot be stored while {count} tasks are in progress; settle or release them"
        raise state_forbids(KIND, header.workflow_id, header.status, commands_allowed_in(header.status), message)


def _set_fields(builder: DecisionBuilder, command: commands.UpsertPlan) -> None:
    given = command.fields
    if given.intake_text and given.collaboration is None:
        given = replace(given, collaboration=collaboration_for(given.intake_text, len(command.tasks)))
    header = builder.header
    warning = given.warning_threshold or header.warning_threshold
    danger = given.danger_threshold or header.danger_threshold
    if warning > danger:
        raise invalid_field("warning_threshold", f"{warning} is above the danger threshold {danger}")
    if given != NO_FIELDS:
        builder.emit(EventName.FIELDS_CHANGED, events.FieldsChanged(given))


def _store_plan(builder: DecisionBuilder, command: commands.UpsertPlan) -> None:
    stored = events.PlanStored(tasks_to_store(builder.state, command.tasks), command.append)
    preview = builder.preview(EventName.PLAN_STORED, stored)
    builder.emit(EventName.PLAN_STORED, stored, _status_after_plan(preview))
    builder.conclude()


def _status_after_plan(preview: Workflow) -> WorkflowStatus:
    """The status after a plan: idle becomes planned; failed and blocked run again if the plan removes the cause."""
    status, counts = preview.header.status, preview.header.counts
    if status is WorkflowStatus.IDLE:
        return WorkflowStatus.PLANNED
    if status is WorkflowStatus.FAILED and not counts[TaskStatus.FAILED]:
        return WorkflowStatus.RUNNING
    if status is WorkflowStatus.BLOCKED and (counts[READY] or not counts[TaskStatus.BLOCKED]):
        return WorkflowStatus.RUNNING
    return status


def import_state(builder: DecisionBuilder, command: commands.ImportState) -> Progress:
    """Stores an imported workflow as a new one, or replaces a stored one along an allowed transition."""
    imported = command.imported
    target = imported.header.status
    if command.plan is not None and command.plan.unreadable and target is WorkflowStatus.COMPLETED:
        raise invalid_fields(command.plan.unreadable)
    if builder.exists:
        _check_replaceable(builder.state, command)
    builder.emit(EventName.IMPORTED, imported, target)
    if command.plan is not None and target is not WorkflowStatus.COMPLETED:
        upsert_plan(builder, command.plan)
    return builder.progress


def _check_replaceable(state: Workflow, command: commands.ImportState) -> None:
    header = state.header
    if not command.replace:
        raise Refusal(
            Reason.ALREADY_EXISTS,
            f"there is a workflow '{header.workflow_id}' already; say replace to import over it",
            metadata={"kind": KIND, "id": header.workflow_id},
        )
    _check_nothing_in_flight(state, "an import")
    if header.owner_run_id:
        raise _owned(state)
    target = command.imported.header.status
    if target is not header.status:
        check_transition(header.workflow_id, header.status, target)


def execute(builder: DecisionBuilder, command: commands.Execute) -> Progress:
    """Starts a planned workflow, unless a required audit fails."""
    builder.check_command("Execute")
    if command.settings.require_audit or (command.settings.require_audit is None and builder.header.require_audit):
        _require_audit(builder, command)
    executed = events.Executed(command.settings, command.accepted_findings)
    builder.emit(EventName.EXECUTED, executed, WorkflowStatus.RUNNING)
    builder.conclude()
    return builder.progress


def _require_audit(builder: DecisionBuilder, command: commands.Execute) -> None:
    result = _audit(builder)
    errors = [finding.finding_id for finding in result.findings if finding.error]
    refused = [finding_id for finding_id in errors if finding_id not in command.accepted_findings]
    if refused or result.error_count > len(errors):
        raise Refusal(
            Reason.AUDIT_NOT_PASSED,
            f"the zero-decision audit found {result.error_count} errors; decide them or accept each by name",
            metadata={"id": command.entity_id, "findings": ",".join(refused[:20])},
        )
    builder.emit(EventName.AUDITED, events.Audited(result))


def run_audit(builder: DecisionBuilder, _command: commands.RunAudit) -> Audit:
    """Runs the zero-decision audit and records it."""
    builder.check_command("Audit")
    result = _audit(builder)
    builder.emit(EventName.AUDITED, events.Audited(result))
    return result


def _audit(builder: DecisionBuilder) -> Audit:
    specs = [task.spec for task in builder.state.tasks.in_order()]
    return audit(specs, builder.state.details.constraints, builder.now)


def pause(builder: DecisionBuilder, command: commands.PauseWorkflow) -> Progress:
    """Pauses a running workflow on request."""
    builder.check_command("Pause")
    builder.pause(RequiredPause(PauseCause.REQUESTED, command.reason))
    return builder.progress


def resume(builder: DecisionBuilder, command: commands.Resume) -> Progress:
    """Resumes a paused workflow; resuming before a commit approves it."""
    builder.check_command("Resume")
    paused = builder.header.pause
    approves_commit = paused is not None and paused.cause is PauseCause.BEFORE_COMMIT
    builder.emit(EventName.RESUMED, events.Resumed(command.settings, approves_commit), WorkflowStatus.RUNNING)
    builder.conclude()
    return builder.progress


def unblock(builder: DecisionBuilder, command: commands.Unblock) -> commands.Counted:
    """Marks an external dependency as available; repeating it changes nothing."""
    header = builder.header
    builder.check_command("Unblock")
    every = command.dependency == ALL_DEPENDENCIES
    named = (*DEPENDENCY_CLASSES, *sorted(header.blocking)) if every else (command.dependency,)
    new = tuple(dict.fromkeys(name for name in named if name not in header.unblocked))
    if not new:
        return commands.Counted(builder.progress, 0)
    unblocked = events.Unblocked(new)
    preview = builder.preview(EventName.UNBLOCKED, unblocked)
    freed = header.counts[TaskStatus.BLOCKED] - preview.header.counts[TaskStatus.BLOCKED]
    leaves = header.status is WorkflowStatus.BLOCKED and freed > 0
    builder.emit(EventName.UNBLOCKED, unblocked, WorkflowStatus.RUNNING if leaves else None)
    builder.conclude()
    return commands.Counted(builder.progress, freed)


def cancel_plan(builder: DecisionBuilder, _command: commands.CancelPlan) -> Progress:
    """Cancels the plan: planned returns to idle, idle and failed are only marked, any other status fails."""
    header = builder.header
    builder.check_command("CancelPlan")
    if header.status is WorkflowStatus.PLANNED:
        builder.emit(EventName.CANCELLED, events.Cancelled(), WorkflowStatus.IDLE)
    elif header.status in (WorkflowStatus.IDLE, WorkflowStatus.FAILED):
        if header.owner_run_id or not header.cancelled:
            builder.emit(EventName.CANCELLED, events.Cancelled())
    else:
        builder.reopen("cancelled")
        builder.emit(EventName.CANCELLED, events.Cancelled(), WorkflowStatus.FAILED)
    return builder.progress
