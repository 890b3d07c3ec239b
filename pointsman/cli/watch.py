"""`pointsman watch RUN`: follow a run, from its beginning or from a seq."""

from typing import Annotated

import typer

from pointsman.cli.asking import AsJson, InProject, RunId, ServerAt, ask
from pointsman.cli.following import exit_code, follow
from pointsman.cli.run import report
from pointsman.cli.views import view_for
from pointsman.client import Client

app = typer.Typer(add_completion=False)


@app.command()
def watch(
    *,
    run_id: RunId,
    after: Annotated[int, typer.Option(help="Only transitions after this seq.")] = 0,
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Follow a run to its end: exit 0 complete, 1 failed or cancelled, 4 waits for a person."""

    async def question(client: Client) -> int:
        run = await follow(client, run_id, view_for(as_json=as_json), after)
        await report(client, run, as_json)
        return exit_code(run)

    ask(server, project, question)
