"""Puts a run's accepted commit on a branch of the user's repository; nothing is ever overwritten."""

import shlex
import tempfile
from pathlib import Path

from pointsman.client import Client
from pointsman.worker.git import GitFailed, git, text


class NotDelivered(Exception):
    """The accepted commit could not be put on a branch; the message says why."""


async def put_on_branch(client: Client, run_id: str, folder: Path, branch: str) -> str:
    """Puts a run's accepted commit on a new branch; an existing branch must be at that commit already."""
    delivery = await client.runs.delivery(run_id)
    commit = delivery.accepted_commit
    if not commit:
        raise NotDelivered(f"{run_id} has no accepted work yet")
    if not await _can_be_branch(folder, branch):
        raise NotDelivered(f"'{branch}' cannot be the name of a branch; choose another with --branch")
    existing = await text(folder, "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
    if existing == commit:
        return f"{branch} is at {commit} already"
    if existing:
        raise NotDelivered(f"the branch {branch} exists and is at {existing}; name another with --branch")
    if delivery.bundle.sha256:
        with tempfile.NamedTemporaryFile(suffix=".bundle") as file:
            file.write(await client.artifacts.get(delivery.bundle))
            file.flush()
            await git(
                folder, "-c", "transfer.fsckObjects=true", "fetch", "-q", "--no-tags", "--no-write-fetch-head",
                file.name, commit,
            )  # fmt: skip
    await git(folder, "update-ref", f"refs/heads/{branch}", commit, "")
    return f"{branch} is at {commit}; your working tree is as it was. Look: {_git_in(folder)} diff HEAD...{branch}"


def _git_in(folder: Path) -> str:
    """How git is called for a repository from here."""
    place = folder.resolve()
    return "git" if Path.cwd().resolve().is_relative_to(place) else f"git -C {shlex.quote(str(place))}"


async def _can_be_branch(folder: Path, branch: str) -> bool:
    try:
        await git(folder, "check-ref-format", f"refs/heads/{branch}")
    except GitFailed:
        return False
    return True
