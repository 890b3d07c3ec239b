"""What the commands about runs share: a client of the control plane, and how a refusal ends a command."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated

import typer
from google.protobuf.message import Message

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.usage import ProjectOption, fail_usage
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.session.control_plane import Plane, control_plane
from pointsman.client import CallFailed, Client, Terms

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, the beginning of it, or `last`.")]
SomeRunId = Annotated[
    str, typer.Argument(metavar="[RUN]", help="The run's id, its beginning, or `last`; none where options select runs.")
]
ServerAt = Annotated[str, typer.Option("--server", help="Address of the control plane.")]
InProject = ProjectOption
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON.")]


def ask(server: str, project: str, question: Callable[[Client], Awaitable[int]]) -> None:
    """Runs a function with a client of the control plane, and exits with the code that it returns."""
    ask_plane(server, project, lambda client, _: question(client))


def ask_plane(server: str, project: str, question: Callable[[Client, Plane], Awaitable[int]]) -> None:
    """The same for a function that also needs to know the control plane."""

    async def work() -> int:
        async with control_plane(server) as plane:
            return await question(plane.client(Terms(project=project)), plane)

    try:
        sys.exit(asyncio.run(work()))
    except CallFailed as failure:
        print(f"pointsman: {failure.message or failure}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


LAST = "last"
RUN_ID_LENGTH = 30
MAX_CANDIDATES = 5


async def find_run(client: Client, named: str) -> str:
    """The id of a run that is named by its id, by the beginning of it, or as the last one submitted."""
    if named == LAST:
        async for run in client.runs.all():
            return run.id
        fail_usage("there is no run yet; `pointsman run` starts one")
    if len(named) >= RUN_ID_LENGTH:
        return named
    prefix = named if named.startswith("run_") else f"run_{named}"
    found: list[str] = []
    async for run in client.runs.all(id_prefix=prefix):
        found.append(run.id)
        if len(found) > MAX_CANDIDATES:
            break
    if len(found) > 1:
        fail_usage(f"'{named}' is the beginning of several runs: {', '.join(found[:MAX_CANDIDATES])}")
    if not found:
        print(
            f"pointsman: no run begins with '{named}'; `pointsman runs` lists them (--project names another)",
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILED)
    return found[0]


def print_json(value: Message | Iterable[Message]) -> None:
    """Prints messages as JSON with the field names of the protos."""
    if isinstance(value, Message):
        shown: object = as_dict(value)
    else:
        shown = [as_dict(one) for one in value]
    print(json.dumps(shown, indent=2, ensure_ascii=False))
