"""Supervises one command, in a process of its own; it is started by file name and needs only the standard library.

Standard input brings the order as one line of JSON and is a lifeline from then on: when it closes, or the time is up, or
the command ends, every process that descends from the command is killed, also those that left its process group or were
orphaned. What confines the command was prepared by the worker: a Landlock ruleset and a system call filter that are put
in force here, or the options of bubblewrap, each as a file descriptor. The report goes to standard error as one JSON
object; the command's own two streams both go to standard output.
"""

import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SET_SECCOMP, DROP_BOUNDING_CAPABILITY, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 22, 24, 36, 38
SECCOMP_FILTER = 2
RESTRICT_SELF = 446
SET_CAPABILITIES = {"x86_64": 126, "aarch64": 91}
CAPABILITIES_VERSION_3 = 0x20080522
KEYRING_CALL = {"x86_64": 250, "aarch64": 219}
JOIN_NEW_KEYRING = 1
CANNOT_START = 127
KILL_SECONDS = 30.0
LINUX = hasattr(os, "pidfd_open")
"""Elsewhere the process group is all that can be killed, and nothing confines what is written."""
COUNT_SECONDS = 0.25
STOP_CLOCK, START_CLOCK = b"-", b"+"
REAP_SECONDS = 0.005
READ_BYTES = 64 * 1024
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
NAME_SERVER = ("127.0.0.1", 53)
ANSWER_REFUSED = b"\x81\x85"
HEADER_BYTES, MESSAGE_BYTES, MAX_NAMES, MAX_LABELS = 12, 512, 20, 20
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,255}")
COUNTERS = {"net/snmp": "OutNoRoutes", "net/snmp6": "Ip6OutNoRoutes"}


def main() -> None:
    """Starts the command that standard input describes, and reports how it ended."""
    order = _read_order()
    libc = ctypes.CDLL(None, use_errno=True)
    if LINUX:
        libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _exec(order, libc)
    watch = _watch_network(order)
    ended_by = _await_end(child, order, watch)
    strays = _strays(child, order["own_processes"], ended_by)
    status = _kill_all(child)
    report = {"exit_code": os.waitstatus_to_exitcode(status), "ended_by": ended_by, "strays": strays}
    report["denied"] = watch.report() if watch else {"connects": 0, "names": []}
    sys.stderr.write(json.dumps(report))


class NetworkWatch:
    """The network of one sandbox, from before its command starts until after it has ended.

    The kernel counts what had no way out. Names are seen where programs ask for them: the sandbox has no name server
    but this one, which answers nothing and keeps the questions.
    """

    def __init__(self, info: int, release: int) -> None:
        """Waits until bubblewrap has made the sandbox, looks into its network, then lets the command start."""
        self.names: dict[str, None] = {}
        self._counters: list[tuple[int, str]] = []
        self.server: socket.socket | None = None
        with contextlib.suppress(OSError, ValueError, KeyError):
            process = int(json.loads(_read_all(info))["child-pid"])
            self._counters = [
                (os.open(f"/proc/{process}/{file}", os.O_RDONLY), name) for file, name in COUNTERS.items()
            ]
            self.server = _name_server(process)
        with contextlib.suppress(OSError):
            os.write(release, b"x")
            os.close(release)

    def answer(self) -> None:
        """Keeps the name that is asked for, and refuses to answer it."""
        assert self.server is not None
        with contextlib.suppress(OSError, UnicodeDecodeError, IndexError):
            asked, sender = self.server.recvfrom(MESSAGE_BYTES, socket.MSG_DONTWAIT)
            name = ".".join(_labels(asked))
            if _NAME.fullmatch(name) and len(self.names) < MAX_NAMES:
                self.names[name] = None
            self.server.sendto(asked[:2] + ANSWER_REFUSED + asked[4:6] + bytes(6) + asked[HEADER_BYTES:], sender)

    def report(self) -> dict[str, object]:
        """How many connections and datagrams had no way out, and which names were asked for."""
        return {"connects": sum(_count(opened, name) for opened, name in self._counters), "names": list(self.names)}


def _read_all(opened: int) -> bytes:
    with os.fdopen(opened, "rb") as file:
        return file.read()


def _name_server(process: int) -> socket.socket | None:
    """A socket in the network of another process, made by a child that enters it; none where that is not allowed."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _enter(process)
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            made.bind(NAME_SERVER)
            socket.send_fds(theirs, [b"x"], [made.fileno()])
        os._exit(0)
    theirs.close()
    with ours:
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(child, 0)
    return socket.socket(fileno=descriptors[0]) if descriptors else None


def _enter(process: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    user, network = (os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY) for name in ("user", "net"))
    libc.setns(user, NEW_USER)
    if libc.setns(network, NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "the network cannot be entered")


def _labels(asked: bytes) -> Iterator[str]:
    """The words of the first name in a question."""
    place = HEADER_BYTES
    for _ in range(MAX_LABELS):
        length = asked[place]
        if length == 0 or length > 63:
            return
        yield asked[place + 1 : place + 1 + length].decode("ascii")
        place += 1 + length


def _count(opened: int, name: str) -> int:
    """One counter: in a table with a line of names above a line of values, or as one line for each."""
    with contextlib.suppress(OSError, ValueError):
        lines = [line.split() for line in os.pread(opened, 65536, 0).decode().splitlines()]
        for names, values in zip(lines, [*lines[1:], []], strict=True):
            if names[0] == name:
                return int(names[1])
            if name in names:
                return int(values[names.index(name)])
    return 0


def _watch_network(order: dict[str, Any]) -> NetworkWatch | None:
    """The watch over the sandbox's own network; the ends of its pipes that are bubblewrap's are closed here."""
    if not order["watched"]:
        return None
    info, release, written, blocked = order["watched"]
    os.close(written)
    os.close(blocked)
    return NetworkWatch(info, release)


def _strays(child: int, own_processes: int, ended_by: str) -> int:
    """How many processes are left that are neither the command nor bubblewrap's own."""
    expected = own_processes if ended_by != "itself" else own_processes // 2
    return max(0, len(_descendants(os.getpid()) - {child}) - expected)


