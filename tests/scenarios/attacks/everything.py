"""A contained command that tries everything: reads its targets from `targets.json`, prints what it reached as JSON.

It needs only the standard library. What it breaks it leaves broken: the test looks at the real things afterwards.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

PTRACE_ATTACH, PTRACE_DETACH = 16, 17
TYPE_INTO_TERMINAL = 0x5412
CONNECT_SECONDS = 3.0
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine, -1)
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}.get(os.uname().machine, -1)
KEYCTL_SEARCH, PIDFD_GETFD = 10, 438
WAIT_FOR_ALL = 0x40000000
NEW_USER_AND_MOUNTS = 0x10000000 | 0x00020000
REMOUNT_BIND = 0x20 | 0x1000
_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "refused")


def read(path: str) -> None:
    Path(path).read_bytes()


def list_folder(path: str) -> None:
    if not list(Path(path).iterdir()):
        raise OSError("empty")


def overwrite(path: str) -> None:
    Path(path).write_text("overwritten")


def make(path: str) -> None:
    Path(path, "made").write_text("made")


def remove(path: str) -> None:
    Path(path).unlink()


def hard_link(path: str) -> None:
    os.link(path, "linked")
    Path("linked").read_bytes()


def chmod(path: str) -> None:
    Path(path).chmod(0o666)


def utime(path: str) -> None:
    os.utime(path, (1, 1))


def set_attribute(path: str) -> None:
    os.setxattr(path, "user.mark", b"1")


def connect_path(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(CONNECT_SECONDS)
        client.connect(path)


def connect_abstract(name: str) -> None:
    connect_path("\0" + name)


def connect_tcp(port: str) -> None:
    with socket.create_connection(("127.0.0.1", int(port)), CONNECT_SECONDS):
        pass


def send_datagram(port: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"reached", ("127.0.0.1", int(port)))


def find_mark(target: str) -> None:
    path, _, mark = target.rpartition(":")
    if mark.encode() not in Path(path).read_bytes():
        raise OSError("not there")


def read_memory(target: str) -> None:
    """The mark stands at an address that the process told its starter."""
    process, address, mark = target.split(":")
    with Path(f"/proc/{process}/mem").open("rb") as memory:
        memory.seek(int(address))
        if memory.read(len(mark)) != mark.encode():
            raise OSError("not there")


def trace(process: str) -> None:
    _checked(_LIBC.ptrace(PTRACE_ATTACH, int(process), None, None))
    os.waitpid(int(process), WAIT_FOR_ALL)
    _LIBC.ptrace(PTRACE_DETACH, int(process), None, None)


def through_root(target: str) -> None:
    process, _, path = target.partition(":")
    Path(f"/proc/{process}/root{path}").read_bytes()


def write_terminal(path: str) -> None:
    opened = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    os.write(opened, b"reached")


def type_into_terminal(path: str) -> None:
    opened = os.open(path, os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(opened, TYPE_INTO_TERMINAL, b"x")


def git(target: str) -> None:
    done = subprocess.run(["git", *target.split()], capture_output=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.decode())


def mount(_target: str) -> None:
    Path("mounted").mkdir()
    _checked(_LIBC.mount(b"none", b"mounted", b"tmpfs", 0, None))
    _LIBC.umount2(b"mounted", 2)


def remount(_target: str) -> None:
    """In a mount namespace of its own, where the kernel gives it one."""
    if not _writable_again():
        _LIBC.unshare(NEW_USER_AND_MOUNTS)
        if not _writable_again():
            raise OSError("refused")


def _writable_again() -> bool:
    return any(_LIBC.mount(None, place, None, REMOUNT_BIND, None) == 0 for place in (b"/usr", b"/"))


def make_device(_target: str) -> None:
    os.mknod("device", 0o600 | 0o060000, os.makedev(254, 0))


def raise_priority(_target: str) -> None:
    os.nice(-1)


def inherit(_target: str) -> None:
    """A descriptor besides the three streams, and the one that lists them."""
    if not {entry.name for entry in Path("/proc/self/fd").iterdir()} - {"0", "1", "2", "3"}:
        raise OSError("none")


def open_for_writing(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY))


def attach_shared_memory(key: str) -> None:
    found = _LIBC.shmget(int(key), 0, 0)
    if found < 0:
        raise OSError(ctypes.get_errno(), "refused")


def open_queue(name: str) -> None:
    if _LIBC.mq_open(name.encode(), os.O_RDONLY) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def find_key(target: str) -> None:
    """A key of the worker's session, or of its user."""
    keyring, _, name = target.partition(":")
    if _LIBC.syscall(KEYCTL, KEYCTL_SEARCH, int(keyring), b"user", name.encode(), 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def open_socket(family: str) -> None:
    socket.socket(int(family)).close()


def limit_worker(process: str) -> None:
    resource.prlimit(int(process), resource.RLIMIT_CORE, (0, 0))


def slow_down(process: str) -> None:
    os.setpriority(os.PRIO_PROCESS, int(process), os.getpriority(os.PRIO_PROCESS, int(process)) + 1)


def pin(process: str) -> None:
    os.sched_setaffinity(int(process), os.sched_getaffinity(int(process)))


def reschedule(process: str) -> None:
    os.sched_setscheduler(int(process), os.SCHED_OTHER, os.sched_param(0))


def put_off_disk(process: str) -> None:
    _checked(_LIBC.syscall(IOPRIO_SET, 1, int(process), (2 << 13) | 7))


def read_across(target: str) -> None:
    """The mark in the memory of another process, by the call that needs no file."""
    process, address, mark = target.split(":")
    kept = ctypes.create_string_buffer(len(mark))
    ours = struct.pack("PN", ctypes.addressof(kept), len(mark))
    theirs = struct.pack("PN", int(address), len(mark))
    if _LIBC.process_vm_readv(int(process), ours, 1, theirs, 1, 0) != len(mark) or kept.raw != mark.encode():
        raise OSError(ctypes.get_errno(), "refused")


def take_descriptor(process: str) -> None:
    """The worker's standard output, as a descriptor of our own."""
    opened = os.pidfd_open(int(process))
    if _LIBC.syscall(PIDFD_GETFD, opened, 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def join_namespace(target: str) -> None:
    opened = os.open(target, os.O_RDONLY)
    _checked(_LIBC.setns(opened, 0))


def uncover(path: str) -> None:
    """In a mount namespace of its own, take away what lies over a hidden file."""
    _checked(_LIBC.unshare(NEW_USER_AND_MOUNTS))
    _LIBC.umount2(path.encode(), 2)
    if not Path(path).read_bytes():
        raise OSError("empty")


def find_variable(mark: str) -> None:
    if not any(mark in value for value in os.environ.values()):
        raise OSError("not there")


def kill(process: str) -> None:
    if int(process) in (os.getpid(), os.getppid()):
        raise OSError("inside, that number is ours")
    os.kill(int(process), signal.SIGKILL)


ATTEMPTS: dict[str, Callable[[str], None]] = {
    "read": read,
    "list_folder": list_folder,
    "overwrite": overwrite,
    "make": make,
    "remove": remove,
    "hard_link": hard_link,
    "chmod": chmod,
    "utime": utime,
    "set_attribute": set_attribute,
    "connect_path": connect_path,
    "connect_abstract": connect_abstract,
    "connect_tcp": connect_tcp,
    "send_datagram": send_datagram,
    "find_mark": find_mark,
    "read_memory": read_memory,
    "trace": trace,
    "through_root": through_root,
    "write_terminal": write_terminal,
    "type_into_terminal": type_into_terminal,
    "git": git,
    "mount": mount,
    "remount": remount,
    "make_device": make_device,
    "raise_priority": raise_priority,
    "inherit": inherit,
    "open_for_writing": open_for_writing,
    "attach_shared_memory": attach_shared_memory,
    "open_queue": open_queue,
    "find_key": find_key,
    "open_socket": open_socket,
    "limit_worker": limit_worker,
    "slow_down": slow_down,
    "pin": pin,
    "reschedule": reschedule,
    "put_off_disk": put_off_disk,
    "read_across": read_across,
    "take_descriptor": take_descriptor,
    "join_namespace": join_namespace,
    "uncover": uncover,
    "find_variable": find_variable,
    "kill": kill,
}


def reached(how: str, target: str) -> bool:
    """Whether one attempt worked."""
    try:
        ATTEMPTS[how](target)
    except (OSError, ValueError, struct.error):
        return False
    return True


if __name__ == "__main__":
    attacks: dict[str, list[str]] = json.loads(Path("targets.json").read_text())
    sys.stdout.write(json.dumps([name for name, (how, target) in attacks.items() if reached(how, target)]))
