"""The transition tables of workflows and tasks, and in which states each command is accepted; docs print them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.chassis.core.errors import Refusal, state_forbids
from pointsman.services.workflow.domain.enums import KIND, TASK_KIND, TaskStatus, WorkflowStatus


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed transition of a workflow, and what causes it."""

    source: WorkflowStatus
    target: WorkflowStatus
    meaning: str


@dataclass(frozen=True, slots=True)
class TaskTransition:
    """One allowed transition of a task, and the command that causes it."""

    source: TaskStatus
    target: TaskStatus
    meaning: str


_W = WorkflowStatus
_T = TaskStatus

TRANSITIONS: tuple[Transition, ...] = (
    Transition(_W.IDLE, _W.PLANNED, "a plan was stored"),
    Transition(_W.PLANNED, _W.RUNNING, "execute"),
    Transition(_W.PLANNED, _W.IDLE, "the plan was cancelled"),
    Transition(_W.RUNNING, _W.PAUSED, "a pause rule, unmet constraints, or somebody asked"),
    Transition(_W.RUNNING, _W.BLOCKED, "only blocked tasks are left"),
    Transition(_W.RUNNING, _W.FAILED, "a task failed, or the plan was cancelled"),
    Transition(_W.RUNNING, _W.COMPLETED, "every task is completed or skipped"),
    Transition(_W.PAUSED, _W.RUNNING, "resume"),
    Transition(_W.BLOCKED, _W.RUNNING, "unblock"),
    Transition(_W.FAILED, _W.RUNNING, "retry"),
    Transition(_W.FAILED, _W.RUNNING, "skip to the next task"),
)

TASK_TRANSITIONS: tuple[TaskTransition, ...] = (
    TaskTransition(_T.PENDING, _T.IN_PROGRESS, "next tasks"),
    TaskTransition(_T.PENDING, _T.SKIPPED, "skip"),
    TaskTransition(_T.BLOCKED, _T.PENDING, "unblock"),
    TaskTransition(_T.BLOCKED, _T.SKIPPED, "skip"),
    TaskTransition(_T.IN_PROGRESS, _T.PENDING, "release, or rejected with retry"),
    TaskTransition(_T.IN_PROGRESS, _T.COMPLETED, "complete, or settled as completed"),
    TaskTransition(_T.IN_PROGRESS, _T.FAILED, "fail, or rejected without retry"),
    TaskTransition(_T.FAILED, _T.PENDING, "retry"),
    TaskTransition(_T.FAILED, _T.SKIPPED, "skip"),
)

COMMANDS_ALLOWED: Mapping[str, frozenset[WorkflowStatus]] = {
    "UpsertPlan": frozenset(_W) - {_W.COMPLETED},
    "Execute": frozenset({_W.PLANNED}),
    "NextTasks": frozenset(_W) - {_W.IDLE, _W.PLANNED},
    "ReleaseTask": frozenset({_W.RUNNING, _W.PAUSED, _W.FAILED}),
    "ReleaseOwner": frozenset(_W) - {_W.COMPLETED},
    "CompleteTask": frozenset({_W.RUNNING, _W.PAUSED, _W.FAILED}),
    "FailTask": frozenset({_W.RUNNING, _W.PAUSED, _W.FAILED}),
    "SettleTasks": frozenset({_W.RUNNING, _W.PAUSED, _W.FAILED}),
    "RetryTask": frozenset({_W.RUNNING, _W.PAUSED, _W.FAILED}),
    "SkipTask": frozenset(_W) - {_W.IDLE, _W.COMPLETED},
    "Pause": frozenset({_W.RUNNING}),
    "Resume": frozenset({_W.PAUSED}),
    "Unblock": frozenset(_W),
    "CancelPlan": frozenset(_W) - {_W.COMPLETED},
    "MergeConstraints": frozenset(_W) - {_W.COMPLETED},
    "RecordVerification": frozenset(_W) - {_W.COMPLETED},
    "WaiveConstraint": frozenset(_W) - {_W.COMPLETED},
    "RecordUsage": frozenset(_W),
    "Audit": frozenset(_W),
}
"""The states in which each command is accepted; a refusal names the state and the commands that it accepts."""

LEADS_TO: Mapping[str, WorkflowStatus] = {
    "UpsertPlan": _W.PLANNED,
    "Execute": _W.RUNNING,
    "Pause": _W.PAUSED,
    "Resume": _W.RUNNING,
    "CancelPlan": _W.FAILED,
}
"""The target states of commands that change the state, for the text of a refusal."""

_PAIRS = frozenset((row.source, row.target) for row in TRANSITIONS)
_TASK_PAIRS = frozenset((row.source, row.target) for row in TASK_TRANSITIONS)


def allows(source: WorkflowStatus, target: WorkflowStatus) -> bool:
    """Whether a workflow may go from source to target."""
    return (source, target) in _PAIRS


def task_allows(source: TaskStatus, target: TaskStatus) -> bool:
    """Whether a task may go from source to target."""
    return (source, target) in _TASK_PAIRS


def successors(source: WorkflowStatus) -> tuple[str, ...]:
    """The states that a workflow in this state may go to."""
    return tuple(dict.fromkeys(row.target.value for row in TRANSITIONS if row.source is source))


def task_successors(source: TaskStatus) -> tuple[str, ...]:
    """The states that a task in this state may go to."""
    return tuple(row.target.value for row in TASK_TRANSITIONS if row.source is source)


def commands_allowed_in(status: WorkflowStatus) -> tuple[str, ...]:
    """The commands that a workflow in this state accepts."""
    return tuple(name for name, states in COMMANDS_ALLOWED.items() if status in states)


def check_command(name: str, workflow_id: str, status: WorkflowStatus) -> None:
    """Refuses a command that the state does not accept."""
    if status not in COMMANDS_ALLOWED[name]:
        ways = ", ".join(f"{row.target} ({row.meaning})" for row in TRANSITIONS if row.source is status)
        target = f", which is to become {LEADS_TO[name]}" if name in LEADS_TO else ""
        message = (
            f"{name} is not taken by a workflow that is {status}{target}; from {status} it can go to: {ways or 'none'}"
        )
        raise state_forbids(KIND, workflow_id, status, commands_allowed_in(status), message)


def check_transition(workflow_id: str, source: WorkflowStatus, target: WorkflowStatus) -> None:
    """Refuses a transition that is not in the table."""
    if not allows(source, target):
        message = f"a workflow cannot go from {source} to {target}"
        raise state_forbids(KIND, workflow_id, source, successors(source), message)


def task_forbids(task_id: str, status: TaskStatus, target: TaskStatus) -> Refusal:
    """The refusal of a task's transition that is not in the table."""
    message = f"task '{task_id}' cannot go from {status} to {target}"
    return state_forbids(TASK_KIND, task_id, status, task_successors(status), message)
