"""The target branch as git sees it: where its tip is, and how it moves, by fast-forward only."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pointsman._shared.git import GitFailed, git, text

OURS = "refs/pointsman/landing"
MAX_SUBJECTS = 20
PAUSES_SECONDS = (1.0, 4.0, 10.0)
"""Before a remote that does not answer is asked again; then a person is."""
_AWAY = re.compile(
    r"could not resolve|connection (refused|reset|timed out)|failed to connect|couldn't connect|timed? out|returned error: 5"
    r"|network is unreachable|hung up unexpectedly|early eof",
    re.IGNORECASE,
)
_REJECTED = re.compile(r"^!\t[^\t]*\t\[(remote )?rejected\] ?(.*)$", re.MULTILINE)


class Blocked(Exception):
    """The integrator may not or cannot go on; the message says why, and the way out."""


@dataclass(frozen=True, slots=True)
class Target:
    """One branch: of the user's repository itself, or of a remote of it."""

    clone: Path
    """The integrator's private clone, which no agent can write to."""
    folder: Path
    """The user's repository."""
    branch: str
    remote: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables of git that carry a credential; they are on no command line."""

    @property
    def ref(self) -> str:
        """The branch in full."""
        return f"refs/heads/{self.branch}"

    async def address(self) -> str:
        """Where the branch is: the user's repository, or the address of its remote."""
        if not self.remote:
            return str(self.folder)
        try:
            return await text(self.folder, "remote", "get-url", self.remote)
        except GitFailed:
            raise Blocked(f"the repository has no remote '{self.remote}'; `git remote add` it") from None

    async def tip(self) -> str:
        """Fetches the branch, and returns the commit that it is at."""
        if not self.remote and (known := await self._known_tip()):
            return known
        mine = f"{OURS}/{self.remote or 'local'}/{self.branch}"
        await self._fetch(f"+{self.ref}:{mine}")
        return await text(self.clone, "rev-parse", mine)

    async def _fetch(self, wanted: str) -> None:
        """Fetches from where the target is; a network that is away for a moment asks nobody."""
        address = await self.address()
        for pause in (*PAUSES_SECONDS, None):
            try:
                await git(
                    self.clone, "fetch", "-q", "--no-tags", "--no-write-fetch-head", address, wanted, extra=self.secrets
                )
            except GitFailed as error:
                if pause is None or not (self.remote and _AWAY.search(str(error))):
                    raise Blocked(f"the branch {self.branch} cannot be fetched: {error}{self._way_out()}") from None
                await asyncio.sleep(pause)
            else:
                return

    def _way_out(self) -> str:
        if not self.remote:
            return ""
        return f". See what `git fetch {self.remote}` says, repair it or `git remote set-url`, then answer `retry`"

    async def _known_tip(self) -> str:
        """Where the branch of the user's repository is, if the clone has the commit; looking costs less than fetching."""
        try:
            commit = await text(self.folder, "rev-parse", "--verify", "--quiet", self.ref)
        except GitFailed:
            return ""
        return commit if await self.has(commit) else ""

    async def fetched(self, commit: str) -> bool:
        """Fetches a commit, and not what else a branch may hold, from where the target is; whether it is there."""
        wanted = f"{commit}:{OURS}/{self.remote}/commits/{commit}"
        with suppress(GitFailed):
            await git(
                self.clone, "fetch", "-q", "--no-tags", "--no-write-fetch-head", await self.address(), wanted,
                extra=self.secrets,
            )  # fmt: skip
        return await self.has(commit)

    async def contains(self, commit: str, tip: str) -> bool:
        """Whether a commit is in the history of a tip."""
        try:
            return not (await git(self.clone, "rev-list", "--max-count=1", commit, f"^{tip}")).strip()
        except GitFailed:  # the clone does not have it
            return False

    async def subjects(self, commit: str, tip: str) -> list[str]:
        """The commits that one commit would bring into a tip, newest first, a line each."""
        listed = await git(self.clone, "log", f"--max-count={MAX_SUBJECTS}", "--format=%h %s", commit, f"^{tip}")
        return listed.decode(errors="replace").splitlines()

    async def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return await text(self.clone, "rev-parse", f"{commit}^{{tree}}")

    async def keep(self, name: str, commit: str) -> str:
        """Keeps a commit in the user's repository, where a linked run starts from it; returns the commit."""
        await git(
            self.folder,
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            str(self.clone),
            f"+{commit}:{OURS}/{name}",
        )
        return commit

    async def has(self, commit: str) -> bool:
        """Whether the clone has a commit."""
        try:
            await git(self.clone, "cat-file", "-e", f"{commit}^{{commit}}")
        except GitFailed:
            return False
        return True

    async def advance(self, old: str, new: str) -> bool:
        """Moves the branch from one commit to a later one; whether it was still there, and the other one is later."""
        if not await self.contains(old, new):
            return False
        return await (self._push(old, new) if self.remote else self._move(old, new))

    async def _push(self, old: str, new: str) -> bool:
        """Only from the commit that the new one was proven on, which it contains: a fast-forward, never with force.

        Without the lease a branch that was set back meanwhile would be moved forward over what somebody took out of it.
        """
        said = await git(
            self.clone, "push", "--porcelain", "--no-verify", f"--force-with-lease={self.ref}:{old}", await self.address(),
            f"{new}:{self.ref}", extra=self.secrets, ok=(0, 1),
        )  # fmt: skip
        refused = _REJECTED.search(said.decode(errors="replace"))
        if refused is None:
            return True
        if refused[1] is None or await self._has_moved_past(new):
            return False
        raise Blocked(
            f"the remote '{self.remote}' refuses to move {self.branch}: {refused[2].strip()[:300]}. "
            "Propose it with --pr, or let the integrator push there, then answer `retry`"
        )

    async def _has_moved_past(self, new: str) -> bool:
        """Whether a refused push lost a race: the branch is somewhere that the new commit does not contain."""
        tip = await self.tip()
        return not await self.contains(tip, new)

    async def _move(self, old: str, new: str) -> bool:
        await git(self.folder, "fetch", "-q", "--no-tags", "--no-write-fetch-head", str(self.clone), new)
        for tree in await self._working_trees():
            return await self._move_checked_out(tree, old, new)
        try:
            await git(self.folder, "update-ref", "-m", "pointsman: landed", self.ref, new, old)
        except GitFailed:
            if await text(self.folder, "rev-parse", self.ref) == old:
                raise
            return False
        return True

    async def _working_trees(self) -> list[Path]:
        """The working trees in which the branch is checked out."""
        listed = (await git(self.folder, "worktree", "list", "--porcelain")).decode(errors="replace")
        blocks = (dict(line.partition(" ")[::2] for line in block.splitlines()) for block in listed.split("\n\n"))
        return [Path(block["worktree"]) for block in blocks if block.get("branch") == self.ref]

    async def _move_checked_out(self, tree: Path, old: str, new: str) -> bool:
        """Moves the branch and the clean working tree that has it checked out together."""
        if (await git(tree, "status", "--porcelain", "--untracked-files=no")).strip():
            raise Blocked(
                f"{self.branch} is checked out in {tree} with uncommitted changes; commit or stash them, or land on another "
                "branch, then answer `retry`"
            )
        if await text(tree, "rev-parse", "HEAD") != old:
            return False
        try:
            await git(tree, "merge", "-q", "--ff-only", new)
        except GitFailed as error:
            if await text(tree, "rev-parse", "HEAD") != old:
                return False
            raise Blocked(f"the working tree {tree} cannot be moved: {error}") from None
        return True


async def entry_refs(folder: Path) -> list[str]:
    """The entries for which the user's repository keeps a commit that a linked run starts from."""
    listed = await text(folder, "for-each-ref", "--format=%(refname:lstrip=3)", f"{OURS}/entry_*")
    return listed.split()


async def drop_entry_ref(folder: Path, entry_id: str) -> None:
    """Deletes the ref of an entry whose work landed; branches stay."""
    await git(folder, "update-ref", "-d", f"{OURS}/{entry_id}")
