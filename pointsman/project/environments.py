"""Environments for proofs: made once for each digest of a set-up, stored, and lent to one proof at a time.

An environment has one path for its whole life, because what is installed names its tree by path (editable installs,
scripts, links of workspaces): a proof's tree is checked out where set-up ran, so what is installed is the delivered tree.
Agents, who may change everything they see, get copies of what was downloaded and built.
"""

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pointsman._shared.files import atomic_write
from pointsman._shared.removal import remove_tree
from pointsman._shared.search_path import search_path
from pointsman.project.build_caches import link_caches, take_builds, warm_up
from pointsman.project.download_copies import PrivateDownloads, copy_downloads
from pointsman.project.outputs import Output, entries_of, put_outputs, take_outputs
from pointsman.project.setup_plan import SetupPlan
from pointsman.project.setup_run import Say, SetupFolders, filled, run_setup

READY = "ready.json"
HOME = "home"
CACHES = "caches"
"""Build caches, written by warm-ups alone."""
OWN = "own"
"""Build caches of one borrower: links to the stored ones, and what its commands add."""
MAKING = "making"
MAKING_POLL_SECONDS = 0.2
KEPT_DIGESTS = 16
DIGEST_LENGTH = 20
VIRTUAL_ENVIRONMENTS = (".venv", "venv")
Fill = Callable[[Path], Awaitable[None]]
"""Checks a commit out into a folder that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment, lent: the tree's path, and what a command needs to use it."""

    place: Path
    plan: SetupPlan
    outputs: tuple[Output, ...]
    was_kept: bool
    """Whether an earlier set-up made it."""

    @property
    def tree(self) -> Path:
        """Where the tree goes; nothing is there until the borrower checks one out."""
        return self.place / "tree"

    @property
    def readable(self) -> tuple[Path, ...]:
        """What a command may read besides its tree."""
        own = (self.place / "kept", self.place / HOME, self.place / CACHES)
        return (*own, *self.plan.readable)

    @property
    def writable(self) -> tuple[Path, ...]:
        """What a command may write besides its tree: build caches of its own, which go with the tree."""
        return (self.place / OWN,) if self.plan.caches else ()

    def attach(self) -> None:
        """Puts what set-up made into the tree that was checked out; TreeRefused for a tree that is in its way."""
        put_outputs(self.tree, self.outputs, self.place / "kept")
        link_caches(self.plan.caches, self.place / CACHES, self.place / OWN)

    def variables(self) -> dict[str, str]:
        """The variables of a command in the tree: where its dependencies are, and its own Python first."""
        own = {name: str(self.place / OWN / name) for name in self.plan.caches}
        found = own | filled(self.plan.proof_variables, self.place / HOME)
        for name in VIRTUAL_ENVIRONMENTS:
            programs = self.place / "kept" / name / "bin"
            if (programs / "python").exists():
                path = os.pathsep.join((str(programs), search_path()))
                return {"PATH": path, "VIRTUAL_ENV": str(self.tree / name), **found}
        return found


