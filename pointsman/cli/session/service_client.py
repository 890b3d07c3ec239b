"""What the commands of single services share: calling a service, and printing its answer."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import grpc
import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.status import refusal_from

Answer = TypeVar("Answer")
AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON.")]
IsJson = Annotated[bool, typer.Option("--json", help="As it is anyway.")]
Server = Annotated[
    str, typer.Option(help="Address of the control plane; default: the one that runs on the data directory.")
]
Reason = Annotated[str, typer.Option(help="Why, for the journal.")]
File = Annotated[str, typer.Argument(help="A file; - is standard input.")]


def ask_service(
    server: str,
    service: str,
    question: Callable[[grpc.aio.Channel], Awaitable[Answer]],
    absent: Absent = Absent.PRIVATE,
) -> Answer:
    """Calls a service; a refusal ends the command with its reason."""

    async def run() -> Answer:
        async with control_plane(server, absent=absent) as plane:
            try:
                return await question(plane.channels[service])
            except grpc.aio.AioRpcError as error:
                raise refusal_from(error) from None

    try:
        return asyncio.run(run())
    except Refusal as refusal:
        print(f"pointsman: {refusal.message}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED) from None


def say(message: Any, as_json: bool, line: str) -> None:
    """Prints the answer as JSON or as a line."""
    print(json.dumps(as_dict(message, whole=True), ensure_ascii=False, indent=2) if as_json else line)
