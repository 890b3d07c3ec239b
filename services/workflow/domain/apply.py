"""How each event changes a workflow; applying a whole journal rebuilds the state."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.machine import Event
from pointsman.services.workflow.domain import constraints as rules
from pointsman.services.workflow.domain import events
from pointsman.services.workflow.domain.enums import CANCELLED, SETTLED_TASKS, EventName, TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.model import (
    EXCERPT_LENGTH,
    HISTORY_LIMIT,
    Header,
    Pause,
    Risk,
    Settings,
    UsageRecord,
    Workflow,
    no_counts,
)
from pointsman.services.workflow.domain.pause_rules import consecutive_limit
from pointsman.services.workflow.domain.tasks import Task


def apply(state: Workflow | None, event: Event, at: datetime) -> Workflow:
    """The workflow after an event."""
    if event.name == EventName.IMPORTED:
        return _import(state, event.data)
    if event.name == EventName.CREATED:
        return Workflow(Header(event.data.workflow_id, at, at))
    if state is None:
        raise ValueError(event.name)
    state.header.updated_at = at
    _leave(state.header, event)
    _APPLY[EventName(event.name)](state, event.data)
    _update_consecutive_limit(state)
    state.header.status = WorkflowStatus(event.target)
    return state


def _leave(header: Header, event: Event) -> None:
    """Clears what was true only of the state that the event leaves."""
    if event.source != event.target:
        header.pause = None
        if event.source == WorkflowStatus.FAILED:
            header.failure_reason = ""
            header.cancelled = False


def _import(state: Workflow | None, data: events.Imported) -> Workflow:
    header = replace(data.header, counts=no_counts(), blocking={})
    imported = Workflow(header, was_resumable=state is not None and state.was_resumable)
    imported.change_details(data.details)
    _replace_tasks(imported, data.tasks)
    return imported


def _change_fields(state: Workflow, data: events.FieldsChanged) -> None:
    given, header = data.fields, state.header
    _set_given(header, given, _PLAIN_FIELDS)
    _apply_settings(header, given.settings)
    if given.intake_text is not None:
        header.intake_excerpt = given.intake_text[:EXCERPT_LENGTH]
        state.change_details(replace(state.details, intake_text=given.intake_text))
    if given.owner_run_id:
        header.run_id = given.owner_run_id
    if given.sessions:
        header.sessions = {**header.sessions, **{model: session or None for model, session in given.sessions}}
    header.cancelled = header.cancelled and not given.intake_text


_PLAIN_FIELDS = (
    "title", "priority", "owner_run_id", "mode", "window_tokens", "warning_threshold", "danger_threshold",
    "collaboration", "tech_design", "tasks_file",
)  # fmt: skip


def _set_given(header: Header, given: Any, names: Iterable[str]) -> None:
    for name in names:
        value = getattr(given, name)
        if value is not None:
            setattr(header, name, value)


def _apply_settings(header: Header, settings: Settings) -> None:
    _set_given(header, settings, (one.name for one in fields(Settings)))


def _store_plan(state: Workflow, data: events.PlanStored) -> None:
    state.header.cancelled = False
    if data.append:
        for task in data.tasks:
            _append(state, task)
        _update_current_task(state, ())
    else:
        listed = {task.task_id for task in data.tasks}
        settled = [
            task for task in state.tasks.in_order() if task.status in SETTLED_TASKS and task.task_id not in listed
        ]
        _replace_tasks(state, [*settled, *data.tasks])
        _update_current_task(state, (state.header.current_task,))


def _append(state: Workflow, task: Task) -> None:
    header, loaded = state.header, state.tasks
    header.last_position += 1
    still_open = sum(1 for one in task.spec.depends if loaded.by_id[one].status not in SETTLED_TASKS)
    placed = replace(task, position=header.last_position, open_dependencies=still_open)
    loaded.add(placed)
    header.count(placed, 1)


def _replace_tasks(state: Workflow, tasks: Iterable[Task]) -> None:
    header = state.header
    state.tasks.replace_all(tasks)
    header.counts, header.blocking = no_counts(), {}
    for task in state.tasks.by_id.values():
        header.count(task, 1)
    header.last_position = len(state.tasks.by_id)


def _execute(state: Workflow, data: events.Executed) -> None:
    _apply_settings(state.header, data.settings)
    state.header.consecutive_count = 0


def _claim(state: Workflow, data: events.Claimed) -> None:
    header = state.header
    header.flight_phase = state.tasks.by_id[data.task_ids[0]].spec.phase
    for task_id in data.task_ids:
        task = state.tasks.by_id[task_id]
        if task.spec.goes_alone:
            header.exclusive_task = task_id
        if task.spec.commits:
            header.commit_approved = False
        claimed = replace(task.moved(TaskStatus.IN_PROGRESS), attempt=task.attempt + 1, worker=data.worker)
        state.replace_task(claimed)
    header.current_task = data.task_ids[0]


def _release(state: Workflow, data: events.Released) -> None:
    for task_id in data.task_ids:
        _finish(state, task_id, TaskStatus.PENDING)
    _update_current_task(state, data.task_ids)


def _release_owner(state: Workflow, _data: events.OwnerReleased) -> None:
    state.header.owner_run_id = ""


def _settle(state: Workflow, data: events.TasksSettled) -> None:
    for task_id in data.completed:
        state.header.flight_phase = state.tasks.by_id[task_id].spec.phase
        _finish(state, task_id, TaskStatus.COMPLETED)
        _decrement_dependants(state, task_id)
    for result in data.failed:
        _finish(state, result.task_id, TaskStatus.FAILED, result.reason)
    for result in data.retried:
        retried = _finish(state, result.task_id, TaskStatus.PENDING, result.reason)
        state.replace_task(replace(retried, retry_count=retried.retry_count + 1))
    state.header.consecutive_count += len(data.completed)
    _update_current_task(state, data.completed)
    if data.failed:
        state.header.current_task = data.failed[0].task_id


def _finish(state: Workflow, task_id: str, status: TaskStatus, reason: str = "") -> Task:
    """Moves a task in progress to its next state."""
    if state.header.exclusive_task == task_id:
        state.header.exclusive_task = ""
    finished = state.tasks.by_id[task_id].moved(status, reason)
    state.replace_task(finished)
    return finished


def _decrement_dependants(state: Workflow, task_id: str) -> None:
    for dependant in state.tasks.dependants_of(task_id):
        state.replace_task(replace(dependant, open_dependencies=dependant.open_dependencies - 1))


def _update_consecutive_limit(state: Workflow) -> None:
    """Sets the consecutive limit by the task that is next now."""
    upcoming = state.tasks.first_ready()
    state.header.max_consecutive_tasks = consecutive_limit(
        upcoming.spec if upcoming else None, state.header.usage_percent
    )


def _update_current_task(state: Workflow, left: Iterable[str]) -> None:
    """Makes the next ready task the current one, if there is no current task or it was left."""
    if state.header.current_task in ("", *left):
        upcoming = state.tasks.first_ready()
        state.header.current_task = upcoming.task_id if upcoming else ""


def _retry(state: Workflow, data: events.TaskRetried) -> None:
    task = state.tasks.by_id[data.task_id]
    state.replace_task(replace(task.moved(TaskStatus.PENDING, task.reason), retry_count=task.retry_count + 1))
    state.header.current_task = data.task_id


def _skip(state: Workflow, data: events.TaskSkipped) -> None:
    task = state.tasks.by_id[data.task_id]
    state.replace_task(task.moved(TaskStatus.SKIPPED, data.reason))
    _decrement_dependants(state, data.task_id)
    _update_current_task(state, (data.task_id,))
    if task.spec.quality_gate:
        _add_risk(state, data.task_id, f"quality gate '{data.task_id}' was skipped: {data.reason}")


def _add_risk(state: Workflow, subject_id: str, description: str) -> None:
    risk = Risk("high", subject_id, description, state.header.updated_at)
    state.change_details(replace(state.details, risks=(*state.details.risks, risk)))


def _pause(state: Workflow, data: events.Paused) -> None:
    state.header.pause = Pause(data.cause, data.message, state.header.updated_at, data.constraint_ids)


def _resume(state: Workflow, data: events.Resumed) -> None:
    _apply_settings(state.header, data.settings)
    state.header.consecutive_count = 0
    state.header.commit_approved = data.approves_commit


def _unblock(state: Workflow, data: events.Unblocked) -> None:
    header = state.header
    blocked = state.tasks.with_status(TaskStatus.BLOCKED)
    header.unblocked = tuple(dict.fromkeys((*header.unblocked, *data.dependencies)))
    for dependency in data.dependencies:
        header.blocking.pop(dependency, None)
    for task in blocked:
        if all(dependency in header.unblocked for dependency in task.spec.blocked_by):
            state.replace_task(task.moved(TaskStatus.PENDING))
    _update_current_task(state, ())


def _fail(state: Workflow, data: events.Failed) -> None:
    state.header.failure_reason = data.reason


def _cancel(state: Workflow, _data: events.Cancelled) -> None:
    header = state.header
    header.cancelled, header.cancelled_by = True, header.run_id
    header.owner_run_id = ""
    if header.status not in (WorkflowStatus.IDLE, WorkflowStatus.PLANNED):
        header.failure_reason = CANCELLED


def _merge(state: Workflow, data: events.ConstraintsMerged) -> None:
    state.header.constrained = True
    _set_constraints(state, data.constraints)


def _verify(state: Workflow, data: events.ConstraintsVerified) -> None:
    updated = state.details.constraints
    for result in data.results:
        updated = rules.record(updated, result)
    _set_constraints(state, updated)


def _waive(state: Workflow, data: events.ConstraintWaived) -> None:
    _set_constraints(state, rules.waive(state.details.constraints, data.constraint_id, data.reason))
    _add_risk(state, data.constraint_id, f"constraint '{data.constraint_id}' was waived by {data.by}: {data.reason}")


def _set_constraints(state: Workflow, constraints: rules.ConstraintSet) -> None:
    state.header.unmet = constraints.unmet
    state.change_details(replace(state.details, constraints=constraints))


def _record_usage(state: Workflow, data: events.UsageRecorded) -> None:
    record = UsageRecord(data.task_id, data.tokens, state.header.updated_at)
    state.header.estimated_tokens = data.estimated_tokens
    state.header.history = (*state.header.history, record)[-HISTORY_LIMIT:]


def _audit(state: Workflow, data: events.Audited) -> None:
    state.change_details(replace(state.details, audit=data.audit))


def _unchanged(state: Workflow, data: object) -> None:
    """Nothing but the status changes."""


_APPLY: Mapping[EventName, Callable[[Workflow, Any], None]] = {
    EventName.FIELDS_CHANGED: _change_fields,
    EventName.PLAN_STORED: _store_plan,
    EventName.EXECUTED: _execute,
    EventName.CLAIMED: _claim,
    EventName.RELEASED: _release,
    EventName.OWNER_RELEASED: _release_owner,
    EventName.TASKS_SETTLED: _settle,
    EventName.TASK_RETRIED: _retry,
    EventName.TASK_SKIPPED: _skip,
    EventName.PAUSED: _pause,
    EventName.RESUMED: _resume,
    EventName.REOPENED: _unchanged,
    EventName.UNBLOCKED: _unblock,
    EventName.BLOCKED: _unchanged,
    EventName.FAILED: _fail,
    EventName.COMPLETED: _unchanged,
    EventName.CANCELLED: _cancel,
    EventName.CONSTRAINTS_MERGED: _merge,
    EventName.CONSTRAINTS_VERIFIED: _verify,
    EventName.CONSTRAINT_WAIVED: _waive,
    EventName.USAGE_RECORDED: _record_usage,
    EventName.AUDITED: _audit,
}
