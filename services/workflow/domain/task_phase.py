"""Decisions about single tasks: hand out, give back, complete, fail, settle, retry, skip, usage."""

from collections.abc import Sequence

from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field, not_found, state_forbids
from pointsman.services.workflow.domain import commands as asked
from pointsman.services.workflow.domain import events as happened
from pointsman.services.workflow.domain.commands import progress_of
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.enums import (
    RETRY_LIMIT,
    TASK_KIND,
    PauseCause,
    TaskStatus,
    WorkflowStatus,
    check_command,
    task_successors,
)
from pointsman.services.workflow.domain.events import EventName
from pointsman.services.workflow.domain.model import READY, Workflow
from pointsman.services.workflow.domain.pauses import (
    Stop,
    choose,
    over_danger,
    stop_after,
    stop_before_commit,
    tokens_of,
)
from pointsman.services.workflow.domain.tasks import Task, TaskSpec


def next_tasks(draft: DecisionBuilder, command: asked.NextTasks) -> asked.HandedOut:
    """Hand out ready tasks, or none with the reason in the progress."""
    check_command("NextTasks", command.entity_id, draft.header.status)
    chosen: tuple[Task, ...] = ()
    draft.conclude()
    if draft.header.status is WorkflowStatus.RUNNING:
        draft.stop(stop_before_commit(draft.state))
    if draft.header.status is WorkflowStatus.RUNNING:
        chosen = choose(draft.state, command.limit)
    if chosen:
        task_ids = tuple(task.task_id for task in chosen)
        draft.emit(EventName.CLAIMED, happened.Claimed(task_ids, command.worker))
        chosen = tuple(draft.state.book.tasks[task_id] for task_id in task_ids)
    return asked.HandedOut(chosen, progress_of(draft.header))


def release_task(draft: DecisionBuilder, command: asked.ReleaseTask) -> asked.Counted:
    """Give tasks back; letting the workflow go gives back all, and pauses it so that another run can take it up."""
    check_command("ReleaseOwner" if command.release_owner else "ReleaseTask", command.entity_id, draft.header.status)
    task_ids = _tasks_to_release(draft.state, command)
    if task_ids:
        draft.emit(EventName.RELEASED, happened.Released(task_ids))
    if command.release_owner:
        _release_owner(draft)
    return asked.Counted(progress_of(draft.header), len(task_ids))


def _release_owner(draft: DecisionBuilder) -> None:
    owner = draft.header.owner_run_id
    if owner:
        draft.emit(EventName.OWNER_RELEASED, happened.OwnerReleased(owner))
    if draft.header.status is WorkflowStatus.RUNNING:
        draft.stop(Stop(PauseCause.OWNER_RELEASED, f"run '{owner}' let the workflow go"))


def _tasks_to_release(state: Workflow, command: asked.ReleaseTask) -> tuple[str, ...]:
    every = command.every or command.release_owner
    if every == bool(command.task_ids):
        raise invalid_field("task_ids", "name the tasks, or say all or release_owner, not both")
    if every:
        return tuple(task.task_id for task in state.book.with_status(TaskStatus.IN_PROGRESS))
    for task in _named(state, command.task_ids, "task_ids"):
        _expect(task, TaskStatus.IN_PROGRESS)
    return command.task_ids


def complete_task(draft: DecisionBuilder, command: asked.CompleteTask) -> asked.Progress:
    """Record that a task is done, and stop or end the workflow when a rule says so."""
    check_command("CompleteTask", command.entity_id, draft.header.status)
    task = _expect(_one(draft.state, command.task_id), TaskStatus.IN_PROGRESS)
    _check_attempt(task, command.attempt)
    if command.used_characters:
        _record_tokens(draft, command.task_id, tokens_of(command.used_characters))
    draft.emit(EventName.TASKS_SETTLED, happened.TasksSettled(completed=(command.task_id,)))
    _after(draft, (task.spec,))
    return progress_of(draft.header)


def fail_task(draft: DecisionBuilder, command: asked.FailTask) -> asked.Progress:
    """Record that a task failed; the workflow fails with it."""
    check_command("FailTask", command.entity_id, draft.header.status)
    task = _expect(_one(draft.state, command.task_id), TaskStatus.IN_PROGRESS)
    _check_attempt(task, command.attempt)
    result = happened.TaskResult(command.task_id, command.reason)
    draft.emit(EventName.TASKS_SETTLED, happened.TasksSettled(failed=(result,)))
    draft.fail(f"task '{command.task_id}' failed: {command.reason}")
    return progress_of(draft.header)


