"""The same change for every selected run: first what would be done, then, with --yes, the doing."""

import sys

from pointsman.api.orchestrator.v1.orchestrator_pb2 import ChangedRun
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.selection_options import Selected
from pointsman.cli.session.run_client import ask, print_json
from pointsman.client import Client, RunsChange
from pointsman.services.chassis.core.clock import SystemClock


def change_selected(
    selected: Selected, change: RunsChange, plane_of: tuple[str, str], *, yes: bool, as_json: bool
) -> None:
    """Changes the selected runs, or says which would be changed; ends the command."""
    selection = selected.message(SystemClock().now())

    async def question(client: Client) -> int:
        found = [one async for one in client.runs.change_all(selection, change, dry_run=not yes)]
        if as_json:
            print_json(found)
        else:
            print("\n".join(_line(one, change.name) for one in found) or "no run is like that")
        would = sum(not one.refusal for one in found)
        if not yes and would:
            print(f"nothing was done yet; --yes does it to {would}", file=sys.stderr)
        return EXIT_FAILED if yes and any(one.refusal for one in found) else 0

    ask(*plane_of, question)


def _line(one: ChangedRun, name: str) -> str:
    """What was done to a run, or would be, or why not."""
    if one.refusal:
        return f"left        {one.run_id}  {one.refusal}"
    new = f" → {one.new_run_id}" if one.new_run_id else ""
    return f"{name if one.changed else f'would {name}':<13} {one.run_id}{new}  {one.intent[:60]}"
