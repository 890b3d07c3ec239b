"""`pointsman deliver RUN`: the accepted work as a branch of your repository; nothing is ever overwritten."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.usage import project_name
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.delivery_branch import NotDelivered, put_on_branch
from pointsman.cli.session.run_client import RunId, find_run
from pointsman.cli.session.usable_repository import repository_at
from pointsman.client import Terms
from pointsman.worker.git import GitFailed, text

app = typer.Typer(add_completion=False)


@app.command()
def deliver(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: RunId,
    repo: Annotated[Path, typer.Option(help="The git repository.")] = Path(),
    branch: Annotated[str, typer.Option(help="The branch; default: pointsman/RUN.")] = "",
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: Annotated[str, typer.Option(help="The project of the run.", callback=project_name)] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Fetch what a run has accepted so far and put it on a new branch; your working tree is not touched."""

    async def work() -> str:
        folder = await repository_at(repo)
        async with control_plane(server) as plane:
            client = plane.client(Terms(project=project))
            found = await find_run(client, run_id)
            named = branch or f"pointsman/{found}"
            message = await put_on_branch(client, found, folder, named)
        if not as_json:
            return message
        commit = await text(folder, "rev-parse", f"refs/heads/{named}")
        return json.dumps({"run_id": found, "branch": named, "commit": commit})

    try:
        print(asyncio.run(work()))
    except (NotDelivered, GitFailed) as error:
        print(f"pointsman: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
