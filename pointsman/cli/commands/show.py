"""`pointsman show RUN`: a run as it is now, each attempt at its tasks, and what it delivered."""

import typer

from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.cli.render.attempts import attempt_lines
from pointsman.cli.render.entries import entry_lines, prediction_lines
from pointsman.cli.render.run_progress import status
from pointsman.cli.render.run_table import origin_text, story_lines
from pointsman.cli.session.follow import TERMINAL, delivery_lines, question_lines
from pointsman.cli.session.run_client import AsJson, InProject, RunId, ServerAt, ask, find_run, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)


@app.command()
def show(*, run_id: RunId, server: ServerAt = "", project: InProject = "local", as_json: AsJson = False) -> None:
    """Show a run: state, tasks, attempts with claims, findings and reasons, whom it waits for, what was delivered."""

    async def question(client: Client) -> int:
        run = await client.runs.get(await find_run(client, run_id))
        if as_json:
            print_json(run)
            return 0
        print(f"{run.id}\n{run.intent}\n\n{status(run)}\n")
        await _print_story(client, run)
        for coming in await client.landing.predictions(run.id):
            print("\n".join(prediction_lines(run.id, coming)) + "\n")
        async for entry in client.landing.all(run_id=run.id):
            print("\n".join(entry_lines(entry)) + "\n")
        async for attempt in client.runs.evidence(run.id):
            print("\n".join(attempt_lines(attempt)) + "\n")
        if run.state in TERMINAL:
            print("\n".join(delivery_lines(run, await client.runs.delivery(run.id))))
        elif run.HasField("question"):
            print("\n".join(question_lines(run)))
        return 0

    ask(server, project, question)


async def _print_story(client: Client, run: Run) -> None:
    """Prints the runs that did the same before and after, where there are any."""
    if run.HasField("origin"):
        print(f"{origin_text(run)}\n")
    first = run.origin.first_run_id or run.id
    if lines := list(story_lines(run, [one async for one in client.runs.all(text=first) if _is_of(one, first)])):
        print("\n".join(lines) + "\n")


def _is_of(run: Run, first: str) -> bool:
    """Whether a run is of a story; others may only speak of it."""
    return first in (run.id, run.origin.first_run_id)
