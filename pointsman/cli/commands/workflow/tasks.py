"""Commands about single tasks: take, complete, fail, retry, skip, release, usage."""

from typing import Annotated

import typer

from pointsman.api.workflow.v1 import model_pb2, tasks_pb2
from pointsman.cli.commands.workflow.fields import pair
from pointsman.cli.exit_codes import EXIT_WAITS_FOR_PERSON
from pointsman.cli.session.workflow_client import AsJson, Server, TaskId, WorkflowId, ask, progress_line, say
from pointsman.services.chassis.core.ids import new_nonce

Why = Annotated[str, typer.Option("--reason", help="Why; needed.")]
_WAITING = (
    model_pb2.WORKFLOW_STATUS_PAUSED,
    model_pb2.WORKFLOW_STATUS_BLOCKED,
    model_pb2.WORKFLOW_STATUS_FAILED,
)


def take(
    workflow_id: WorkflowId,
    limit: Annotated[int, typer.Option(help="How many at the most.", min=1, max=64)] = 1,
    worker: Annotated[str, typer.Option(help="Who takes them.")] = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Claim the next ready tasks; exit 4 when none comes because the workflow waits for a person."""
    request = tasks_pb2.NextTasksRequest(request_id=new_nonce(), workflow_id=workflow_id, limit=limit, worker=worker)
    answer = ask(server, lambda stub: stub.NextTasks(request))
    lines = [f"{task.spec.task_id}  {task.spec.name}" for task in answer.tasks]
    say(answer, as_json, "\n".join(lines) or progress_line(answer.progress))
    if not answer.tasks and answer.progress.status in _WAITING:
        raise typer.Exit(EXIT_WAITS_FOR_PERSON)


def complete(
    workflow_id: WorkflowId,
    task_id: TaskId,
    characters: Annotated[int, typer.Option(help="Characters of context it used.", min=0)] = 0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Record that a task in progress is done."""
    request = tasks_pb2.CompleteTaskRequest(
        request_id=new_nonce(), workflow_id=workflow_id, task_id=task_id, used_characters=characters
    )
    answer = ask(server, lambda stub: stub.CompleteTask(request))
    say(answer, as_json, progress_line(answer.progress))


def fail(workflow_id: WorkflowId, task_id: TaskId, reason: Why, server: Server = "", as_json: AsJson = False) -> None:
    """Record that a task in progress failed."""
    request = tasks_pb2.FailTaskRequest(request_id=new_nonce(), workflow_id=workflow_id, task_id=task_id, reason=reason)
    answer = ask(server, lambda stub: stub.FailTask(request))
    say(answer, as_json, progress_line(answer.progress))


def retry(workflow_id: WorkflowId, task_id: TaskId, server: Server = "", as_json: AsJson = False) -> None:
    """Let a failed task wait for its turn again; at most three times."""
    request = tasks_pb2.RetryTaskRequest(request_id=new_nonce(), workflow_id=workflow_id, task_id=task_id)
    answer = ask(server, lambda stub: stub.RetryTask(request))
    say(answer, as_json, f"retry {answer.retry_count} of 3\n{progress_line(answer.progress)}")


def skip(workflow_id: WorkflowId, task_id: TaskId, reason: Why, server: Server = "", as_json: AsJson = False) -> None:
    """Leave a task out and free what depends on it."""
    request = tasks_pb2.SkipTaskRequest(request_id=new_nonce(), workflow_id=workflow_id, task_id=task_id, reason=reason)
    answer = ask(server, lambda stub: stub.SkipTask(request))
    say(answer, as_json, progress_line(answer.progress))


def release(
    workflow_id: WorkflowId,
    task_ids: Annotated[list[str] | None, typer.Argument(help="Tasks in progress; none: all of them.")] = None,
    owner: Annotated[
        bool, typer.Option("--owner", help="Let the whole workflow go, so that a run can take it up.")
    ] = False,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Give tasks in progress back."""
    request = tasks_pb2.ReleaseTaskRequest(
        request_id=new_nonce(), workflow_id=workflow_id, task_ids=task_ids or [], all=not task_ids, release_owner=owner
    )
    answer = ask(server, lambda stub: stub.ReleaseTask(request))
    say(answer, as_json, f"{answer.released} tasks released\n{progress_line(answer.progress)}")


def settle(  # noqa: PLR0913, PLR0917 - the options of the command
    workflow_id: WorkflowId,
    done: Annotated[list[str] | None, typer.Option(help="A task whose result was accepted; may be repeated.")] = None,
    reject: Annotated[list[str] | None, typer.Option(help="A task that failed, as TASK=reason.")] = None,
    again: Annotated[list[str] | None, typer.Option(help="A task to be retried, as TASK=reason.")] = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Record the results of a whole wave at once: all of it or nothing."""
    request = tasks_pb2.SettleTasksRequest(request_id=new_nonce(), workflow_id=workflow_id, completed=done or [])
    for option, named, retry_it in (("--reject", reject, False), ("--again", again, True)):
        for task_id, reason in (pair(one, option) for one in named or []):
            request.rejected.add(task_id=task_id, reason=reason, retry=retry_it)
    answer = ask(server, lambda stub: stub.SettleTasks(request))
    say(answer, as_json, progress_line(answer.progress))


def usage(
    workflow_id: WorkflowId,
    characters: Annotated[int, typer.Argument(help="Characters added to the context.", min=0)],
    task: Annotated[str, typer.Option(help="The task that used them.")] = "",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Record context usage."""
    request = tasks_pb2.RecordUsageRequest(
        request_id=new_nonce(), workflow_id=workflow_id, task_id=task, characters=characters
    )
    answer = ask(server, lambda stub: stub.RecordUsage(request))
    say(answer, as_json, f"context usage {answer.usage_percent:.1f} %\n{progress_line(answer.progress)}")
