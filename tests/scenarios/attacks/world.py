"""The things that a contained command must not reach: real files, sockets, processes, a terminal and a repository."""

import ctypes
import json
import os
import pty
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pointsman.sandbox import Level, Limits, SandboxSpec, clean_environment, proof_environment, run

SCRIPT = Path(__file__).parent / "everything.py"
LEFT_IN = (Path("/dev/shm"), Path("/tmp"))
BYSTANDER = """
import ctypes, sys
kept = ctypes.create_string_buffer(sys.argv[1].encode())
print(ctypes.addressof(kept), flush=True)
sys.stdin.read()
"""
CREATE, REMOVE_SHARED = 0o1000, 0
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(os.uname().machine, (-1, -1))
REVOKE_KEY, SESSION_KEYRING, USER_KEYRING = 3, -3, -4
Attack = tuple[str, str]
"""How it is tried, and what it aims at."""


@dataclass(frozen=True, slots=True)
class World:
    """Targets by the name of the attack, the folder that the command may use, and the process that it may not reach."""

    folder: Path
    attacks: dict[str, Attack]
    bystander: subprocess.Popen[bytes]
    clone: Path
    secret: Path
    mark: str
    datagrams: socket.socket

    async def attacked(self, level: Level, *, network: bool) -> set[str]:
        """The names of the attacks that worked, as the command saw it and as the targets look afterwards."""
        result = await run(self.spec(level, network=network))
        assert result.level is level
        assert result.exit_code == 0, result.output
        return self.effective(set(json.loads(result.output)))

    def spec(self, level: Level, *, network: bool) -> SandboxSpec:
        """The command of a proof, or with the network that of an agent."""
        (self.folder / "targets.json").write_text(json.dumps(self.attacks))
        script = self.folder / SCRIPT.name
        script.write_bytes(SCRIPT.read_bytes())
        scratch = {"HOME": str(self.folder), "TMPDIR": str(self.folder)}
        environment = clean_environment(scratch) if network else proof_environment(self.folder)
        command = (str(Path(sys.executable).resolve()), "-I", "-S", script.name)
        return SandboxSpec(
            command, self.folder, environment, (self.folder,), (Path(sys.base_prefix),), network=network,
            hidden=(self.clone,), limits=Limits(seconds=60.0), level=level,
        )  # fmt: skip

    def effective(self, reached: set[str]) -> set[str]:
        """Without what only happened to a folder or a process that the sandbox alone has."""
        unchanged = {
            "overwrite the clone": (self.clone / "file").read_text() == "of the user",
            "make a file in the data directory": not (self.secret.parent / "made").exists(),
            "make a file in the home folder": not (self.secret.parent.parent / "home" / "made").exists(),
            "plant a hook": not (self.clone / ".git" / "hooks" / "made").exists(),
            "send a datagram to loopback": not self._was_sent_a_datagram(),
            "kill the worker": self.bystander.poll() is None,
            "leave something in /dev/shm": not (LEFT_IN[0] / self.mark / "made").exists(),
        }
        return reached - {name for name, holds in unchanged.items() if holds}

    def _was_sent_a_datagram(self) -> bool:
        try:
            return bool(self.datagrams.recv(100, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return False


@contextmanager
def attacked_world(root: Path) -> Iterator[World]:
    """All targets, made anew."""
    with ExitStack() as stack:
        mark = f"mark-{secrets.token_hex(8)}"
        folder, data, clone, home = (root / name for name in ("inside", "data", "clone", "home"))
        for place in (folder, data, home, data / "worker" / "assignments" / "other"):
            place.mkdir(parents=True)
        secret = data / "operator.secret"
        secret.write_text(mark)
        (data / "worker/assignments/other/file").write_text("of another assignment")
        _repository(clone)
        bystander = stack.enter_context(_bystander(mark))
        assert bystander.stdout is not None
        address = int(bystander.stdout.readline())
        attacks = _inherited(mark) | _files(data, clone, home) | _processes(bystander.pid, address, mark, secret)
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        attacks["send a datagram to loopback"] = ("send_datagram", str(datagrams.getsockname()[1]))
        attacks |= _sockets(root, stack, mark) | _terminal(stack) | _powers() | _left_behind(stack, mark)
        attacks |= _kernel_objects(stack, mark) | _kernel_settings(bystander.pid)
        attacks["kill the worker"] = ("kill", str(bystander.pid))
        yield World(folder, attacks, bystander, clone, secret, mark, datagrams)


def _files(data: Path, clone: Path, home: Path) -> dict[str, Attack]:
    secret, other = str(data / "operator.secret"), str(data / "worker/assignments/other/file")
    return {
        "read a credential": ("read", secret),
        "link a credential into its tree": ("hard_link", secret),
        "list the data directory": ("list_folder", str(data)),
        "read another assignment": ("read", other),
        "make a file in the data directory": ("make", str(data)),
        "make a file in the home folder": ("make", str(home)),
        "read the clone": ("read", str(clone / "file")),
        "read the clone's history": ("git", f"-C {clone} log"),
        "move the delivered branch": ("git", f"-C {clone} update-ref refs/heads/delivered HEAD~1"),
        "change the clone's configuration": ("git", f"-C {clone} config core.fsmonitor /bin/true"),
        "plant a hook": ("make", str(clone / ".git" / "hooks")),
        "overwrite the clone": ("overwrite", str(clone / "file")),
        "change the mode of a credential": ("chmod", secret),
        "change the times of a credential": ("utime", secret),
        **({"set an attribute of a credential": ("set_attribute", secret)} if _has_attributes(data) else {}),
        "remove another assignment": ("remove", other),
        "read passwords of the system": ("read", "/etc/shadow"),
    }


def _has_attributes(folder: Path) -> bool:
    """Whether files can have attributes there, which not every file system offers."""
    try:
        os.setxattr(folder, "user.tried", b"1")
    except OSError:
        return False
    return True


def _repository(clone: Path) -> None:
    git = ("git", "-c", "user.name=u", "-c", "user.email=u@example.com", "-C", str(clone))
    clone.mkdir()
    (clone / "file").write_text("of the user")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("commit", "-qm", "one"),
        ("commit", "-qm", "two", "--allow-empty"),
    ):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "branch", "delivered"], check=True)
    (clone / ".git" / "hooks").mkdir(exist_ok=True)


