"""Leases blocks of ports, so that servers of assignments on one machine never meet, whichever process started them."""

import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pointsman.project.model import WorkspaceSection
from pointsman.sandbox import Service

FIRST_PORT, BLOCK, BLOCKS = 20_000, 80, 152
"""Below the ports that Linux gives out by itself, from 32768 on."""
LOCALHOST = "127.0.0.1"
PRIVATE, OF_OTHERS = 0o700, 0o077


class NoPorts(Exception):
    """Every block is leased, or has a port that somebody else listens on."""


@contextmanager
def lease_ports(count: int, folder: Path | None = None) -> Iterator[tuple[int, ...]]:
    """A block's first `count` ports; a lock of the system, held while the block lasts, ends with the process."""
    if not count:
        yield ()
        return
    place = _own_folder(folder or Path(tempfile.gettempdir()) / f"pointsman-ports-{os.getuid()}")
    for number in range(BLOCKS):
        ports = tuple(range(FIRST_PORT + number * BLOCK, FIRST_PORT + number * BLOCK + count))
        with _lock_file(place / str(ports[0])) as lock:
            if _is_locked(lock.fileno()) and all(map(_is_free, ports)):
                yield ports
                return
    raise NoPorts(
        f"all {BLOCKS} blocks of ports are leased or in use ({place}); end other assignments, or lower [workspace] ports"
    )


def _own_folder(place: Path) -> Path:
    """The folder of locks; in a temporary folder of all users, anybody could have made one of that name before."""
    place.mkdir(mode=PRIVATE, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & OF_OTHERS:
        raise NoPorts(f"{place} is not a folder of this user alone; remove it, or set TMPDIR to a private folder")
    return place


def _lock_file(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600), "rb")


def _is_locked(lock: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _is_free(port: int) -> bool:
    """Whether nobody listens on it, who has no lease of ours."""
    with socket.socket() as probe, suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((LOCALHOST, port))
        return True
    return False


@dataclass(frozen=True, slots=True)
class Leased:
    """What an assignment has for itself: variables that name its ports, and its services."""

    variables: Mapping[str, str]
    services: tuple[Service, ...] = ()


@contextmanager
def lease_services(workspace: WorkspaceSection) -> Iterator[Leased]:
    """The ports that a project file asks for, and one more for each of its services."""
    with lease_ports(workspace.ports + len(workspace.services)) as ports:
        own, theirs = ports[: workspace.ports], ports[workspace.ports :]
        services = tuple(
            Service(name, None if command is None else command.arguments, port)
            for (name, command), port in zip(workspace.services.items(), theirs, strict=True)
        )
        yield Leased(port_variables(own), services)


def port_variables(ports: Sequence[int]) -> dict[str, str]:
    """`POINTSMAN_PORT_0` and so on."""
    return {f"POINTSMAN_PORT_{number}": str(port) for number, port in enumerate(ports)}
