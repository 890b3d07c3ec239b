"""`pointsman machine`: the orchestrator's table of transitions. In process; needs no server."""

import json
from typing import Annotated

import typer

from pointsman.services.orchestrator.domain.decision import Row
from pointsman.services.orchestrator.domain.enums import TERMINAL, State
from pointsman.services.orchestrator.domain.table import INITIAL, TABLE, VERSION, mermaid

app = typer.Typer(add_completion=False)


@app.command()
def machine(
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON: states, transitions.")] = False,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="The table as a Mermaid state diagram.")] = False,
) -> None:
    """Print the states of a run and every transition between them."""
    if as_json:
        print(json.dumps(_table(), indent=2))
    elif as_mermaid:
        print(mermaid(), end="")
    else:
        for row in TABLE.rows:
            guard = f" [{row.guard.name}]" if row.guard.name else ""
            print(f"{row.source:<16} {row.event}{guard} -> {row.target}  ({', '.join(row.action_names)})")


def _table() -> dict[str, object]:
    return {
        "version": VERSION,
        "initial": str(INITIAL),
        "states": [str(state) for state in State],
        "terminal": [str(state) for state in State if state in TERMINAL],
        "transitions": [_row(row) for row in TABLE.rows],
    }


def _row(row: Row) -> dict[str, object]:
    return {
        "source": str(row.source),
        "event": str(row.event),
        "guard": row.guard.name,
        "target": str(row.target),
        "actions": list(row.action_names),
    }
