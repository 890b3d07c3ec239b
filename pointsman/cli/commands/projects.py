"""`pointsman projects`: the projects of a control plane, and how many of their runs need what."""

from collections.abc import Iterator, Sequence

import typer

from pointsman.api.orchestrator.v1.orchestrator_pb2 import ProjectSummary
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, ask, print_json
from pointsman.client import Client

app = typer.Typer(add_completion=False)
COLUMNS = ("needs_you", "stuck", "working", "failed", "done", "cancelled")


@app.command()
def projects(*, server: ServerAt = "", project: InProject = "local", as_json: AsJson = False) -> None:
    """List the projects that you have a part in, with counts of their runs."""

    async def question(client: Client) -> int:
        found = [one async for one in client.runs.projects()]
        if as_json:
            print_json(found)
        else:
            print("\n".join(_table(found, project)))
        return 0

    ask(server, project, question)


def _table(found: Sequence[ProjectSummary], used: str) -> Iterator[str]:
    """A header and a line per project; a star marks the one that commands use here."""
    if not found:
        yield "no projects: a project is there from its first run on; `pointsman run --project NAME` starts one"
        return
    width = max(len("PROJECT"), *(len(one.name) for one in found))
    yield f"  {'PROJECT':<{width}}  " + "  ".join(f"{column.upper().replace('_', ' '):>9}" for column in COLUMNS)
    for one in found:
        counts = "  ".join(f"{getattr(one, column):>9}" for column in COLUMNS)
        yield f"{'*' if one.name == used else ' '} {one.name:<{width}}  {counts}"
