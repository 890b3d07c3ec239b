"""`pointsman workflow set`: a workflow's own fields; one that is not there yet is created."""

from typing import Annotated, Any

import typer

from pointsman.api.workflow.v1 import model_pb2, plans_pb2
from pointsman.cli.session.workflow_client import AsJson, Server, WorkflowId, ask, progress_line, say
from pointsman.services.chassis.core.ids import new_nonce

MODES = {"normal": model_pb2.WORKFLOW_MODE_NORMAL, "progressive": model_pb2.WORKFLOW_MODE_PROGRESSIVE}


def set_fields(  # noqa: PLR0913, PLR0917 - the options of the command
    workflow_id: WorkflowId,
    title: Annotated[str | None, typer.Option(help="What it is called.")] = None,
    intake: Annotated[str | None, typer.Option(help="What was asked for; decides which models work together.")] = None,
    priority: Annotated[int | None, typer.Option(help="0 is the most urgent.", min=0, max=1000)] = None,
    mode: Annotated[str, typer.Option(help="normal, or progressive: blockers are inferred where none are given.")] = "",
    session: Annotated[list[str] | None, typer.Option(help="A model's session to reuse, as model=id.")] = None,
    window_tokens: Annotated[int | None, typer.Option(help="The model's window in tokens.")] = None,
    warning: Annotated[int | None, typer.Option(help="Percent of the window that warns.", min=1, max=100)] = None,
    danger: Annotated[int | None, typer.Option(help="Percent of the window that pauses.", min=1, max=100)] = None,
    commit_pause: Annotated[
        bool | None, typer.Option("--commit-pause/--no-commit-pause", help="Whether to pause before commits.")
    ] = None,
    require_audit: Annotated[
        bool | None, typer.Option("--require-audit/--no-require-audit", help="Whether the audit must pass first.")
    ] = None,
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Set fields of a workflow; what is not named stays."""
    if mode and mode not in MODES:
        raise typer.BadParameter(f"mode must be one of {', '.join(MODES)}")
    given: dict[str, Any] = {
        "title": title,
        "intake_text": intake,
        "priority": priority,
        "window_tokens": window_tokens,
        "warning_threshold": warning,
        "danger_threshold": danger,
    }
    request = plans_pb2.UpsertPlanRequest(
        request_id=new_nonce(),
        workflow_id=workflow_id,
        mode=MODES.get(mode, model_pb2.WORKFLOW_MODE_UNSPECIFIED),
        settings=plans_pb2.ExecutionSettings(pause_before_commit=commit_pause, require_audit=require_audit),
        sessions=dict(pair(one, "--session") for one in session or []),
        **given,
    )
    answer = ask(server, lambda stub: stub.UpsertPlan(request))
    say(answer, as_json, progress_line(answer.progress))


def pair(text: str, option: str) -> tuple[str, str]:
    """Splits `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{option} takes name=value, not '{text}'")
    return name, value
