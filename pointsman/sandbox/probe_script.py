"""Runs inside a sandbox and tries what an untrusted command would; needs only the standard library.

The first argument is a JSON object that names the targets; the answer is one JSON object: the attempts that succeeded.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

CONNECT_SECONDS = 5.0


def main() -> None:
    """Tries every target and prints the names of those that were reached."""
    targets: dict[str, str] = json.loads(sys.argv[1])
    reached = [name for name, attempt in _ATTEMPTS.items() if name in targets and _works(attempt, targets[name])]
    sys.stdout.write(json.dumps(reached))


def _works(attempt: Callable[[str], object], target: str) -> bool:
    try:
        attempt(target)
    except OSError:
        return False
    return True


def _read(path: str) -> None:
    Path(path).read_bytes()


def _open(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def _write(path: str) -> None:
    Path(path).write_text("written from inside the sandbox")


def _connect_path(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(CONNECT_SECONDS)
        client.connect(path)


def _connect_abstract(name: str) -> None:
    _connect_path("\0" + name)


def _connect_loopback(port: str) -> None:
    with socket.create_connection(("127.0.0.1", int(port)), CONNECT_SECONDS):
        pass


def _signal(process: str) -> None:
    if int(process) in (os.getpid(), os.getppid()):
        raise OSError("inside the sandbox that number is ours")
    os.kill(int(process), signal.SIGUSR1)


def _slow_down(process: str) -> None:
    if int(process) in (os.getpid(), os.getppid()):
        raise OSError("inside the sandbox that number is ours")
    os.setpriority(os.PRIO_PROCESS, int(process), os.getpriority(os.PRIO_PROCESS, int(process)))


def _find_mark(target: str) -> None:
    path, _, mark = target.rpartition(":")
    if mark.encode() not in Path(path).read_bytes():
        raise OSError("inside the sandbox that number is another process")


def _chmod(path: str) -> None:
    Path(path).chmod(0o600)


_ATTEMPTS: dict[str, Callable[[str], object]] = {
    "credential": _read,
    "clone": _read,
    "assignment": _read,
    "write": _write,
    "home": _open,
    "data": _open,
    "socket": _connect_path,
    "priority": _slow_down,
    "signal": _signal,
    "environment": _find_mark,
    "loopback": _connect_loopback,
    "processes": _find_mark,
    "abstract": _connect_abstract,
    "shared_memory": _read,
    "chmod": _chmod,
}


if __name__ == "__main__":
    main()
