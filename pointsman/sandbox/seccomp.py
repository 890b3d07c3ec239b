"""A system call filter for what Landlock does not cover: sockets by path, other network protocols, terminals."""

import platform
import socket
import struct
from dataclasses import dataclass

LOAD, JUMP_IF_EQUAL, JUMP_IF_MASK, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, DENY, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
NUMBER_OFFSET, ARCHITECTURE_OFFSET, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
X32_CALLS = 0x40000000
IO_URING_SETUP = 425
TERMINAL_INPUT, CONSOLE_INPUT = 0x5412, 0x541C
"""TIOCSTI types into a terminal, TIOCLINUX into the console."""


@dataclass(frozen=True, slots=True)
class _Calls:
    """Numbers of one processor architecture."""

    architecture: int
    socket: int
    ioctl: int


_CALLS = {"x86_64": _Calls(0xC000003E, 41, 16), "aarch64": _Calls(0xC00000B7, 198, 29)}


def is_supported() -> bool:
    """Whether the numbers of this processor's system calls are known."""
    return platform.machine() in _CALLS


def socket_filter(*, network: bool) -> bytes:
    """A filter that refuses sockets by path, typing into terminals, and without network every socket."""
    calls = _CALLS[platform.machine()]
    allowed = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK) if network else ()
    families = [_instruction(JUMP_IF_EQUAL, family, len(allowed) - index, 0) for index, family in enumerate(allowed)]
    sockets = [_load(FIRST_ARGUMENT), *families, _deny(EAFNOSUPPORT), _instruction(RETURN, ALLOW)]
    terminals = [
        _load(SECOND_ARGUMENT),
        _instruction(JUMP_IF_EQUAL, TERMINAL_INPUT, 1, 0),
        _instruction(JUMP_IF_EQUAL, CONSOLE_INPUT, 0, 1),
        _deny(EPERM),
        _instruction(RETURN, ALLOW),
    ]
    return b"".join(
        [
            _load(ARCHITECTURE_OFFSET),
            _instruction(JUMP_IF_EQUAL, calls.architecture, 1, 0),
            _instruction(RETURN, KILL),
            _load(NUMBER_OFFSET),
            *_refuse_x32(),
            _instruction(JUMP_IF_EQUAL, IO_URING_SETUP, 0, 1),
            _deny(ENOSYS),
            _instruction(JUMP_IF_EQUAL, calls.socket, 0, len(sockets)),
            *sockets,
            _instruction(JUMP_IF_EQUAL, calls.ioctl, 0, len(terminals)),
            *terminals,
            _instruction(RETURN, ALLOW),
        ]
    )


def _refuse_x32() -> list[bytes]:
    """The x32 variant of every call has a number of its own, which the rest of the filter would not know."""
    if platform.machine() != "x86_64":
        return []
    return [_instruction(JUMP_IF_MASK, X32_CALLS, 0, 1), _deny(ENOSYS)]


def _load(offset: int) -> bytes:
    return _instruction(LOAD, offset)


def _deny(error: int) -> bytes:
    return _instruction(RETURN, DENY | error)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
