"""`pointsman clean`: remove the work folders that killed workers left in the data directory."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.usage import fail_usage
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.worker.folders import Abandoned, remove_abandoned
from pointsman.worker.workspace import assignments_folder

app = typer.Typer(add_completion=False)


@app.command()
def clean(
    *,
    data: Annotated[Path | None, typer.Option(help="The data directory; default: POINTSMAN_DATA.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The folders as JSON.")] = False,
) -> None:
    """Remove the work folders of workers that were killed; those of workers that run are not touched."""
    directory = load(StoreSettings, **({"data": data} if data is not None else {})).directory
    if not directory.is_dir() and (data is not None or directory.exists()):
        fail_usage(f"{'--data' if data is not None else 'POINTSMAN_DATA'}: there is no directory {directory}")
    found = remove_abandoned(assignments_folder(directory / "worker"), dry_run=dry_run)
    if as_json:
        shown = [{"path": str(one.path), "size_bytes": one.size_bytes, "error": one.error} for one in found]
        print(json.dumps({"dry_run": dry_run, "folders": shown}, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_line(one, dry_run=dry_run) for one in found) or "nothing is left behind")
    sys.exit(EXIT_FAILED if any(one.error for one in found) else 0)


def _line(left: Abandoned, *, dry_run: bool) -> str:
    word = "would be removed" if dry_run else "not removed" if left.error else "removed"
    return f"{word}  {left.path}  ({left.size_bytes / 1e6:.1f} MB){f': {left.error}' if left.error else ''}"
