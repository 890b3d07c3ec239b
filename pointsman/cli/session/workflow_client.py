"""What the workflow commands share: calling the service, and printing its answers."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from pointsman.api.common.v1 import common_pb2
from pointsman.api.workflow.v1 import model_pb2, plans_pb2, reading_pb2, workflow_pb2_grpc
from pointsman.cli.session.control_plane import Absent
from pointsman.cli.session.service_client import Answer, AsJson, File, IsJson, Reason, Server, ask_service, say

__all__ = ["AsJson", "File", "IsJson", "Reason", "Server", "say"]
Stub = workflow_pb2_grpc.WorkflowServiceStub

WorkflowId = Annotated[str, typer.Argument(help="The workflow's id.")]
TaskId = Annotated[str, typer.Argument(help="The task's id, such as T3.")]
Step = Annotated[bool, typer.Option("--step", help="Pause after each task.")]
Phase = Annotated[bool, typer.Option("--phase", help="Pause when the phase changes, and after a quality gate.")]
Whole = Annotated[bool, typer.Option("--all", help="Pause only at quality gates and before commits.")]
Subagent = Annotated[bool | None, typer.Option("--subagent/--no-subagent", help="Whether tasks run in subagents.")]


def ask(server: str, question: Callable[[Stub], Awaitable[Answer]], absent: Absent = Absent.PRIVATE) -> Answer:
    """Calls the workflow service."""
    return ask_service(server, "workflow", lambda channel: question(Stub(channel)), absent)


async def whole_workflow(stub: Stub, workflow_id: str) -> reading_pb2.GetWorkflowResponse:
    """A workflow with all its tasks, page by page."""
    page = common_pb2.Page(page_size=1000)
    whole = await stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=workflow_id, page=page))
    while whole.next_page_token:
        page.page_token = whole.next_page_token
        more = await stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=workflow_id, page=page))
        whole.tasks.extend(more.tasks)
        whole.next_page_token = more.next_page_token
    return whole


def settings_of(step: bool, phase: bool, whole: bool, subagent: bool | None) -> plans_pb2.ExecutionSettings:
    """The execution settings that the options name; at most one mode."""
    modes = {
        model_pb2.EXECUTION_MODE_STEP: step,
        model_pb2.EXECUTION_MODE_PHASE: phase,
        model_pb2.EXECUTION_MODE_QUALITY_GATE: whole,
    }
    chosen = [mode for mode, wanted in modes.items() if wanted]
    if len(chosen) > 1:
        raise typer.BadParameter("--step, --phase and --all exclude each other")
    mode = chosen[0] if chosen else model_pb2.EXECUTION_MODE_UNSPECIFIED
    return plans_pb2.ExecutionSettings(execution_mode=mode, use_subagent=subagent)


def status_name(status: int) -> str:
    """A workflow's state in lower case."""
    return (
        model_pb2.WorkflowStatus.Name(model_pb2.WorkflowStatus.ValueType(status))
        .removeprefix("WORKFLOW_STATUS_")
        .lower()
    )


def task_status_name(status: int) -> str:
    """A task's state in lower case."""
    return model_pb2.TaskStatus.Name(model_pb2.TaskStatus.ValueType(status)).removeprefix("TASK_STATUS_").lower()


def progress_line(progress: model_pb2.Progress) -> str:
    """The progress of a workflow in one or a few lines."""
    counts = progress.counts
    done = f"{counts.completed + counts.skipped}/{counts.total} done"
    hands = f"{counts.in_progress} in progress, {counts.ready} ready"
    lines = [f"{progress.workflow_id}  {status_name(progress.status)}  {done}, {hands}"]
    if progress.HasField("pause"):
        cause = model_pb2.PauseCause.Name(progress.pause.cause).removeprefix("PAUSE_CAUSE_").lower()
        lines.append(f"  paused: {cause}  {progress.pause.message}".rstrip())
    if progress.failure_reason:
        lines.append(f"  failed: {progress.failure_reason}")
    if progress.blocking:
        lines.append(f"  blocked by: {', '.join(progress.blocking)}")
    return "\n".join([*lines, *(f"  warning: {warning}" for warning in progress.warnings)])
