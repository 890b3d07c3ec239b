"""Commands about whole workflows: look, execute, pause, resume, unblock, cancel, watch, audit."""

from typing import Annotated

import typer

from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.session.control_plane import Absent
from pointsman.cli.session.workflow_client import (
    AsJson,
    Phase,
    Reason,
    Server,
    Step,
    Stub,
    Subagent,
    Whole,
    WorkflowId,
    ask,
    progress_line,
    say,
    settings_of,
    status_name,
    task_status_name,
    whole_workflow,
)
from pointsman.services.chassis.core.ids import new_nonce


def show(workflow_id: WorkflowId, server: Server = "", as_json: AsJson = False) -> None:
    """Show a workflow with its tasks."""
    answer = ask(server, lambda stub: whole_workflow(stub, workflow_id))
    lines = [progress_line(answer.workflow.progress), *(_task_line(task) for task in answer.tasks)]
    lines += [f"  risk: {risk.description}" for risk in answer.workflow.risks]
    say(answer, as_json, "\n".join(lines))


def _task_line(task: model_pb2.Task) -> str:
    marks = [f"depends on {', '.join(task.spec.depends)}"] if task.open_dependencies else []
    marks += [f"waits for {', '.join(task.spec.blocked_by)}"] if task.status == model_pb2.TASK_STATUS_BLOCKED else []
    marks += [task.reason] if task.reason else []
    note = f"  ({'; '.join(marks)})" if marks else ""
    return f"  {task.spec.task_id:<8} {task_status_name(task.status):<12} {task.spec.name}{note}"


def listed(
    status: Annotated[list[str] | None, typer.Option(help="Only workflows in this state; may be repeated.")] = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """List workflows, the newest first."""
    request = reading_pb2.ListWorkflowsRequest(statuses=[_status(name) for name in status or []])
    answer = ask(server, lambda stub: stub.ListWorkflows(request))
    say(answer, as_json, "\n".join(_entry_line(one) for one in answer.workflows) or "no workflows")


def resumable(server: Server = "", as_json: AsJson = False) -> None:
    """List what a run could take up, with what each one waits for."""
    answer = ask(server, lambda stub: stub.ListResumable(reading_pb2.ListResumableRequest()))
    say(answer, as_json, "\n".join(_entry_line(one) for one in answer.workflows) or "nothing to resume")


def _status(name: str) -> model_pb2.WorkflowStatus.ValueType:
    known = {status_name(number): number for number in model_pb2.WorkflowStatus.values() if number}
    if name not in known:
        raise typer.BadParameter(f"status must be one of {', '.join(known)}")
    return known[name]


def _entry_line(entry: reading_pb2.WorkflowEntry) -> str:
    done = entry.counts.completed + entry.counts.skipped
    waits = f"waits for {entry.waits_for}" if entry.waits_for else ""
    return f"{entry.workflow_id:<30} {status_name(entry.status):<10} {done}/{entry.counts.total}  {entry.title or entry.intake_text[:60]}  {waits}".rstrip()


def execute(  # noqa: PLR0913, PLR0917 - the options of the command
    workflow_id: WorkflowId,
    step: Step = False,
    phase: Phase = False,
    whole: Whole = False,
    subagent: Subagent = None,
    accept: Annotated[list[str] | None, typer.Option(help="An audit finding to accept by name.")] = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Start a planned workflow."""
    settings = settings_of(step, phase, whole, subagent)
    request = plans_pb2.ExecuteRequest(
        request_id=new_nonce(), workflow_id=workflow_id, settings=settings, accepted_findings=accept or []
    )
    answer = ask(server, lambda stub: stub.Execute(request))
    say(answer, as_json, progress_line(answer.progress))


def pause(workflow_id: WorkflowId, reason: Reason = "", server: Server = "", as_json: AsJson = False) -> None:
    """Stop a running workflow; tasks in progress may still complete."""
    request = plans_pb2.PauseRequest(request_id=new_nonce(), workflow_id=workflow_id, reason=reason)
    answer = ask(server, lambda stub: stub.Pause(request))
    say(answer, as_json, progress_line(answer.progress))


def resume(  # noqa: PLR0913, PLR0917 - the options of the command
    workflow_id: WorkflowId,
    step: Step = False,
    phase: Phase = False,
    whole: Whole = False,
    subagent: Subagent = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Let a paused workflow run on."""
    settings = settings_of(step, phase, whole, subagent)
    request = plans_pb2.ResumeRequest(request_id=new_nonce(), workflow_id=workflow_id, settings=settings)
    answer = ask(server, lambda stub: stub.Resume(request))
    say(answer, as_json, progress_line(answer.progress))


def unblock(
    workflow_id: WorkflowId,
    dependency: Annotated[str, typer.Argument(help="What is there now: api_spec, design_spec, …, or all.")],
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Say that an outside dependency is there."""
    request = plans_pb2.UnblockRequest(request_id=new_nonce(), workflow_id=workflow_id, dependency=dependency)
    answer = ask(server, lambda stub: stub.Unblock(request))
    say(answer, as_json, f"{answer.freed} tasks freed\n{progress_line(answer.progress)}")


def cancel(workflow_id: WorkflowId, server: Server = "", as_json: AsJson = False) -> None:
    """End the plan; tasks stay as they are."""
    request = plans_pb2.CancelPlanRequest(request_id=new_nonce(), workflow_id=workflow_id)
    answer = ask(server, lambda stub: stub.CancelPlan(request))
    say(answer, as_json, progress_line(answer.progress))


def watch(
    workflow_id: WorkflowId,
    after: Annotated[int, typer.Option(help="Only transitions after this number.")] = 0,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print each transition as it happens, until the workflow is completed or Ctrl-C."""

    async def follow(stub: Stub) -> None:
        request = reading_pb2.WatchWorkflowRequest(workflow_id=workflow_id, after_seq=after)
        async for answer in stub.WatchWorkflow(request):
            row = answer.transition
            say(row, as_json, f"{row.seq:>5}  {row.event:<22} {row.from_state or '-':>9} → {row.to_state}")
            if row.to_state == "completed":
                return

    ask(server, follow, Absent.REFUSE)


def audit(workflow_id: WorkflowId, server: Server = "", as_json: AsJson = False) -> None:
    """Look for decisions that nobody made; exit 1 when there are errors."""
    request = constraints_pb2.AuditRequest(request_id=new_nonce(), workflow_id=workflow_id)
    answer = ask(server, lambda stub: stub.Audit(request))
    lines = [
        f"{'error  ' if one.error else 'warning'}  {one.finding_id}  {one.excerpt}".rstrip()
        for one in answer.audit.findings
    ]
    verdict = "passed" if answer.audit.passed else "not passed"
    lines.append(f"{verdict}: {answer.audit.error_count} errors, {answer.audit.warning_count} warnings")
    say(answer, as_json, "\n".join(lines))
    if not answer.audit.passed:
        raise typer.Exit(EXIT_FAILED)
