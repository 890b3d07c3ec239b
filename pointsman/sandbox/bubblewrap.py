"""Bubblewrap: namespaces of its own for files, processes, network, shared memory and host name."""

import os
import shutil
from pathlib import Path

from pointsman.sandbox.spec import SandboxSpec
from pointsman.sandbox.visibility import Shown, View, mounts

PROGRAM = "bwrap"
PRIVATE_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - a new, empty one inside the sandbox
KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/pressure")
"""The kernel asks who root is, not what it may do: root without powers could name the program for core dumps here."""
ORDINARY_USER = "1000"
"""Inside, root is called so beside services: PostgreSQL refuses to be started by root, whatever root may do."""


def program() -> str | None:
    """Where bubblewrap is installed, if it is."""
    return shutil.which(PROGRAM)


def options(spec: SandboxSpec, view: View) -> list[str]:
    """The options that lay a view out in new namespaces; the deepest path decides, so parents come first."""
    made = ["--unshare-all", *(["--share-net"] if spec.network else []), "--new-session", "--cap-drop", "ALL"]
    made += ["--proc", "/proc", "--dev", "/dev"]
    for place in KERNEL_SETTINGS:
        made += ["--ro-bind-try", place, place]
    made += ["--uid", ORDINARY_USER, "--gid", ORDINARY_USER] if spec.services and os.getuid() == 0 else []
    for folder in PRIVATE_FOLDERS:
        made += ["--tmpfs", folder]
    for path, shown in mounts(view):
        made += _mount(path, shown)
    return [*made, "--remount-ro", "/", "--chdir", str(spec.directory)]


def _mount(path: Path, shown: Shown) -> list[str]:
    if shown is Shown.HIDDEN:
        return ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", os.devnull, str(path)]
    if path.is_symlink() and (path.parent == Path("/") or path.parent == Path("/etc")):
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--bind" if shown is Shown.WRITABLE else "--ro-bind", str(path.resolve()), str(path)]
