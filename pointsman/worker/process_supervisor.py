"""Supervises one command, in a process of its own; it is started by file name and needs only the standard library.

Standard input is a lifeline: when it closes, or the time is up, or the command ends, every process that descends from
the command is killed, also those that left its process group or were orphaned. Where the kernel offers Landlock, the
command can write only below the folders it was given, and can signal nobody outside. The report goes to standard error
as one JSON object; the command's own two streams both go to standard output.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

SET_CHILD_SUBREAPER = 36
SET_NO_NEW_PRIVS = 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE_FILE, TRUNCATE = 1 << 1, 1 << 14
MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
REFER = 1 << 13
SCOPED_SOCKETS_AND_SIGNALS = 3
CANNOT_START = 127
KILL_SECONDS = 30.0
LINUX = hasattr(os, "pidfd_open")
"""Elsewhere the process group is all that can be killed, and nothing confines what is written."""
COUNT_SECONDS = 0.25
REAP_SECONDS = 0.005


def main() -> None:
    """Starts the command that the first argument describes, and reports how it ended."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    if LINUX:
        libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _exec(spec, libc)
    ended_by = _await_end(child, spec["seconds"], spec["processes"])
    strays = _descendants(os.getpid()) - {child}
    status = _kill_all(child)
    report = {"exit_code": os.waitstatus_to_exitcode(status), "ended_by": ended_by, "strays": len(strays)}
    sys.stderr.write(json.dumps(report))


def _await_end(child: int, seconds: float, processes: int) -> str:
    watched = [0, os.pidfd_open(child)] if LINUX else [0]
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return "time_limit"
        ready, _, _ = select.select(watched, [], [], min(left, COUNT_SECONDS if LINUX else REAP_SECONDS))
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return "itself"
        if 0 in ready and not os.read(0, 1024):
            return "stopped"
        if not ready and len(_descendants(os.getpid())) > processes:
            return "process_limit"


def _exec(spec: dict[str, Any], libc: Any) -> None:
    try:
        os.setsid()
        os.dup2(1, 2)
        os.dup2(os.open(spec["stdin"], os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if LINUX:
            resource.setrlimit(resource.RLIMIT_NPROC, (_threads_of_user() + spec["processes"],) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (spec["file_bytes"], spec["file_bytes"]))
        os.chdir(spec["directory"])
        if spec["writable"] and LINUX:
            _confine(spec["writable"], libc)
        os.execvpe(spec["command"][0], spec["command"], spec["environment"])  # noqa: S606
    except OSError as error:
        os.write(1, f"cannot start {spec['command'][0]!r}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_START)


def _threads_of_user() -> int:
    """RLIMIT_NPROC counts all threads of the user, so those that run already are added to the limit."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == os.getuid():
                count += sum(1 for _ in (entry / "task").iterdir())
    return count


def confines() -> bool:
    """Whether the kernel can confine a command to its writable folders (Landlock)."""
    return LINUX and int(ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, 1)) >= 1


def _confine(writable: list[str], libc: Any) -> None:
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1:
        return
    handled = WRITE_FILE | MAKE_AND_REMOVE | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    attributes = struct.pack("=QQQ", handled, 0, SCOPED_SOCKETS_AND_SIGNALS if version >= 6 else 0)
    length = 24 if version >= 6 else 8
    ruleset = libc.syscall(CREATE_RULESET, ctypes.c_char_p(attributes), length, 0)
    for path in writable:
        with contextlib.suppress(FileNotFoundError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = handled if Path(path).is_dir() else handled & (WRITE_FILE | TRUNCATE)
            libc.syscall(ADD_RULE, ruleset, 1, ctypes.c_char_p(struct.pack("=Qi", allowed, opened)), 0)
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(RESTRICT_SELF, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "confinement was refused")


def _kill_all(child: int) -> int:
    """Kills all descendants until none is left; returns the command's own status.

    By process group, because a signal to a group also reaches what its members fork in that moment.
    """
    status, deadline = 0, time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        for group in {_group(process) for process in (child, *_descendants(os.getpid()))} - {0, os.getpgrp()}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        try:
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                status = reaped[1] if reaped[0] == child else status
        except ChildProcessError:
            return status
        select.select([], [], [], REAP_SECONDS)
    return status


def _group(process: int) -> int:
    try:
        return os.getpgid(process)
    except ProcessLookupError:
        return 0


def _descendants(root: int) -> set[int]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents.setdefault(int(parent), []).append(int(entry.name))
    found: set[int] = set()
    left = [root]
    while left:
        children = parents.get(left.pop(), [])
        found.update(children)
        left.extend(children)
    return found


if __name__ == "__main__":
    main()
