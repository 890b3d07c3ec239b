"""`pointsman clean`: remove what killed workers and ended runs left behind."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.sandbox_options import RepositoryOption
from pointsman.cli.options.selection_options import LabelOption, MatchOption, OlderOption, Selected, StateOption
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.session.ended_runs import leftovers, remove
from pointsman.cli.session.run_client import InProject, ServerAt, ask
from pointsman.cli.session.usable_repository import find_repository
from pointsman.client import Client
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.worker.folders import Abandoned, remove_abandoned
from pointsman.worker.workspace import assignments_folder

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Where ended runs may have left something, and which runs are meant."""

    repo: Path | None
    logs: Path
    selected: Selected


@app.command()
def clean(  # noqa: PLR0913 - one parameter per option
    *,
    data: Annotated[Path | None, typer.Option(help="The data directory; default: POINTSMAN_DATA.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    ended: Annotated[
        bool,
        typer.Option("--ended", help="Instead: branches and logs of ended runs; lists them, and --yes removes them."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --ended: remove what it lists.")] = False,
    state: StateOption = None,
    label: LabelOption = None,
    older: OlderOption = "",
    match: MatchOption = "",
    repo: RepositoryOption = None,
    server: ServerAt = "",
    project: InProject = "local",
    as_json: Annotated[bool, typer.Option("--json", help="What was found as JSON.")] = False,
) -> None:
    """Remove the work folders of workers that were killed; those of workers that run are not touched."""
    selected = Selected(state or (), label or (), older, match)
    if (yes or repo or selected.is_given) and not ended:
        fail_usage("--yes, --repo and what selects runs are for the branches of ended runs: pointsman clean --ended")
    directory = load(StoreSettings, **({"data": data} if data is not None else {})).directory
    if not directory.is_dir() and (data is not None or directory.exists()):
        fail_usage(f"{'--data' if data is not None else 'POINTSMAN_DATA'}: there is no directory {directory}")
    if ended:
        looked_at = Leftovers(repo, directory / "detached", selected)
        _clean_ended(looked_at, (server, project), removes=yes and not dry_run, as_json=as_json)
        return
    found = remove_abandoned(assignments_folder(directory / "worker"), dry_run=dry_run)
    if as_json:
        shown = [{"path": str(one.path), "size_bytes": one.size_bytes, "error": one.error} for one in found]
        print(json.dumps({"dry_run": dry_run, "folders": shown}, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_line(one, dry_run=dry_run) for one in found) or "nothing is left behind")
    sys.exit(EXIT_FAILED if any(one.error for one in found) else 0)


def _clean_ended(looked_at: Leftovers, where: tuple[str, str], *, removes: bool, as_json: bool) -> None:
    selected = looked_at.selected
    selection = selected.message(SystemClock().now()) if selected.is_given else None

    async def question(client: Client) -> int:
        folder = await find_repository(looked_at.repo)
        found = [one async for one in leftovers(client, folder, looked_at.logs, selection)]
        for one in found if removes else ():
            await remove(one, folder)
        if as_json:
            shown = [{"run_id": one.run_id, "place": one.place, "commit": one.commit} for one in found]
            print(json.dumps({"dry_run": not removes, "ended": shown}, ensure_ascii=False, indent=2))
            return 0
        word = "removed" if removes else "would be removed"
        print("\n".join(f"{word}  {one.place}" for one in found) or "nothing is left of ended runs")
        if found and not removes:
            print("`pointsman clean --ended --yes` removes them; `pointsman deliver RUN` makes a branch again")
        return 0

    ask(*where, question)


def _line(left: Abandoned, *, dry_run: bool) -> str:
    word = "would be removed" if dry_run else "not removed" if left.error else "removed"
    return f"{word}  {left.path}  ({left.size_bytes / 1e6:.1f} MB){f': {left.error}' if left.error else ''}"