def _read_order() -> dict[str, Any]:
    """Reads up to the end of the first line, and nothing behind it."""
    text = b""
    while not text.endswith(b"\n"):
        chunk = os.read(0, READ_BYTES)
        if not chunk:
            os._exit(CANNOT_START)
        text += chunk
    order: dict[str, Any] = json.loads(text)
    return order


class TimeLeft:
    """The seconds that a command has left; they stand still while it waits for a person."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._stopped_at: float | None = None

    @property
    def left(self) -> float:
        """The seconds that are left now."""
        return self._deadline - (time.monotonic() if self._stopped_at is None else self._stopped_at)

    def hear(self, said: bytes) -> bool:
        """Stops or starts as the worker says; false when it is gone."""
        now = time.monotonic()
        if said.endswith(STOP_CLOCK) and self._stopped_at is None:
            self._stopped_at = now
        elif said.endswith(START_CLOCK) and self._stopped_at is not None:
            self._deadline, self._stopped_at = self._deadline + now - self._stopped_at, None
        return bool(said)


def _await_end(child: int, order: dict[str, Any], watch: NetworkWatch | None) -> str:
    watched: list[Any] = [0, os.pidfd_open(child)] if LINUX else [0]
    watched += [watch.server] if watch and watch.server else []
    clock = TimeLeft(order["seconds"])
    processes = order["processes"] + order["own_processes"]
    while True:
        if clock.left <= 0:
            return "time_limit"
        ready, _, _ = select.select(watched, [], [], min(clock.left, COUNT_SECONDS if LINUX else REAP_SECONDS))
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return "itself"
        if 0 in ready and not clock.hear(os.read(0, 1024)):
            return "stopped"
        if watch and watch.server in ready:
            watch.answer()
        if not ready and len(_descendants(os.getpid())) > processes:
            return "process_limit"


def _exec(order: dict[str, Any], libc: Any) -> None:
    try:
        os.setsid()
        _leave_keyring(libc)
        os.dup2(1, 2)
        os.dup2(os.open(order["stdin"], os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if LINUX and not order["engine"]:
            resource.setrlimit(resource.RLIMIT_NPROC, (_threads_of_user() + order["processes"],) * 2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_bytes"], order["file_bytes"]))
        os.chdir(order["directory"])
        for descriptor in order["watched"][:2]:
            os.close(descriptor)
        for descriptor in order["inherited"]:
            os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's own signature
        if order["ruleset"] is not None:
            os.set_inheritable(order["ruleset"], False)  # noqa: FBT003 - as above
            _confine(order, libc)
        os.execvpe(order["command"][0], order["command"], order["environment"])  # noqa: S606
    except OSError as error:
        os.write(1, f"cannot start {order['program']!r}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_START)


def _leave_keyring(libc: Any) -> None:
    """Starts with an empty session keyring: keys of the worker's session are the user's."""
    number = KEYRING_CALL.get(os.uname().machine)
    if LINUX and number is not None:
        libc.syscall(number, JOIN_NEW_KEYRING, None)


def _confine(order: dict[str, Any], libc: Any) -> None:
    """Puts ruleset and filter in force, for this process and all that it starts."""
    if order["drop_capabilities"]:
        _drop_capabilities(libc)
    libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.syscall(RESTRICT_SELF, order["ruleset"], 0) != 0:
        raise OSError(ctypes.get_errno(), "confinement was refused")
    if order["filter"]:
        instructions = ctypes.create_string_buffer(bytes.fromhex(order["filter"]))
        program = struct.pack("HxxxxxxP", (len(instructions) - 1) // 8, ctypes.addressof(instructions))
        if libc.prctl(SET_SECCOMP, SECCOMP_FILTER, ctypes.c_char_p(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the system call filter was refused")


def _drop_capabilities(libc: Any) -> None:
    """Root keeps its user id and loses its powers: devices, other users' files, modules of the kernel."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in range(last + 1):
        libc.prctl(DROP_BOUNDING_CAPABILITY, capability, 0, 0, 0)
    header = struct.pack("=Ii", CAPABILITIES_VERSION_3, 0)
    number = SET_CAPABILITIES.get(os.uname().machine)
    if number is None or libc.syscall(number, ctypes.c_char_p(header), ctypes.c_char_p(bytes(24))) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities of root could not be dropped")


def _threads_of_user() -> int:
    """RLIMIT_NPROC counts all threads of the user, so those that run already are added to the limit."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if entry.stat().st_uid == os.getuid():
                count += sum(1 for _ in (entry / "task").iterdir())
    return count


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
