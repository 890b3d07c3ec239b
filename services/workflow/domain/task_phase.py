"""Decisions about tasks: hand out, release, complete, fail, settle, retry, skip, record usage."""

from collections.abc import Sequence

from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field, not_found, state_forbids
from pointsman.services.workflow.domain import commands, events
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.enums import (
    RETRY_LIMIT,
    TASK_KIND,
    EventName,
    PauseCause,
    TaskStatus,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.model import READY, Workflow
from pointsman.services.workflow.domain.pause_rules import (
    RequiredPause,
    choose_tasks,
    over_danger,
    pause_after,
    pause_before_commit,
    tokens_of,
)
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.domain.transitions import task_successors
from pointsman.services.workflow.domain.views import Progress


def next_tasks(builder: DecisionBuilder, command: commands.NextTasks) -> commands.HandedOut:
    """Hands out ready tasks, or none with the reason in the progress."""
    builder.check_command("NextTasks")
    chosen: tuple[Task, ...] = ()
    builder.conclude()
    if builder.header.status is WorkflowStatus.RUNNING:
        builder.pause(pause_before_commit(builder.state))
    if builder.header.status is WorkflowStatus.RUNNING:
        chosen = choose_tasks(builder.state, command.limit)
    if chosen:
        task_ids = tuple(task.task_id for task in chosen)
        builder.emit(EventName.CLAIMED, events.Claimed(task_ids, command.worker))
        chosen = tuple(builder.state.tasks.by_id[task_id] for task_id in task_ids)
    return commands.HandedOut(chosen, builder.progress)


def release_task(builder: DecisionBuilder, command: commands.ReleaseTask) -> commands.Counted:
    """Releases tasks; releasing the owner releases all, and pauses the workflow so that another run can continue it."""
    builder.check_command("ReleaseOwner" if command.release_owner else "ReleaseTask")
    task_ids = _tasks_to_release(builder.state, command)
    if task_ids:
        builder.emit(EventName.RELEASED, events.Released(task_ids))
    if command.release_owner:
        _release_owner(builder)
    return commands.Counted(builder.progress, len(task_ids))


def _release_owner(builder: DecisionBuilder) -> None:
    owner = builder.header.owner_run_id
    if owner:
        builder.emit(EventName.OWNER_RELEASED, events.OwnerReleased(owner))
    if builder.header.status is WorkflowStatus.RUNNING:
        builder.pause(RequiredPause(PauseCause.OWNER_RELEASED, f"run '{owner}' let the workflow go"))


def _tasks_to_release(state: Workflow, command: commands.ReleaseTask) -> tuple[str, ...]:
    every = command.every or command.release_owner
    if every == bool(command.task_ids):
        raise invalid_field("task_ids", "name the tasks, or say all or release_owner, not both")
    if every:
        return tuple(task.task_id for task in state.tasks.with_status(TaskStatus.IN_PROGRESS))
    for task in _find_all(state, command.task_ids, "task_ids"):
        _require_status(task, TaskStatus.IN_PROGRESS)
    return command.task_ids


def complete_task(builder: DecisionBuilder, command: commands.CompleteTask) -> Progress:
    """Completes a task, then pauses or ends the workflow if a rule requires it."""
    builder.check_command("CompleteTask")
    task = _require_status(_find(builder.state, command.task_id), TaskStatus.IN_PROGRESS)
    _check_attempt(task, command.attempt)
    if command.used_characters:
        _record_tokens(builder, command.task_id, tokens_of(command.used_characters))
    builder.emit(EventName.TASKS_SETTLED, events.TasksSettled(completed=(command.task_id,)))
    _end_or_pause(builder, (task.spec,))
    return builder.progress


def fail_task(builder: DecisionBuilder, command: commands.FailTask) -> Progress:
    """Fails a task, and the workflow with it."""
    builder.check_command("FailTask")
    task = _require_status(_find(builder.state, command.task_id), TaskStatus.IN_PROGRESS)
    _check_attempt(task, command.attempt)
    result = events.TaskResult(command.task_id, command.reason)
    builder.emit(EventName.TASKS_SETTLED, events.TasksSettled(failed=(result,)))
    builder.fail(f"task '{command.task_id}' failed: {command.reason}")
    return builder.progress


def settle_tasks(builder: DecisionBuilder, command: commands.SettleTasks) -> Progress:
    """Records the results of a whole wave: all or nothing."""
    builder.check_command("SettleTasks")
    state = builder.state
    named = (*command.completed, *(rejected.task_id for rejected in command.rejected))
    if not named:
        raise invalid_field("completed", "name at least one task")
    tasks = [_require_status(task, TaskStatus.IN_PROGRESS) for task in _find_all(state, named, "completed")]
    for rejected in command.rejected:
        if rejected.retry:
            _check_retries(state.tasks.by_id[rejected.task_id])
    settled = events.TasksSettled(command.completed, _results(command, retry=False), _results(command, retry=True))
    builder.emit(EventName.TASKS_SETTLED, settled)
    if settled.failed:
        builder.fail(f"task '{settled.failed[0].task_id}' failed: {settled.failed[0].reason}")
    _end_or_pause(builder, [task.spec for task in tasks[: len(command.completed)]])
    return builder.progress


def _results(command: commands.SettleTasks, *, retry: bool) -> tuple[events.TaskResult, ...]:
    return tuple(events.TaskResult(one.task_id, one.reason) for one in command.rejected if one.retry is retry)


def _end_or_pause(builder: DecisionBuilder, finished: Sequence[TaskSpec]) -> None:
    """Ends the workflow if nothing is left to do, else pauses it if a rule requires it."""
    builder.conclude()
    if builder.header.status is WorkflowStatus.RUNNING and finished:
        builder.pause(pause_after(builder.state, finished))


def retry_task(builder: DecisionBuilder, command: commands.RetryTask) -> commands.Counted:
    """Returns a failed task to pending; a failed workflow runs again."""
    builder.check_command("RetryTask")
    task = _require_status(_find(builder.state, command.task_id), TaskStatus.FAILED)
    _check_retries(task)
    runs_again = builder.header.status is WorkflowStatus.FAILED
    retried = events.TaskRetried(command.task_id)
    builder.emit(EventName.TASK_RETRIED, retried, WorkflowStatus.RUNNING if runs_again else None)
    return commands.Counted(builder.progress, task.retry_count + 1)


def skip_task(builder: DecisionBuilder, command: commands.SkipTask) -> Progress:
    """Skips a task; its dependants may become ready."""
    builder.check_command("SkipTask")
    task = _find(builder.state, command.task_id)
    task.moved(TaskStatus.SKIPPED)  # refuses a task that cannot be skipped
    skipped = events.TaskSkipped(command.task_id, command.reason)
    runs_again = _runs_again(builder, task, skipped)
    builder.emit(EventName.TASK_SKIPPED, skipped, WorkflowStatus.RUNNING if runs_again else None)
    builder.conclude()
    return builder.progress


def _runs_again(builder: DecisionBuilder, task: Task, skipped: events.TaskSkipped) -> bool:
    """Whether skipping continues the workflow: a failed one after its failed task, a blocked one without the block."""
    if builder.header.status is WorkflowStatus.FAILED:
        return task.status is TaskStatus.FAILED
    if builder.header.status is not WorkflowStatus.BLOCKED:
        return False
    counts = builder.preview(EventName.TASK_SKIPPED, skipped).header.counts
    return counts[READY] > 0 or counts[TaskStatus.BLOCKED] == 0


def record_usage(builder: DecisionBuilder, command: commands.RecordUsage) -> commands.UsageAnswer:
    """Records usage; over the danger threshold a running workflow pauses."""
    header = builder.header
    builder.check_command("RecordUsage")
    if command.characters is None:
        tokens = command.context_tokens - header.estimated_tokens
    else:
        tokens = tokens_of(command.characters)
    _record_tokens(builder, command.task_id, tokens)
    if builder.header.status is WorkflowStatus.RUNNING:
        builder.pause(over_danger(builder.header))
    return commands.UsageAnswer(builder.progress, builder.header.usage_percent)


def _record_tokens(builder: DecisionBuilder, task_id: str, tokens: int) -> None:
    recorded = events.UsageRecorded(task_id, tokens, builder.header.estimated_tokens + tokens)
    builder.emit(EventName.USAGE_RECORDED, recorded)


def _find(state: Workflow, task_id: str) -> Task:
    task = state.tasks.by_id.get(task_id)
    if task is None:
        raise not_found(TASK_KIND, task_id)
    return task


def _find_all(state: Workflow, task_ids: Sequence[str], field: str) -> list[Task]:
    if len(set(task_ids)) < len(task_ids):
        raise invalid_field(field, "names a task twice")
    return [_find(state, task_id) for task_id in task_ids]


def _require_status(task: Task, status: TaskStatus) -> Task:
    """Refuses a task that is in another state."""
    if task.status is not status:
        message = f"task '{task.task_id}' is {task.status}, not {status}"
        raise state_forbids(TASK_KIND, task.task_id, task.status, task_successors(task.status), message)
    return task


def _check_attempt(task: Task, attempt: int) -> None:
    if attempt and attempt != task.attempt:
        raise Refusal(
            Reason.LOST_RACE,
            f"task '{task.task_id}' was handed out again since attempt {attempt}",
            metadata={"kind": TASK_KIND, "id": task.task_id},
        )


def _check_retries(task: Task) -> None:
    if task.retry_count >= RETRY_LIMIT:
        raise Refusal(
            Reason.RETRIES_EXHAUSTED,
            f"task '{task.task_id}' was retried {task.retry_count} times; skip it or re-plan",
            metadata={"id": task.task_id, "task_id": task.task_id, "limit": str(RETRY_LIMIT)},
        )
