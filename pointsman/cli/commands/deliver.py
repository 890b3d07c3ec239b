"""`pointsman deliver RUN`: the accepted work as a branch of your repository; nothing is ever overwritten."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli import EXIT_FAILED
from pointsman.cli.render.json_output import project_name
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.workers import repository_at
from pointsman.client import Client, Terms
from pointsman.worker.git import GitFailed, git, text

app = typer.Typer(add_completion=False)


class NotDelivered(Exception):
    """Why the work could not be put on a branch."""


@app.command()
def deliver(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run.")],
    repo: Annotated[Path, typer.Option(help="The git repository.")] = Path(),
    branch: Annotated[str, typer.Option(help="The branch; default: pointsman/RUN.")] = "",
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: Annotated[str, typer.Option(help="The project of the run.", callback=project_name)] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Fetch what a run has accepted so far and put it on a new branch; your working tree is not touched."""
    named = branch or f"pointsman/{run_id}"

    async def work() -> str:
        folder = await repository_at(repo)
        async with control_plane(server) as plane:
            client = Client(plane.channels["orchestrator"], Terms(project=project))
            told = await put_on_branch(client, run_id, folder, named)
        if not as_json:
            return told
        commit = await text(folder, "rev-parse", f"refs/heads/{named}")
        return json.dumps({"run_id": run_id, "branch": named, "commit": commit})

    try:
        print(asyncio.run(work()))
    except (NotDelivered, GitFailed) as error:
        print(f"pointsman: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


async def _can_be_branch(folder: Path, branch: str) -> bool:
    try:
        await git(folder, "check-ref-format", f"refs/heads/{branch}")
    except GitFailed:
        return False
    return True


async def put_on_branch(client: Client, run_id: str, folder: Path, branch: str) -> str:
    """Put a run's accepted commit on a branch; a branch of that name must not exist, unless it is there already."""
    delivery = await client.runs.delivery(run_id)
    commit = delivery.accepted_commit
    if not commit:
        raise NotDelivered(f"{run_id} has no accepted work yet")
    if not await _can_be_branch(folder, branch):
        raise NotDelivered(f"'{branch}' cannot be the name of a branch; choose another with --branch")
    existing = await text(folder, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
    if existing == commit:
        return f"{branch} is at {commit} already"
    if existing:
        raise NotDelivered(f"the branch {branch} exists and is at {existing}; name another with --branch")
    if delivery.bundle.sha256:
        with tempfile.NamedTemporaryFile(suffix=".bundle") as file:
            file.write(await client.artifacts.get(delivery.bundle))
            file.flush()
            await git(
                folder, "-c", "transfer.fsckObjects=true", "fetch", "-q", "--no-tags", "--no-write-fetch-head",
                file.name, commit,
            )  # fmt: skip
    await git(folder, "update-ref", f"refs/heads/{branch}", commit, "")
    return f"{branch} is at {commit}; your working tree is as it was. Look: git diff HEAD...{branch}"
