"""`pointsman queue …`: the entries of merge queues, their answers, and the integrator that lands them."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.cli.options.usage import ProjectOption, fail_usage
from pointsman.cli.render.entries import entry_lines, entry_table
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.cli.session.landing import integrator_for
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, ask, find_run, print_json
from pointsman.cli.session.usable_repository import repository_at
from pointsman.client import Client, Terms

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Merge queues: entries, answers, the integrator.")
EntryId = Annotated[str, typer.Argument(metavar="ENTRY", help="The entry's id, or the beginning of it.")]
REPLIES = {"retry": pb.ENTRY_REPLY_RETRY, "approve": pb.ENTRY_REPLY_APPROVE, "reject": pb.ENTRY_REPLY_REJECT}
PREFIX = "entry_"


@app.command("list")
def listed(
    *,
    run: Annotated[str, typer.Option(metavar="RUN", help="Only of this run.")] = "",
    live: Annotated[bool, typer.Option(help="Only those that have not ended.")] = False,
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """List entries, newest first."""
    ended = (pb.ENTRY_STATE_LANDED, pb.ENTRY_STATE_REJECTED, pb.ENTRY_STATE_CANCELLED)
    states = [state for state in pb.EntryState.values() if state and state not in ended] if live else []

    async def question(client: Client) -> int:
        run_id = await find_run(client, run) if run else ""
        entries = [entry async for entry in client.landing.all(states, run_id=run_id)]
        if as_json:
            print_json(entries)
        else:
            print("\n".join(entry_table(entries)))
        return 0

    ask(server, project, question)


@app.command()
def show(*, entry_id: EntryId, server: ServerAt = "", project: InProject = "local", as_json: AsJson = False) -> None:
    """Show an entry with its linked runs, and what it waits for."""

    async def question(client: Client) -> int:
        _print(await client.landing.get(await _find(client, entry_id)), as_json=as_json)
        return 0

    ask(server, project, question)


@app.command()
def answer(  # noqa: PLR0913 - one parameter per option
    *,
    entry_id: EntryId,
    reply: Annotated[str, typer.Argument(metavar="REPLY", help="`retry`, `approve` or `reject`.")],
    text: Annotated[str, typer.Option(help="Why.")] = "",
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Answer an entry that asks a person."""
    if reply not in REPLIES:
        fail_usage(f"'{reply}' is no answer; known are {', '.join(REPLIES)}")

    async def question(client: Client) -> int:
        entry = await client.landing.answer(await _find(client, entry_id), REPLIES[reply], text)
        _print(entry, as_json=as_json)
        return 0

    ask(server, project, question)


@app.command()
def cancel(
    *,
    entry_id: EntryId,
    reason: Annotated[str, typer.Option(help="Why.")] = "cancelled by hand",
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Take an entry out of its queue; the branch and the bundle of the work stay."""

    async def question(client: Client) -> int:
        _print(await client.landing.cancel(await _find(client, entry_id), reason), as_json=as_json)
        return 0

    ask(server, project, question)


@app.command()
def work(
    *,
    repo: Annotated[Path, typer.Option(help="The git repository to land in.")] = Path(),
    push: Annotated[list[str] | None, typer.Option(metavar="REMOTE", help="A remote that may be pushed to.")] = None,
    server: ServerAt = "",
    project: ProjectOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Who works, as a line of JSON.")] = False,
) -> None:
    """Land entries of a repository until stopped."""

    async def serve() -> None:
        integrator, stop = integrator_for(await repository_at(repo), push or ()), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with control_plane(server, absent=Absent.WAIT) as plane:
            said = (
                json.dumps({"integrator": integrator.name})
                if as_json
                else f"landing as {integrator.name}. Ctrl-C stops."
            )
            print(said, file=sys.stdout if as_json else sys.stderr, flush=True)
            await integrator.run(plane.client(Terms(project=project)), stop)

    asyncio.run(serve())


def _print(entry: pb.Entry, *, as_json: bool) -> None:
    if as_json:
        print_json(entry)
    else:
        print("\n".join(entry_lines(entry)))


async def _find(client: Client, named: str) -> str:
    """The id of an entry that is named by the beginning of it."""
    prefix = named if named.startswith(PREFIX) else f"{PREFIX}{named}"
    found = [entry.id async for entry in client.landing.all() if entry.id.startswith(prefix)]
    if len(found) > 1:
        fail_usage(f"'{named}' is the beginning of several entries: {', '.join(found[:5])}")
    return found[0] if found else named
