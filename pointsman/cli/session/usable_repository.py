"""Finds the git repository of a folder, or says why there is none to work on and what to do."""

import os
import pwd
import shlex
import shutil
from pathlib import Path

from pointsman._shared.git import GitFailed, git, text
from pointsman._shared.git_failures import NOT_INSTALLED
from pointsman.cli.options.usage import fail_usage


async def repository_at(folder: Path) -> Path:
    """The top folder of a git repository; ends the command for a folder that has none to work on, or no commit."""
    try:
        top = Path(await text(folder, "rev-parse", "--show-toplevel"))
    except (FileNotFoundError, NotADirectoryError):
        fail_usage(f"--repo: there is no folder {folder}")
    except GitFailed as error:
        fail_usage(await _why_unusable(_in_full(folder), error))
    try:
        await git(top, "rev-parse", "--verify", "-q", "HEAD^{commit}")
    except GitFailed:
        fail_usage(f"the git repository {top} has no commit yet; the work starts from one: git add -A && git commit")
    return top


async def find_repository(repo: Path | None) -> Path | None:
    """The top folder of the named repository, else of the current one; None where there is no git or no repository."""
    if repo is None and (shutil.which("git") is None or _repository_around(Path.cwd()) is None):
        return None
    return await repository_at(repo or Path())


async def has_usable_repository() -> bool:
    """Whether the current folder is in a repository that can be worked on; never ends the command."""
    try:
        top = Path(await text(Path(), "rev-parse", "--show-toplevel"))
        await git(top, "rev-parse", "--verify", "-q", "HEAD^{commit}")
    except (GitFailed, OSError):
        return False
    return True


def explain_absence(wanted_by: str) -> str:
    """Why `find_repository` found none here."""
    if shutil.which("git") is None:
        return NOT_INSTALLED
    return f"{wanted_by} needs a git repository, and here is none; go into one, or name one with --repo"


async def _why_unusable(folder: Path, error: GitFailed) -> str:
    """What keeps a folder from being worked on, and the way out."""
    if str(error) == NOT_INSTALLED:
        return NOT_INSTALLED
    place = _repository_around(folder)
    if place is None:
        return f"--repo: {folder} is in no git repository with a working tree; `git init` makes one"
    if owner := _other_owner(place):
        return (
            f"the git repository {place} belongs to {owner}, and safe.directory of your configuration is not read; "
            f"work as its owner, or on a copy of your own: cp -r {shlex.quote(str(place))} COPY"
        )
    try:
        is_bare = await text(folder, "rev-parse", "--is-bare-repository") == "true"
    except GitFailed:
        return f"git cannot use the repository {place}: {error}"
    if is_bare:
        return (
            f"the git repository {place} is bare, and work needs one with a working tree: "
            f"git clone {shlex.quote(str(place))} CLONE"
        )
    return f"{folder} is inside a .git folder; go to the working tree beside it, or name that with --repo"


def _in_full(folder: Path) -> Path:
    return folder.resolve()


def _repository_around(folder: Path) -> Path | None:
    """The nearest folder, from this one up, that is a repository or has one."""
    return next((place for place in (folder, *folder.parents) if _is_repository(place)), None)


def _is_repository(place: Path) -> bool:
    try:
        is_bare = (place / "HEAD").is_file() and (place / "objects").is_dir()
        return is_bare or (place / ".git").is_file() or (place / ".git" / "HEAD").exists()
    except PermissionError:
        return False


def _other_owner(place: Path) -> str:
    """The owner of a repository's folders who is not this user; empty when they are this user's."""
    for part in (place, place / ".git"):
        owner = part.stat().st_uid if part.exists() else os.geteuid()
        if owner != os.geteuid():
            return f"another user ({_user_name(owner)})"
    return ""


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"
