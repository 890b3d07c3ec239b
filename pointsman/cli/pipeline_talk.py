"""What the pipeline commands share: asking the control plane, and saying what it answered."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import grpc
import typer

from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.cli import EXIT_FAILED
from pointsman.cli.messages import as_dict
from pointsman.cli.plane import control_plane
from pointsman.services.chassis.errors import refusal_from
from pointsman.services.chassis.refusals import Refusal

Answer = TypeVar("Answer")
Stub = pipeline_pb2_grpc.PipelineServiceStub
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
IsJson = Annotated[bool, typer.Option("--json", help="As it is anyway.")]
Server = Annotated[str, typer.Option(help="Address of the control plane; default: the one that runs, or an own one.")]
PipelineId = Annotated[str, typer.Argument(help="The pipeline's id.")]
StageId = Annotated[str, typer.Argument(help="The stage's id, such as DEV.")]
Reason = Annotated[str, typer.Option(help="Why, for the journal.")]
Agent = Annotated[str, typer.Option(help="The agent's id.")]
File = Annotated[str, typer.Argument(help="A file; - is standard input.")]


def ask(server: str, question: Callable[[Stub], Awaitable[Answer]]) -> Answer:
    """Ask the control plane one thing; what it refuses ends the command with its reason."""

    async def run() -> Answer:
        async with control_plane(server) as plane:
            try:
                return await question(Stub(plane.channels["pipeline"]))
            except grpc.aio.AioRpcError as error:
                raise refusal_from(error) from None

    try:
        return asyncio.run(run())
    except Refusal as refusal:
        print(f"pointsman: {refusal.message}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED) from None


def say(message: Any, as_json: bool, line: str) -> None:
    """Print the answer: for programs, or for people."""
    print(json.dumps(as_dict(message, whole=True), ensure_ascii=False, indent=2) if as_json else line)


def state_name(number: Any) -> str:
    """A pipeline's state."""
    return sp.PipelineState.Name(number).removeprefix("PIPELINE_STATE_")


def within(option: str, value: float, least: float, most: float) -> float:
    """A number in its range; anything else, also what is no number, is a wrong use."""
    if not least <= value <= most:
        raise typer.BadParameter(f"{option} must be a number from {least:g} to {most:g}")
    return value
