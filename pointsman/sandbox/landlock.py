"""Landlock: a ruleset of the kernel that confines what a process reads, writes, connects to and signals."""

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pointsman.sandbox.visibility import View

CREATE_RULESET, ADD_RULE = 444, 445
GET_VERSION = 1
RULE_PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR_DEVICE, MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
RIGHTS_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
TCP_BIND_AND_CONNECT = 3
NETWORK_VERSION, SCOPE_VERSION = 4, 6
SOCKETS_AND_SIGNALS = 3
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def version() -> int:
    """The Landlock version of the kernel; 0 where there is none."""
    if not hasattr(os, "pidfd_open"):
        return 0
    return max(0, _call(CREATE_RULESET, None, 0, GET_VERSION))


def ruleset(view: View, *, network: bool) -> int:
    """A ruleset, as a file descriptor, that opens a view and nothing else."""
    known = version()
    handled = max(rights for since, rights in RIGHTS_BY_VERSION.items() if since <= known)
    made = _create(handled, 0 if network else TCP_BIND_AND_CONNECT)
    write = handled & ~(MAKE_CHAR_DEVICE | MAKE_BLOCK_DEVICE | IOCTL_DEVICE)
    for path in parts_without(view.readable, view.hidden):
        _allow(made, path, handled & READ)
    for path in (*view.writable, *map(Path, DEVICES)):
        _allow(made, path, write)
    _allow(made, Path("/proc"), handled & (READ_FILE | READ_DIR))
    return made


def scope() -> int | None:
    """A ruleset that only keeps signals and abstract sockets inside; none where the kernel is older."""
    return _create(0, 0) if version() >= SCOPE_VERSION else None


def parts_without(roots: Sequence[Path], hidden: Sequence[Path]) -> Iterator[Path]:
    """The largest parts of some folders that hold no hidden place."""
    for root in roots:
        if root in hidden:
            continue
        if not any(place.is_relative_to(root) for place in hidden):
            yield root
        elif not root.is_symlink():
            with suppress(OSError):
                yield from parts_without(list(root.iterdir()), hidden)


def _create(handled: int, network: int) -> int:
    known = version()
    attributes = struct.pack("=QQQ", handled, network, SOCKETS_AND_SIGNALS)
    length = 24 if known >= SCOPE_VERSION else 16 if known >= NETWORK_VERSION else 8
    made = _call(CREATE_RULESET, ctypes.c_char_p(attributes), length, 0)
    if made < 0:
        raise OSError(ctypes.get_errno(), "the kernel refuses a Landlock ruleset")
    return made


def _allow(made: int, path: Path, rights: int) -> None:
    """Opens a file or folder; one that is gone needs no rule."""
    with suppress(FileNotFoundError):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            allowed = rights if path.is_dir() else rights & OF_FILES
            _call(ADD_RULE, made, RULE_PATH_BENEATH, ctypes.c_char_p(struct.pack("=Qi", allowed, opened)), 0)
        finally:
            os.close(opened)


def _call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *arguments))