@contextmanager
def _bystander(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process like the worker, with a mark in its arguments, its environment and its memory."""
    command = (sys.executable, "-I", "-S", "-c", BYSTANDER, mark)
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env={"TOKEN": mark}, **streams) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def _processes(process: int, address: int, mark: str, secret: Path) -> dict[str, Attack]:
    return {
        "read the worker's arguments": ("find_mark", f"/proc/{process}/cmdline:{mark}"),
        "read the worker's environment": ("find_mark", f"/proc/{process}/environ:{mark}"),
        "read the worker's memory": ("read_memory", f"{process}:{address}:{mark}"),
        "read the worker's memory without a file": ("read_across", f"{process}:{address}:{mark}"),
        "trace the worker": ("trace", str(process)),
        "read a credential through the worker's root": ("through_root", f"{process}:{secret}"),
    }


def _sockets(root: Path, stack: ExitStack, mark: str) -> dict[str, Attack]:
    found: dict[str, Attack] = {}
    for name in ("control plane", "ssh-agent", "docker.sock", "session bus"):
        path = str(root / name.replace(" ", "-"))
        _listening(stack, path)
        found[f"connect to the {name}"] = ("connect_path", path)
    _listening(stack, f"\0{mark}")
    found["connect to an abstract socket"] = ("connect_abstract", mark)
    loopback = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    found["connect to loopback"] = ("connect_tcp", str(loopback.getsockname()[1]))
    return found


def _listening(stack: ExitStack, address: str) -> None:
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(address)
    listener.listen()


def _terminal(stack: ExitStack) -> dict[str, Attack]:
    controller, terminal = pty.openpty()
    for opened in (controller, terminal):
        stack.callback(os.close, opened)
    path = os.ttyname(terminal)
    return {"write to a terminal": ("write_terminal", path), "type into a terminal": ("type_into_terminal", path)}


def _inherited(mark: str) -> dict[str, Attack]:
    return {"inherit a descriptor": ("inherit", ""), "inherit a variable": ("find_variable", mark)}


def _powers() -> dict[str, Attack]:
    return {
        "mount": ("mount", ""),
        "make a device": ("make_device", ""),
        "raise its priority": ("raise_priority", ""),
        "make the system writable": ("remount", ""),
    }


def _kernel_objects(stack: ExitStack, mark: str) -> dict[str, Attack]:
    """Objects that stand in no folder: shared memory of System V, a message queue, keys, a socket of the machine."""
    libc, number = ctypes.CDLL(None, use_errno=True), secrets.randbelow(2**30) + 1
    shared = libc.shmget(number, 4096, CREATE | 0o600)
    stack.callback(libc.shmctl, shared, REMOVE_SHARED, None)
    os.close(libc.mq_open(f"/{mark}".encode(), os.O_CREAT | os.O_RDWR, 0o600, None))
    stack.callback(libc.mq_unlink, f"/{mark}".encode())
    found: dict[str, Attack] = {
        "attach shared memory of System V": ("attach_shared_memory", str(number)),
        "open a message queue": ("open_queue", f"/{mark}"),
    }
    if _has_machine_sockets():
        found["open a socket of the machine"] = ("open_socket", str(int(socket.AF_VSOCK)))
    for name, keyring in (("session", SESSION_KEYRING), ("user", USER_KEYRING)):
        key = libc.syscall(ADD_KEY, b"user", f"{mark}-{name}".encode(), b"secret", 6, keyring)
        stack.callback(libc.syscall, KEYCTL, REVOKE_KEY, key)
        found[f"find a key of the {name}"] = ("find_key", f"{keyring}:{mark}-{name}")
    return found


def _has_machine_sockets() -> bool:
    try:
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _kernel_settings(process: int) -> dict[str, Attack]:
    return {
        "name the program for core dumps": ("open_for_writing", "/proc/sys/kernel/core_pattern"),
        "write to the kernel's log": ("open_for_writing", "/dev/kmsg"),
        "set limits of the worker": ("limit_worker", str(process)),
        "slow the worker down": ("slow_down", str(process)),
        "say where the worker runs": ("pin", str(process)),
        "change how the worker is scheduled": ("reschedule", str(process)),
        "put the worker's reading and writing off": ("put_off_disk", str(process)),
        "have the worker killed first when memory ends": ("open_for_writing", f"/proc/{process}/oom_score_adj"),
        "take a descriptor of the worker": ("take_descriptor", str(process)),
        "join a namespace of the worker": ("join_namespace", f"/proc/{process}/ns/mnt"),
        "uncover a hidden file": ("uncover", "/etc/shadow"),
    }


def _left_behind(stack: ExitStack, mark: str) -> dict[str, Attack]:
    """What an earlier command left where everybody can write."""
    found: dict[str, Attack] = {}
    for place in LEFT_IN:
        left = place / mark
        left.mkdir()
        stack.callback(_remove_folder, left)
        (left / "file").write_text("left behind")
        found[f"read what was left in {place}"] = ("read", str(left / "file"))
    found["leave something in /dev/shm"] = ("make", str(LEFT_IN[0] / mark))
    return found


def _remove_folder(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
