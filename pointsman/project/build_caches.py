"""Build caches of proofs: filled once for each set-up, from the base, and shared so that no proof can change them.

Two kinds. Results that are named by their content (Go) lie in a folder that only the warm-up writes; a proof gets a folder
of its own in which every file is a link to the stored one. Builds that a tool changes in place (Cargo) are copied; their
warm-up sees manifests and empty sources, so nothing but dependencies is built and no code of the tree runs.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from pointsman.project.download_copies import size_of
from pointsman.project.outputs import Output
from pointsman.project.setup_plan import SetupPlan, Warmup
from pointsman.project.setup_run import SetupFolders, filled, sandboxed
from pointsman.sandbox import run

LAST_TRIM = "trim.txt"
"""When Go last looked for old files: today, or it would remove the links of a cache that is some days old."""
MAX_BUILD_BYTES = 2 * 1024 * 1024 * 1024


async def warm_up(plan: SetupPlan, warmup: Warmup, folders: SetupFolders, caches: Path) -> None:
    """Runs one warm-up in a tree that is there; one that fails leaves less in the cache, and nothing else.

    It has the variables of a proof, so that what it builds is what a proof looks for; what set-up made is read-only.
    """
    if warmup.skeleton:
        _reduce(folders.tree, warmup)
    own = {name: caches / name for name in plan.caches}
    for folder in (folders.temporary, *own.values()):
        folder.mkdir(parents=True, exist_ok=True)
    spec = sandboxed(plan, folders, warmup.command, plan.seconds)
    variables = {**spec.environment, **filled(plan.proof_variables, folders.home), "HOME": str(folders.temporary)}
    await run(
        replace(
            spec,
            network=False,
            environment={**variables, **{name: str(path) for name, path in own.items()}},
            writable=(folders.tree, folders.temporary, *own.values()),
            readable=(*spec.readable, folders.home),
        )
    )


def take_builds(tree: Path, warmup: Warmup, stored: Path) -> tuple[Output, ...]:
    """Moves the builds of a warm-up out of its tree; what is too large to be copied for every proof stays behind."""
    found = [name for name in warmup.builds if (tree / name).is_dir() and size_of(tree / name) <= MAX_BUILD_BYTES]
    for name in found:
        shutil.move(tree / name, stored / name)
    return tuple(Output(name, is_store=False) for name in found)


def link_caches(names: Sequence[str], caches: Path, own: Path) -> None:
    """Makes a folder of a proof's own for each cache, with links to all files of the stored one."""
    for name in names:
        (own / name).mkdir(parents=True, exist_ok=True)
        if (caches / name).is_dir():
            _link_files(caches / name, own / name)
            _trim_today(own / name)


def _trim_today(folder: Path) -> None:
    if (folder / LAST_TRIM).is_symlink():
        (folder / LAST_TRIM).unlink()
        (folder / LAST_TRIM).write_text(str(int(folder.stat().st_mtime)))


def _link_files(source: Path, target: Path) -> None:
    for entry in os.scandir(source):
        if entry.is_dir(follow_symlinks=False):
            (target / entry.name).mkdir(exist_ok=True)
            _link_files(Path(entry.path), target / entry.name)
        elif not os.path.lexists(target / entry.name):
            (target / entry.name).symlink_to(entry.path)


def _reduce(tree: Path, warmup: Warmup) -> None:
    """Leaves the files of the skeleton as they are, gives sources the text of the stub, and removes all others."""
    for folder, folders, files in os.walk(tree):
        for name in files:
            path = Path(folder) / name
            if path.is_symlink() or not any(
                fnmatchcase(name, pattern) for pattern in (*warmup.skeleton, warmup.stubbed)
            ):
                path.unlink()
            elif fnmatchcase(name, warmup.stubbed):
                path.write_text(warmup.stub)
        for link in [name for name in folders if (Path(folder) / name).is_symlink()]:
            (Path(folder) / link).unlink()
