"""`pointsman deliver RUN`: the accepted work as a branch of your repository, and from there into the branch it is for."""

import asyncio
import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.crew_options import AgentOption, CommandOption, ResolverOption
from pointsman.cli.options.run_options import parse_budget
from pointsman.cli.options.sandbox_options import EnvironmentOption, ReadOption
from pointsman.cli.options.usage import ProjectOption, fail_usage
from pointsman.cli.render.entries import entry_lines
from pointsman.cli.render.json_output import as_dict
from pointsman.cli.render.run_progress import QuietView, view_for
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.crew import CrewOptions, crew_of
from pointsman.cli.session.delivery_branch import NotDelivered, put_on_branch
from pointsman.cli.session.landing import Wishes, exit_code_of, integrator_for, land_now, terms_of, with_head
from pointsman.cli.session.linked_runs import LinkCrew
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.run_client import RunId, find_run
from pointsman.cli.session.usable_repository import repository_at
from pointsman.client import CallFailed, Client, Terms
from pointsman.worker.git import GitFailed, text

app = typer.Typer(add_completion=False)


@app.command()
def deliver(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: RunId,
    repo: Annotated[Path, typer.Option(help="The git repository.")] = Path(),
    branch: Annotated[str, typer.Option(help="The branch; default: pointsman/RUN.")] = "",
    onto: Annotated[str, typer.Option(metavar="BRANCH", help="Land it on this branch, proven on its tip.")] = "",
    push: Annotated[str, typer.Option(metavar="REMOTE", help="The branch is this remote's.")] = "",
    pr: Annotated[bool, typer.Option("--pr", help="Open a pull request instead, and follow it.")] = False,
    squash: Annotated[bool, typer.Option("--squash", help="One commit for the whole run.")] = False,
    stack: Annotated[bool, typer.Option("--stack", help="A pull request for each task, on the one below.")] = False,
    queue: Annotated[bool, typer.Option("--queue", help="Only put it in; `pointsman queue work` lands it.")] = False,
    budget: Annotated[str, typer.Option(help="What its linked runs may spend together, as run has it.")] = "",
    agent: AgentOption = "",
    command: CommandOption = "",
    resolver: ResolverOption = "",
    env: EnvironmentOption = None,
    read: ReadOption = None,
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: ProjectOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Fetch what a run has accepted and put it on a new branch; with --onto or [deliver], land it on another one.

    With --agent or --command it stays until the work is merged or a person is asked, and repairs what is found.
    """
    wishes = Wishes(onto, push, pr, squash, queue, parse_budget(budget), bool(resolver), stack)
    crew = CrewOptions(agent, command, {"resolver": resolver}, env=tuple(env or ()), read=tuple(read or ()))
    if queue and crew.named():
        fail_usage(
            "--queue only puts the work in; leave --agent, --command and --resolver to `pointsman agent`, or leave it out"
        )
    if branch and wishes.any:
        fail_usage(
            "--branch only makes a branch; leave it out to land the work with --onto, --push, --pr, --stack or --queue"
        )

    async def work() -> tuple[dict[str, Any], str, int]:
        folder = await repository_at(repo)
        async with control_plane(server) as plane:
            client = plane.client(Terms(project=project))
            found = await find_run(client, run_id)
            named = branch or f"pointsman/{found}"
            message = await put_on_branch(client, found, folder, named)
            commit = await text(folder, "rev-parse", f"refs/heads/{named}")
            made = {"run_id": found, "branch": named, "commit": commit}
            asked = wishes if branch else await with_head(wishes, folder)
            if not asked.onto and not asked.any:
                return made, message, 0
            helpers = await _crew_of_links(crew, folder, as_json) if crew.named() else None
            entries = await _land(client, found, asked, folder, helpers)
        code = exit_code_of(entries) if not asked.queue else 0
        return {**made, **_as_json(entries)}, "\n".join((message, *map(_as_text, entries))), code

    try:
        made, message, code = asyncio.run(work())
    except (NotDelivered, GitFailed, CallFailed) as error:
        print(f"pointsman: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
    print(json.dumps(made) if as_json else message)
    sys.exit(code)


async def _land(client: Client, run_id: str, wishes: Wishes, folder: Path, crew: LinkCrew | None) -> Sequence[pb.Entry]:
    """Puts the work into its queue and, unless it is only to wait there, lands it."""
    entry = await client.landing.enqueue(run_id, await terms_of(wishes, folder))
    if wishes.queue:
        return [entry]
    return await land_now(client, entry, integrator_for(folder, (wishes.push,)), crew)


def _as_json(entries: Sequence[pb.Entry]) -> dict[str, Any]:
    """The entry, and where it is the lowest of a stack all of its layers."""
    layers = {"layers": [as_dict(entry) for entry in entries]} if entries[0].HasField("stack") else {}
    return {"entry": as_dict(entries[0]), **layers}


def _as_text(entry: pb.Entry) -> str:
    return "\n".join(entry_lines(entry))


async def _crew_of_links(options: CrewOptions, folder: Path, as_json: bool) -> LinkCrew:
    """The crew for what is found while the work lands."""
    crew = crew_of(options, (await read_project(folder, await text(folder, "rev-parse", "HEAD"))).crew)
    return LinkCrew(folder, crew, QuietView if as_json else partial(view_for, as_json=False))
