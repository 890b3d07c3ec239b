"""System call filters: for what neither Landlock nor namespaces cover."""

import platform
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

LOAD, JUMP_IF_EQUAL, JUMP_IF_MASK, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, DENY, KILL = 0x7FFF0000, 0x00050000, 0x80000000
EPERM, ENOSYS, EOPNOTSUPP, EAFNOSUPPORT = 1, 38, 95, 97
NUMBER_OFFSET, ARCHITECTURE_OFFSET, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
X32_CALLS = 0x40000000
IO_URING_SETUP = 425
TERMINAL_INPUT, CONSOLE_INPUT = 0x5412, 0x541C
"""TIOCSTI types into a terminal, TIOCLINUX into the console."""
OF_A_PROCESS = (0, 1)
"""PRIO_PROCESS of setpriority, IOPRIO_WHO_PROCESS of ioprio_set."""
INTERNET = (socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_NETLINK", 16))


@dataclass(frozen=True, slots=True)
class _Calls:
    """Numbers of one processor architecture."""

    architecture: int
    socket: int
    ioctl: int
    set_limits: int
    scheduling: tuple[int, ...]
    """sched_setparam, sched_setscheduler, sched_setaffinity, sched_setattr: the process is the first argument."""
    priorities: tuple[int, ...]
    """setpriority, ioprio_set: the first argument says of what, the second of which."""
    keys: tuple[int, ...]
    """add_key, request_key, keyctl."""
    shared: tuple[int, ...]
    """shmget, semget, msgget."""
    attributes: tuple[int, ...]
    """setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr, setxattrat, removexattrat."""


_CALLS = {
    "x86_64": _Calls(0xC000003E, 41, 16, 302, (142, 144, 203, 314), (141, 251), (248, 249, 250), (29, 64, 68),
                     (188, 189, 190, 197, 198, 199, 463, 466)),
    "aarch64": _Calls(0xC00000B7, 198, 29, 261, (118, 119, 122, 274), (140, 30), (217, 218, 219), (194, 190, 186),
                      (5, 6, 7, 14, 15, 16, 463, 466)),
}  # fmt: skip


def is_supported() -> bool:
    """Whether the numbers of this processor's system calls are known."""
    return platform.machine() in _CALLS


def landlock_filter(*, network: bool, shared_memory: bool = False) -> bytes:
    """Beside Landlock: no sockets by path, without network none at all, and no objects that stand in no folder.

    Priority and processors can be set of the calling thread only: all processes of the machine can be named. Attributes
    of files cannot be set: Landlock has no rule for them, and one is a list of who may read the file.
    """
    calls = _CALLS[platform.machine()]
    own = [part for number in calls.scheduling for part in _by_argument(number, FIRST_ARGUMENT, (0,), EPERM)]
    for number, kind in zip(calls.priorities, OF_A_PROCESS, strict=True):
        own += _only_own_priority(number, kind)
    for number in calls.attributes:
        own += _refused(number, EOPNOTSUPP)
    return _filter(INTERNET if network else (), () if shared_memory else calls.shared, own)


def namespaces_filter() -> bytes:
    """Beside namespaces: no sockets of the machine, which has one network of them, such as those to its hypervisor."""
    return _filter((socket.AF_UNIX, *INTERNET), (), ())


def _filter(families: Sequence[int], refused: Sequence[int], further: Sequence[bytes]) -> bytes:
    """Lets sockets of some families through; refuses calls, keys of the kernel, typing, and limits of other processes."""
    calls = _CALLS[platform.machine()]
    missing = [part for number in (IO_URING_SETUP, *calls.keys, *refused) for part in _missing(number)]
    return b"".join(
        [
            _load(ARCHITECTURE_OFFSET),
            _instruction(JUMP_IF_EQUAL, calls.architecture, 1, 0),
            _instruction(RETURN, KILL),
            _load(NUMBER_OFFSET),
            *_refuse_x32(),
            *missing,
            *_by_argument(calls.socket, FIRST_ARGUMENT, families, EAFNOSUPPORT),
            *_by_argument(calls.set_limits, FIRST_ARGUMENT, (0,), EPERM),
            *further,
            *_refuse_typing(calls.ioctl),
            _instruction(RETURN, ALLOW),
        ]
    )


def _missing(number: int) -> list[bytes]:
    """A call that seems not to be there."""
    return _refused(number, ENOSYS)


def _refused(number: int, error: int) -> list[bytes]:
    return [_instruction(JUMP_IF_EQUAL, number, 0, 1), _deny(error)]


def _by_argument(number: int, argument: int, allowed: Sequence[int], error: int) -> list[bytes]:
    """A call that is allowed with some values of an argument only."""
    values = [_instruction(JUMP_IF_EQUAL, value, len(allowed) - index, 0) for index, value in enumerate(allowed)]
    checks = [_load(argument), *values, _deny(error), _instruction(RETURN, ALLOW)]
    return [_instruction(JUMP_IF_EQUAL, number, 0, len(checks)), *checks]


def _only_own_priority(number: int, kind: int) -> list[bytes]:
    """A call that is allowed for one kind of target only, and there for the caller itself."""
    checks = [
        _load(FIRST_ARGUMENT),
        _instruction(JUMP_IF_EQUAL, kind, 0, 2),
        _load(SECOND_ARGUMENT),
        _instruction(JUMP_IF_EQUAL, 0, 1, 0),
        _deny(EPERM),
        _instruction(RETURN, ALLOW),
    ]
    return [_instruction(JUMP_IF_EQUAL, number, 0, len(checks)), *checks]


def _refuse_typing(number: int) -> list[bytes]:
    checks = [
        _load(SECOND_ARGUMENT),
        _instruction(JUMP_IF_EQUAL, TERMINAL_INPUT, 1, 0),
        _instruction(JUMP_IF_EQUAL, CONSOLE_INPUT, 0, 1),
        _deny(EPERM),
        _instruction(RETURN, ALLOW),
    ]
    return [_instruction(JUMP_IF_EQUAL, number, 0, len(checks)), *checks]


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