def settle_tasks(draft: DecisionBuilder, command: asked.SettleTasks) -> asked.Progress:
    """Record a whole wave: all of it or nothing."""
    check_command("SettleTasks", command.entity_id, draft.header.status)
    state = draft.state
    named = (*command.completed, *(rejected.task_id for rejected in command.rejected))
    if not named:
        raise invalid_field("completed", "name at least one task")
    tasks = [_expect(task, TaskStatus.IN_PROGRESS) for task in _named(state, named, "completed")]
    for rejected in command.rejected:
        if rejected.retry:
            _check_retries(state.book.tasks[rejected.task_id])
    settled = happened.TasksSettled(command.completed, _results(command, retry=False), _results(command, retry=True))
    draft.emit(EventName.TASKS_SETTLED, settled)
    if settled.failed:
        draft.fail(f"task '{settled.failed[0].task_id}' failed: {settled.failed[0].reason}")
    _after(draft, [task.spec for task in tasks[: len(command.completed)]])
    return progress_of(draft.header)


def _results(command: asked.SettleTasks, *, retry: bool) -> tuple[happened.TaskResult, ...]:
    return tuple(happened.TaskResult(one.task_id, one.reason) for one in command.rejected if one.retry is retry)


def _after(draft: DecisionBuilder, finished: Sequence[TaskSpec]) -> None:
    """End rules first: what is over needs no pause."""
    draft.conclude()
    if draft.header.status is WorkflowStatus.RUNNING and finished:
        draft.stop(stop_after(draft.state, finished))


def retry_task(draft: DecisionBuilder, command: asked.RetryTask) -> asked.Counted:
    """Let a failed task wait for its turn again; a failed workflow runs again with it."""
    check_command("RetryTask", command.entity_id, draft.header.status)
    task = _expect(_one(draft.state, command.task_id), TaskStatus.FAILED)
    _check_retries(task)
    runs_again = draft.header.status is WorkflowStatus.FAILED
    retried = happened.TaskRetried(command.task_id)
    draft.emit(EventName.TASK_RETRIED, retried, WorkflowStatus.RUNNING if runs_again else None)
    return asked.Counted(progress_of(draft.header), task.retry_count + 1)


def skip_task(draft: DecisionBuilder, command: asked.SkipTask) -> asked.Progress:
    """Leave a task out and free its dependants."""
    check_command("SkipTask", command.entity_id, draft.header.status)
    task = _one(draft.state, command.task_id)
    task.moved(TaskStatus.SKIPPED)
    skipped = happened.TaskSkipped(command.task_id, command.reason)
    runs_again = _runs_again(draft, task, skipped)
    draft.emit(EventName.TASK_SKIPPED, skipped, WorkflowStatus.RUNNING if runs_again else None)
    draft.conclude()
    return progress_of(draft.header)


def _runs_again(draft: DecisionBuilder, task: Task, skipped: happened.TaskSkipped) -> bool:
    """A failed workflow goes on after its failed task, a blocked one when a task got ready or none is blocked."""
    if draft.header.status is WorkflowStatus.FAILED:
        return task.status is TaskStatus.FAILED
    if draft.header.status is not WorkflowStatus.BLOCKED:
        return False
    counts = draft.would_be(EventName.TASK_SKIPPED, skipped).header.counts
    return counts[READY] > 0 or counts[TaskStatus.BLOCKED] == 0


def record_usage(draft: DecisionBuilder, command: asked.RecordUsage) -> asked.UsageAnswer:
    """Take usage in; over the danger threshold a running workflow pauses."""
    header = draft.header
    check_command("RecordUsage", command.entity_id, header.status)
    if command.characters is None:
        tokens = command.context_tokens - header.estimated_tokens
    else:
        tokens = tokens_of(command.characters)
    _record_tokens(draft, command.task_id, tokens)
    if draft.header.status is WorkflowStatus.RUNNING:
        draft.stop(over_danger(draft.header))
    return asked.UsageAnswer(progress_of(draft.header), draft.header.usage_percent)


def _record_tokens(draft: DecisionBuilder, task_id: str, tokens: int) -> None:
    recorded = happened.UsageRecorded(task_id, tokens, draft.header.estimated_tokens + tokens)
    draft.emit(EventName.USAGE_RECORDED, recorded)


def _one(state: Workflow, task_id: str) -> Task:
    task = state.book.tasks.get(task_id)
    if task is None:
        raise not_found(TASK_KIND, task_id)
    return task


def _named(state: Workflow, task_ids: Sequence[str], field: str) -> list[Task]:
    if len(set(task_ids)) < len(task_ids):
        raise invalid_field(field, "names a task twice")
    return [_one(state, task_id) for task_id in task_ids]


def _expect(task: Task, status: TaskStatus) -> Task:
    """The task, if it is in the state that the command is about."""
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
