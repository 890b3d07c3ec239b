"""The rules by which a running workflow pauses, and by which tasks are handed out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from pointsman._shared.globs import overlap
from pointsman.services.workflow.domain.enums import ExecutionMode, PauseCause, TaskStatus
from pointsman.services.workflow.domain.model import Header, Workflow
from pointsman.services.workflow.domain.tasks import Task, TaskSpec

HEAVY_LIMIT = 3
MANY_ACTIONS_LIMIT = 5
LIGHT_LIMIT = 8
MANY_ACTIONS = 2
SCANNED = 4
"""How many times as many ready tasks are looked at as are wanted: some may touch the same files."""


@dataclass(frozen=True, slots=True)
class RequiredPause:
    """A pause that a rule requires."""

    cause: PauseCause
    message: str


def tokens_of(characters: int) -> int:
    """Estimated tokens of a text: a quarter of its characters, rounded up."""
    return -(-characters // 4)


def consecutive_limit(upcoming: TaskSpec | None, usage_percent: float) -> int:
    """How many tasks may run in a row before the upcoming one: fewer for a larger task and a fuller context."""
    base = _limit_before(upcoming) if upcoming else LIGHT_LIMIT
    if usage_percent > 70:
        return max(2, base - 3)
    if usage_percent > 50:
        return max(3, base - 1)
    return base


def _limit_before(upcoming: TaskSpec) -> int:
    if upcoming.quality_gate or upcoming.design_ref or len(upcoming.files) > 1:
        return HEAVY_LIMIT
    return MANY_ACTIONS_LIMIT if len(upcoming.actions) > MANY_ACTIONS else LIGHT_LIMIT


def pause_after(state: Workflow, finished: Sequence[TaskSpec]) -> RequiredPause | None:
    """The pause that finished tasks require: by the execution mode first, then by the limits."""
    return _pause_by_mode(state, finished) or _pause_by_limit(state.header)


def pause_before_commit(state: Workflow) -> RequiredPause | None:
    """The pause before a commit that is next and not approved yet."""
    header = state.header
    upcoming = state.tasks.first_ready()
    if header.execution_mode is not ExecutionMode.QUALITY_GATE or not header.pause_before_commit:
        return None
    if upcoming is None or not upcoming.spec.commits or header.commit_approved or _busy(header):
        return None
    return RequiredPause(PauseCause.BEFORE_COMMIT, f"task '{upcoming.task_id}' makes a git commit")


def over_danger(header: Header) -> RequiredPause | None:
    """The pause for a full context; subagents have their own context and only get a warning."""
    if header.subagents or header.usage_percent <= header.danger_threshold:
        return None
    message = f"context usage {header.usage_percent:.0f} % is over the danger threshold {header.danger_threshold} %"
    return RequiredPause(PauseCause.CONTEXT_USAGE, message)


def choose_tasks(state: Workflow, limit: int) -> tuple[Task, ...]:
    """The ready tasks to hand out: one in step mode, of one phase in phase mode, a quality gate or commit alone.

    A task waits while another that is in progress could change a file of its own; those behind it may go first.
    """
    header = state.header
    if header.exclusive_task or (header.execution_mode is ExecutionMode.STEP and _busy(header)):
        return ()
    most = 1 if header.execution_mode is ExecutionMode.STEP else limit
    chosen: list[Task] = []
    in_progress = state.tasks.with_status(TaskStatus.IN_PROGRESS)
    for task in islice(state.tasks.ready(), SCANNED * limit):
        if len(chosen) == most or not _fits(header, chosen, task):
            break
        if not any(_collide(other, task) for other in (*in_progress, *chosen)):
            chosen.append(task)
    return tuple(chosen)


def _collide(one: Task, other: Task) -> bool:
    """Whether two tasks could change the same file, by what the plan says of them."""
    return any(overlap(mine, theirs) for mine in one.spec.files for theirs in other.spec.files)


def _fits(header: Header, chosen: list[Task], task: Task) -> bool:
    if task.spec.goes_alone:
        return not chosen and not _busy(header)
    if chosen and chosen[0].spec.goes_alone:
        return False
    if header.execution_mode is not ExecutionMode.PHASE:
        return True
    phase = chosen[0].spec.phase if chosen else header.flight_phase if _busy(header) else task.spec.phase
    return task.spec.phase == phase


def _pause_by_mode(state: Workflow, finished: Sequence[TaskSpec]) -> RequiredPause | None:
    mode = state.header.execution_mode
    if mode is ExecutionMode.STEP:
        return RequiredPause(PauseCause.STEP, f"task '{finished[-1].task_id}' is done")
    gate = next((spec for spec in finished if spec.quality_gate), None)
    if gate is not None:
        return RequiredPause(PauseCause.QUALITY_GATE, f"quality gate '{gate.task_id}' is done")
    if mode is ExecutionMode.PHASE:
        return _pause_by_phase(state, finished[-1].phase)
    return pause_before_commit(state)


def _pause_by_phase(state: Workflow, phase: str) -> RequiredPause | None:
    upcoming = state.tasks.first_ready()
    if upcoming is None or _busy(state.header) or upcoming.spec.phase == phase:
        return None
    return RequiredPause(PauseCause.PHASE_CHANGED, f"phase '{phase}' is done, '{upcoming.spec.phase}' is next")


def _pause_by_limit(header: Header) -> RequiredPause | None:
    if not header.subagents and header.consecutive_count >= header.max_consecutive_tasks:
        message = f"{header.consecutive_count} tasks in a row, the limit is {header.max_consecutive_tasks}"
        return RequiredPause(PauseCause.CONSECUTIVE_LIMIT, message)
    return over_danger(header)


def _busy(header: Header) -> bool:
    return header.counts[TaskStatus.IN_PROGRESS] > 0
