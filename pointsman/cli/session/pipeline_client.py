"""What the pipeline commands share: calling the service, and printing its answers."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.cli.session.control_plane import Absent
from pointsman.cli.session.service_client import Answer, AsJson, File, IsJson, Reason, Server, ask_service, say

__all__ = ["AsJson", "File", "IsJson", "Reason", "Server", "say"]
Stub = pipeline_pb2_grpc.PipelineServiceStub
PipelineId = Annotated[str, typer.Argument(help="The pipeline's id.")]
StageId = Annotated[str, typer.Argument(help="The stage's id, such as DEV.")]
Agent = Annotated[str, typer.Option(help="The agent's id.")]


def ask(server: str, question: Callable[[Stub], Awaitable[Answer]], absent: Absent = Absent.PRIVATE) -> Answer:
    """Calls the pipeline service."""
    return ask_service(server, "pipeline", lambda channel: question(Stub(channel)), absent)


def state_name(number: Any) -> str:
    """The name of a pipeline's state."""
    return sp.PipelineState.Name(number).removeprefix("PIPELINE_STATE_")


def within(option: str, value: float, least: float, most: float) -> float:
    """Checks that a number is in its range; anything else, NaN too, is a usage error."""
    if not least <= value <= most:
        raise typer.BadParameter(f"{option} must be a number from {least:g} to {most:g}")
    return value
