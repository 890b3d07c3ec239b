"""`pointsman down`: stops the control plane that `pointsman up` started on the data directory."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.session.attached_commands import STEP_SECONDS
from pointsman.credentials.location import LOCK, Owner, owner_of
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.storage.file_lock import is_locked

app = typer.Typer(add_completion=False)


@app.command()
def down(
    *,
    data: Annotated[Path | None, typer.Option(help="Directory of the stores (default: POINTSMAN_DATA).")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="How long to wait for its end.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="The process that was stopped, as JSON.")] = False,
) -> None:
    """Stop the control plane on the data directory: calls in flight finish, nothing stored is lost."""
    directory = load(StoreSettings, **({"data": data} if data is not None else {})).directory
    lock = directory / LOCK
    owner = owner_of(lock) if is_locked(lock) else None
    if owner is None:
        _report(f"no control plane runs on {directory}", 0, as_json)
        return
    if owner.yields:
        print(
            f"pointsman: the control plane on {directory} is inside another command (process {owner.pid}) and ends with it",
            file=sys.stderr,
        )
        sys.exit(EXIT_FAILED)
    if not _terminate(owner, lock) or asyncio.run(_has_ended(lock, seconds)):
        _report(f"stopped the control plane on {directory} (process {owner.pid})", owner.pid, as_json)
        return
    print(f"pointsman: process {owner.pid} was asked to stop and still runs after {seconds:.0f} s", file=sys.stderr)
    sys.exit(EXIT_FAILED)


def _terminate(owner: Owner, lock: Path) -> bool:
    """Sends SIGTERM; the lock is checked once more, so that a process with a reused id is never signalled."""
    try:
        os.kill(owner.pid, 0)
        if not is_locked(lock) or owner_of(lock) != owner:
            return False
        os.kill(owner.pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    return True


async def _has_ended(lock: Path, seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while is_locked(lock):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(STEP_SECONDS)
    return True


def _report(words: str, pid: int, as_json: bool) -> None:
    print(json.dumps({"stopped": bool(pid), "pid": pid}) if as_json else words)
