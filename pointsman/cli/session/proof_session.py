"""What `pointsman proof` works on: the repository, its two commits, the commands, and a private clone."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import GitFailed, git, text
from pointsman.cli.options.usage import fail_usage, split_command
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.usable_repository import explain_absence, find_repository
from pointsman.project import ProjectFile, ProofSection
from pointsman.proof.snapshot import Repository
from pointsman.worker.git import commit_of_changes, uncommitted
from pointsman.worker.survey import test_command_of

DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")


@dataclass(frozen=True, slots=True)
class ProofSession:
    """Where a proof works, and what it compares."""

    folder: Path
    base: str
    delivered: str
    commands: tuple[tuple[str, ...], ...]
    project: ProjectFile

    @property
    def section(self) -> ProofSection:
        """What the project file says about proofs."""
        return self.project.proof


async def open_session(repo: Path | None, base: str, tree: str, verify: Sequence[str]) -> ProofSession:
    """Finds the repository, the commits and the commands; ends the command where one cannot be found."""
    folder = await find_repository(repo)
    if folder is None:
        fail_usage(explain_absence("a proof"))
    try:
        delivered = await _delivered(folder, tree)
        base_commit = await text(folder, "rev-parse", "--verify", f"{base}^{{commit}}") if base else ""
        base_commit = base_commit or await _default_base(folder, delivered)
    except GitFailed as error:
        fail_usage(str(error))
    project = await read_project(folder, base_commit)
    commands = tuple(split_command(command, "--verify") for command in verify)
    commands = commands or tuple(tuple(command.arguments) for command in project.proof.verify)
    found = () if commands else await test_command_of(folder, base_commit)
    commands = commands or ((tuple(found),) if found else ())
    if not commands:
        fail_usage("nothing says how this project is tested; name the command with --verify or in pointsman.toml")
    return ProofSession(folder, base_commit, delivered, commands, project)


async def _delivered(folder: Path, tree: str) -> str:
    """The commit that is proven: the one that is named, else the working tree as it is."""
    if tree:
        return await text(folder, "rev-parse", "--verify", f"{tree}^{{commit}}")
    return await commit_of_changes(folder) if await uncommitted(folder) else await text(folder, "rev-parse", "HEAD")


async def _default_base(folder: Path, delivered: str) -> str:
    """Where the work started: HEAD for uncommitted changes, else where the branch left the default branch."""
    head = await text(folder, "rev-parse", "HEAD")
    if delivered != head and await text(folder, "rev-parse", f"{delivered}^") == head:
        return head
    for name in DEFAULT_BRANCHES:
        try:
            fork = await text(folder, "merge-base", name, delivered)
        except GitFailed:
            continue
        if fork != delivered:
            return fork
    try:
        return await text(folder, "rev-parse", "--verify", f"{delivered}^")
    except GitFailed:
        fail_usage("nothing shows where this work started: name the commit before it with --base")


@asynccontextmanager
async def private_repository(folder: Path) -> AsyncIterator[tuple[Repository, Path]]:
    """A clone that a proof may write to, and a work folder; both are removed at the end."""
    place = Path(tempfile.mkdtemp(prefix="pointsman-proof-"))
    try:
        await git(place, "clone", "-q", "--bare", "--shared", str(folder), str(place / "clone.git"))
        yield Repository(place / "clone.git"), place / "work"
    finally:
        shutil.rmtree(place, ignore_errors=True)
