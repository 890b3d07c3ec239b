"""`pointsman change RUN "text"`: add to what a run is to do, or change it."""

from typing import Annotated

import typer

from pointsman.cli.options.input_files import read_text
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.render.run_progress import status
from pointsman.cli.session.run_client import AsJson, InProject, RunId, ServerAt, ask, find_run, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)


@app.command()
def change(
    *,
    run_id: RunId,
    text: Annotated[str, typer.Argument(help="What is wanted in addition or instead; - is standard input.")],
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Change the requirement of a run that works: live work is cancelled, the plan patched, and the run goes on."""
    message = read_text("-") if text == "-" else text
    if not message.strip():
        fail_usage(
            f'the change is empty: say what is wanted, for example `pointsman change {run_id} "keep the old flag"`'
        )

    async def question(client: Client) -> int:
        run = await client.runs.change(await find_run(client, run_id), message)
        if as_json:
            print_json(run)
        else:
            print(status(run))
        return 0

    ask(server, project, question)
