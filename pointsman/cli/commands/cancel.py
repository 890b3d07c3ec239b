"""`pointsman cancel RUN`: end a run on purpose."""

from typing import Annotated

import typer

from pointsman.cli.render.run_progress import status
from pointsman.cli.session.run_client import AsJson, InProject, RunId, ServerAt, ask, find_run, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)


@app.command()
def cancel(
    *,
    run_id: RunId,
    reason: Annotated[str, typer.Option(help="Why.")] = "cancelled by hand",
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Cancel a run with its assignments, pipelines and workflow; what was accepted stays deliverable."""

    async def question(client: Client) -> int:
        run = await client.runs.cancel(await find_run(client, run_id), reason)
        if as_json:
            print_json(run)
        else:
            print(status(run))
        return 0

    ask(server, project, question)
