"""Bubblewrap: namespaces of its own for files, processes, network, shared memory and host name."""

import os
import shutil
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path

from pointsman.sandbox.spec import SandboxSpec
from pointsman.sandbox.visibility import View

PROGRAM = "bwrap"
PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - a new, empty one inside the sandbox


class _Kind(Enum):
    """How a path is shown."""

    READABLE = auto()
    WRITABLE = auto()
    HIDDEN = auto()


def program() -> str | None:
    """Where bubblewrap is installed, if it is."""
    return shutil.which(PROGRAM)


def options(spec: SandboxSpec, view: View) -> list[str]:
    """The options that lay a view out in new namespaces; the deepest path decides, so parents come first."""
    made = ["--unshare-all", *(["--share-net"] if spec.network else []), "--new-session", "--cap-drop", "ALL"]
    made += ["--proc", "/proc", "--dev", "/dev"]
    for folder in PRIVATE_FOLDERS:
        made += ["--tmpfs", folder]
    for _, _, option in sorted(_mounts(view)):
        made += option
    return [*made, "--remount-ro", "/", "--chdir", str(spec.directory)]


def _mounts(view: View) -> Iterator[tuple[int, str, list[str]]]:
    """The mounts with their depth; what its nearest parent shows in the same way already needs none."""
    kinds = dict.fromkeys(view.readable, _Kind.READABLE)
    kinds |= {path: _Kind.HIDDEN for path in view.hidden if path == path.resolve()}
    kinds |= dict.fromkeys(view.writable, _Kind.WRITABLE)
    for path, kind in kinds.items():
        around = next((kinds[parent] for parent in path.parents if parent in kinds), _Kind.HIDDEN)
        if kind is not around:
            yield len(path.parts), str(path), _mount(path, kind)


def _mount(path: Path, kind: _Kind) -> list[str]:
    if kind is _Kind.HIDDEN:
        return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
    if path.is_symlink() and (path.parent == Path("/") or path.parent == Path("/etc")):
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--bind" if kind is _Kind.WRITABLE else "--ro-bind", str(path.resolve()), str(path)]
