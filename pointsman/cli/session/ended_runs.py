"""What ended runs left behind: branches of their deliveries, and logs of those that went on in the background."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import git, text
from pointsman.api.orchestrator.v1.orchestrator_pb2 import RunSelection
from pointsman.cli.session.follow import TERMINAL
from pointsman.client import Client, NotFound

BRANCHES = "refs/heads/pointsman/"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A branch or a log of a run that has ended."""

    run_id: str
    place: str
    """The branch, or the path of the log."""
    commit: str = ""
    """Where the branch is; empty for a log."""


async def leftovers(
    client: Client, folder: Path | None, logs: Path, selection: RunSelection | None = None
) -> AsyncIterator[Leftover]:
    """Branches that are where their run put them, and logs; those of runs that go on, were changed, or are not selected are left out."""
    wanted = {run.id async for run in client.runs.selected(selection)} if selection is not None else None
    for branch, commit in await _branches(folder) if folder is not None else ():
        run_id = branch.rpartition("/")[2]
        if (wanted is None or run_id in wanted) and await _delivered(client, run_id) == commit:
            yield Leftover(run_id, branch, commit)
    for path in _logs(logs):
        if (wanted is None or path.stem in wanted) and await _delivered(client, path.stem) is not None:
            yield Leftover(path.stem, str(path))


async def remove(found: Leftover, folder: Path | None) -> None:
    """Removes a branch, if it is still where it was, or a log; `pointsman deliver` brings a branch back."""
    if not found.commit:
        await asyncio.to_thread(Path(found.place).unlink, missing_ok=True)
    elif folder is not None:
        await git(folder, "update-ref", "-d", f"refs/heads/{found.place}", found.commit)


def _logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("run_*.log"))


async def _branches(folder: Path) -> list[tuple[str, str]]:
    """The branches of deliveries that no working tree has checked out, with their commits."""
    listed = await text(folder, "for-each-ref", "--format=%(refname:short) %(objectname) %(worktreepath)", BRANCHES)
    words = [line.split(" ", 2) for line in listed.splitlines()]
    return [(name, commit) for name, commit, *used in words if not "".join(used).strip()]


async def _delivered(client: Client, run_id: str) -> str | None:
    """The accepted commit of a run that has ended; None for one that goes on or is not known."""
    try:
        run = await client.runs.get(run_id)
    except NotFound:
        return None
    return run.accepted_commit if run.state in TERMINAL else None
