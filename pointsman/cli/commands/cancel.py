"""`pointsman cancel RUN`: end a run on purpose."""

from typing import Annotated

import typer

from pointsman.api.orchestrator.v1.orchestrator_pb2 import CancelEach
from pointsman.cli.options.selection_options import (
    LabelOption,
    MatchOption,
    OlderOption,
    Selected,
    StateOption,
    YesOption,
)
from pointsman.cli.render.run_progress import status
from pointsman.cli.session.bulk import change_selected
from pointsman.cli.session.run_client import AsJson, InProject, ServerAt, SomeRunId, ask, find_run, print_json
from pointsman.client import Client, RunsChange

app = typer.Typer(add_completion=False)


@app.command()
def cancel(  # noqa: PLR0913 - one parameter per option
    *,
    run_id: SomeRunId = "",
    state: StateOption = None,
    label: LabelOption = None,
    older: OlderOption = "",
    match: MatchOption = "",
    yes: YesOption = False,
    reason: Annotated[str, typer.Option(help="Why.")] = "cancelled by hand",
    server: ServerAt = "",
    project: InProject = "local",
    as_json: AsJson = False,
) -> None:
    """Cancel a run, or all that are selected, with assignments, pipelines and workflow; accepted work stays."""
    selected = Selected(state or (), label or (), older, match)
    selected.require_one_way(run_id)
    if selected.is_given:
        change = RunsChange(cancel=CancelEach(reason=reason))
        change_selected(selected, change, (server, project), yes=yes, as_json=as_json)

    async def question(client: Client) -> int:
        run = await client.runs.cancel(await find_run(client, run_id), reason)
        if as_json:
            print_json(run)
        else:
            print(status(run))
        return 0

    ask(server, project, question)
