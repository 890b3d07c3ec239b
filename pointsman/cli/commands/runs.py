"""`pointsman runs`: the runs of a project, newest first."""

from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.run_pb2 import Attention, RunState
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.render.run_table import ATTENTION_WORDS, run_table
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, ask, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)


@app.command()
def runs(  # noqa: PLR0913 - one parameter per option
    *,
    state: Annotated[list[str] | None, typer.Option(help="Only runs in this state, several times.")] = None,
    show: Annotated[
        list[str] | None, typer.Option(help="Only needs-you, stuck, working, failed, done, cancelled; several times.")
    ] = None,
    text: Annotated[str, typer.Option(help="Only runs with all of these words.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at the most.")] = 50,
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """List runs."""
    names = [f"RUN_STATE_{name.upper()}" for name in state or ()]
    for name in names:
        if name not in RunState.keys():  # noqa: SIM118 - an enum wrapper, not a dict
            fail_usage(f"there is no state '{name.removeprefix('RUN_STATE_')}'; `pointsman machine` lists them")
    states = [RunState.Value(name) for name in names]
    asked = [_attention(word) for word in show or ()]

    async def question(client: Client) -> int:
        found = []
        async for run in client.runs.all(states, attention=asked, text=text):
            found.append(run)
            if len(found) >= limit:
                break
        if as_json:
            print_json(found)
            return 0
        print("\n".join(run_table(found)))
        return 0

    ask(server, project, question)


def _attention(word: str) -> Attention.ValueType:
    """What runs ask, by its word."""
    known = {name.replace(" ", "-"): kind for kind, name in ATTENTION_WORDS.items()}
    if word not in known:
        fail_usage(f"there is no '{word}' to show; it is one of {', '.join(known)}")
    return known[word]