class EnvironmentStore:
    """The environments below a folder of the worker's."""

    def __init__(self, root: Path, hidden: Sequence[Path] = ()) -> None:
        self._root = root
        self._hidden = tuple(hidden)

    @asynccontextmanager
    async def lend(self, plan: SetupPlan, fill_base: Fill, say: Say = lambda _: None) -> AsyncIterator[Environment]:
        """An environment for one borrower, set up on the base if there is none; its tree is removed at the end."""
        group = self._root / plan.digest[:DIGEST_LENGTH]
        place, lock = await asyncio.to_thread(_lock_free_place, group)
        try:
            outputs = _read_ready(place)
            was_kept = outputs is not None
            await asyncio.to_thread(_clear, place)
            if outputs is None:
                outputs = await self._set_up(plan, place, fill_base, say)
            os.utime(group)
            yield Environment(place, plan, outputs, was_kept)
        finally:
            await asyncio.to_thread(_clear, place)
            lock.close()
            await asyncio.to_thread(self._prune)

    async def copy_downloads(
        self, plan: SetupPlan, fill_base: Fill, target: Path, say: Say = lambda _: None
    ) -> PrivateDownloads:
        """Copies what was downloaded and built for a plan; where nobody has set it up yet, one caller does first."""
        group = self._root / plan.digest[:DIGEST_LENGTH]
        if found := await asyncio.to_thread(_copy_of_any, group, plan, target):
            return found
        async with _alone(group):
            if found := await asyncio.to_thread(_copy_of_any, group, plan, target):
                return found
            async with self.lend(plan, fill_base, say) as environment:
                return await asyncio.to_thread(_copy_of, environment.place, plan, environment.outputs, target)

    async def _set_up(self, plan: SetupPlan, place: Path, fill_base: Fill, say: Say) -> tuple[Output, ...]:
        """Sets an environment up; it counts only when its last file is written."""
        tree, stored = place / "tree", place / "kept"
        await asyncio.to_thread(_make_anew, place)
        outputs: tuple[Output, ...] = ()
        if plan.commands:
            await fill_base(tree)
            await asyncio.to_thread(_write_files, tree, plan)
            before = await asyncio.to_thread(entries_of, tree)
            await run_setup(plan, SetupFolders(tree, place / HOME, place / "tmp", self._hidden), say)
            outputs = await asyncio.to_thread(take_outputs, tree, before, stored)
        for warmup in plan.warmups:
            await asyncio.to_thread(remove_tree, tree)
            await fill_base(tree)
            await asyncio.to_thread(_write_files, tree, plan)
            await asyncio.to_thread(put_outputs, tree, outputs, stored)
            say(f"build cache: `{warmup.command.text}`")
            folders = SetupFolders(tree, place / HOME, place / "tmp", self._hidden)
            await warm_up(plan, warmup, folders, place / CACHES)
            outputs = (*outputs, *await asyncio.to_thread(take_builds, tree, warmup, stored))
        await asyncio.to_thread(_clear, place)
        await asyncio.to_thread(remove_tree, place / "tmp")
        atomic_write(place / READY, json.dumps([[output.path, output.is_store] for output in outputs]))
        return outputs

    def _prune(self) -> None:
        """Removes the environments that were not used for longest, beyond the limit; never one that is lent."""
        groups = sorted((path for path in self._root.iterdir() if path.is_dir()), key=_modified, reverse=True)
        for group in groups[KEPT_DIGESTS:]:
            for place in [path for path in group.iterdir() if path.is_dir()]:
                lock = _try_lock(place)
                if lock is not None:
                    with lock:
                        (place / READY).unlink(missing_ok=True)
                        remove_tree(place)
            with suppress(OSError):
                for lock_file in group.glob("*.lock"):
                    if not lock_file.with_suffix("").exists():
                        lock_file.unlink()
                group.rmdir()


@asynccontextmanager
async def _alone(group: Path) -> AsyncIterator[None]:
    """Only one caller of all processes is inside, for one digest."""
    while (lock := _try_lock(group / MAKING)) is None:  # noqa: ASYNC110 - other processes hold it too
        await asyncio.sleep(MAKING_POLL_SECONDS)
    with lock:
        yield


def _copy_of_any(group: Path, plan: SetupPlan, target: Path) -> PrivateDownloads | None:
    """A copy from a place that is ready; one that is removed meanwhile loses its mark first, and does not count."""
    for ready in sorted(group.glob(f"*/{READY}")):
        outputs = _read_ready(ready.parent)
        if outputs is not None:
            with suppress(OSError):
                copied = _copy_of(ready.parent, plan, outputs, target)
                if ready.exists():
                    return copied
            remove_tree(target)
    return None


def _copy_of(place: Path, plan: SetupPlan, outputs: tuple[Output, ...], target: Path) -> PrivateDownloads:
    built = {name for warmup in plan.warmups for name in warmup.builds}
    return PrivateDownloads(
        copy_downloads(place / HOME, target / HOME),
        {name: copy_downloads(place / CACHES / name, target / CACHES / name) for name in plan.caches},
        plan.digest,
        installs=any(output.path not in built for output in outputs),
    )


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _lock_free_place(group: Path) -> tuple[Path, IO[bytes]]:
    """The first place of a digest that nobody borrows, with its lock held."""
    number = 0
    while True:
        place = group / str(number)
        lock = _try_lock(place)
        if lock is not None:
            return place, lock
        number += 1


def _try_lock(place: Path) -> IO[bytes] | None:
    """The lock of a place; None while another process or task holds it."""
    while True:
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock = place.with_name(f"{place.name}.lock").open("ab")
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        if os.fstat(lock.fileno()).st_nlink:
            return lock
        lock.close()


def _read_ready(place: Path) -> tuple[Output, ...] | None:
    """What an earlier set-up made; None when there was none, or it did not end."""
    try:
        return tuple(Output(path, is_store) for path, is_store in json.loads((place / READY).read_text()))
    except (OSError, ValueError):
        return None


def _clear(place: Path) -> None:
    """Removes what is of one borrower alone."""
    for name in ("tree", OWN):
        remove_tree(place / name)


def _make_anew(place: Path) -> None:
    """Empty folders for an environment."""
    remove_tree(place)
    for name in ("kept", HOME):
        (place / name).mkdir(parents=True)


def _write_files(tree: Path, plan: SetupPlan) -> None:
    """Writes the manifests of a plan into the base's tree."""
    for name, content in plan.manifests.items():
        path = tree / name
        if path.is_symlink() or (path.is_file() and path.read_bytes() == content):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
