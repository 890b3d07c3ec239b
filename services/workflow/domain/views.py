"""Workflows as callers see them: progress, what a workflow waits for, pages and lists."""

from dataclasses import dataclass

from pointsman.services.workflow.domain.enums import PauseCause, TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.model import Header, Pause, Workflow
from pointsman.services.workflow.domain.tasks import Task


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a workflow after a command."""

    workflow_id: str
    status: WorkflowStatus
    counts: dict[str, int]
    pause: Pause | None = None
    failure_reason: str = ""
    current_task: str = ""
    blocking: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredWorkflow:
    """A workflow with its seq and a page of its tasks."""

    state: Workflow
    seq: int
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Which tasks to read: after a position, of some statuses."""

    limit: int
    after_position: int = 0
    statuses: tuple[TaskStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkflowFilter:
    """Which workflows to list."""

    statuses: tuple[WorkflowStatus, ...] = ()
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class ListedWorkflow:
    """A workflow in a list, with its sort key."""

    header: Header
    key: tuple[int | str, ...]


def progress_of(header: Header) -> Progress:
    """The progress of a workflow."""
    return Progress(
        workflow_id=header.workflow_id,
        status=header.status,
        counts=dict(header.counts),
        pause=header.pause,
        failure_reason=header.failure_reason,
        current_task=header.current_task,
        blocking=tuple(sorted(header.blocking)),
        warnings=warnings(header),
    )


def waits_for(header: Header) -> str:
    """What a workflow that does not run waits for, as text."""
    match header.status:
        case WorkflowStatus.IDLE:
            return "a plan"
        case WorkflowStatus.PLANNED:
            return _with_prerequisites(header, "execute")
        case WorkflowStatus.PAUSED:
            return _with_prerequisites(header, f"resume ({header.pause.cause})" if header.pause else "resume")
        case WorkflowStatus.BLOCKED:
            return f"unblock {_blockers(header) or 'all'}"
        case WorkflowStatus.FAILED:
            failed = header.counts[TaskStatus.FAILED]
            return f"retry or skip {header.current_task}".rstrip() if failed and not header.cancelled else "a new plan"
    return ""


def _with_prerequisites(header: Header, step: str) -> str:
    """The step that continues the workflow, after the steps that it needs first."""
    if header.nothing_to_do and header.blocking:
        return f"unblock {_blockers(header)}, then {step}"
    if (
        header.nothing_to_do
        and header.pause is not None
        and header.pause.cause is PauseCause.CONSTRAINTS
        and header.unmet
    ):
        return f"verify or waive {', '.join(header.unmet)}"
    return step


def _blockers(header: Header) -> str:
    return ", ".join(sorted(header.blocking))


def warnings(header: Header) -> tuple[str, ...]:
    """Warnings for the caller; they stop nothing."""
    found = []
    if header.usage_percent > header.warning_threshold:
        over = "danger" if header.usage_percent > header.danger_threshold else "warning"
        limit = header.danger_threshold if over == "danger" else header.warning_threshold
        found.append(f"context usage {header.usage_percent:.0f} % is over the {over} threshold {limit} %")
    if header.subagents and header.consecutive_count >= header.max_consecutive_tasks:
        found.append(f"{header.consecutive_count} tasks in a row, the limit is {header.max_consecutive_tasks}")
    return tuple(found)
