"""Runs inside a sandbox: starts services, then a command that finds them in its variables, then ends both.

It is started by file name and needs only the standard library. The first argument is a JSON list of services (name,
command or null for PostgreSQL, port); the command follows. A service that does not start is said, with exit code 127.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CANNOT_START = 127
START_SECONDS, END_SECONDS, LOOK_SECONDS = 120.0, 10.0, 0.02
SIGNALLED = 128
LOCALHOST = "127.0.0.1"
PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ")
"""A service gets nothing that was made for the command, such as a reporter's or a clock's."""
SERVER_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")  # fmt: skip
READY_LINE = 7
"""The line of PostgreSQL's postmaster.pid that says whether it takes connections."""
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB")
"""Nothing of the database outlives its command."""
PRIVATE = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "dynamic_shared_memory_type=mmap")
USER, DATABASE = "pointsman", "postgres"
LOG_BYTES = 2000


class NotStarted(Exception):
    """A service that does not start, and what to do."""


@dataclass(slots=True)
class Running:
    """A service that was started: what the command has to know, and how to see that it is ready."""

    name: str
    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    variables: dict[str, str] = field(default_factory=dict)
    ready_file: Path | None = None

    def is_ready(self) -> bool:
        """Whether it takes connections."""
        if self.ready_file is None:
            with socket.socket() as client:
                return client.connect_ex((LOCALHOST, self.port)) == 0
        with contextlib.suppress(OSError, IndexError):
            return self.ready_file.read_text().splitlines()[READY_LINE].strip() == "ready"
        return False

    def end(self) -> None:
        """Ends it; what it leaves behind is the supervisor's to kill."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGQUIT if self.ready_file else signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def main() -> int:
    """Starts everything, runs the command, and returns its exit code."""
    services, command = json.loads(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="services-", ignore_cleanup_errors=True) as folder:
        try:
            with started(services, Path(folder)) as variables:
                return run(command, {**variables, **os.environ})
        except NotStarted as error:
            sys.stdout.write(f"{error}\n")
            return CANNOT_START


@contextlib.contextmanager
def started(services: Sequence[Sequence[object]], folder: Path) -> Iterator[dict[str, str]]:
    """The variables of all services, each of which takes connections."""
    with contextlib.ExitStack() as ended:
        variables: dict[str, str] = {}
        for name, command, port in services:
            place = folder / str(name)
            place.mkdir()
            running = start(str(name), command, int(str(port)), place)
            ended.callback(running.end)
            await_ready(running)
            variables |= running.variables
        yield variables


def start(name: str, command: object, port: int, folder: Path) -> Running:
    """Starts one service; a sandbox without sockets has none."""
    try:
        socket.socket().close()
    except OSError:
        raise NotStarted(
            f"cannot start the service {name}: a proof has no sockets at isolation landlock; install bubblewrap"
        ) from None
    if command is None:
        return start_postgres(name, port, folder)
    words = [str(word).replace("{port}", str(port)).replace("{folder}", str(folder)) for word in list(command)]  # type: ignore[call-overload]
    prefix = name.upper().replace("-", "_")
    return Running(name, spawn(name, words, folder), folder, port, {f"{prefix}_HOST": LOCALHOST, f"{prefix}_PORT": str(port)})  # fmt: skip


def start_postgres(name: str, port: int, folder: Path) -> Running:
    """A PostgreSQL server with a new, empty database and a password that only this command knows."""
    programs, data = server_folder(name), folder / "data"
    password, password_file = secrets.token_hex(16), folder / "password"
    password_file.write_text(password)
    options = ("-U", USER, f"--pwfile={password_file}", "--auth=scram-sha-256", "--no-sync", "--locale=C", "-E", "UTF8")
    made = subprocess.run(  # noqa: S603 - a program of the system
        [str(programs / "initdb"), "-D", str(data), *options], env=environment(), capture_output=True, check=False
    )
    if made.returncode:
        raise NotStarted(
            f"cannot start the service {name}: {made.stderr[-LOG_BYTES:].decode(errors='replace').strip()}"
        )
    settings = [word for setting in (*QUICK, *PRIVATE) for word in ("-c", setting)]
    process = spawn(name, [str(programs / "postgres"), "-D", str(data), "-p", str(port), *settings], folder)
    address = f"postgresql://{USER}:{password}@{LOCALHOST}:{port}/{DATABASE}"
    variables = {"PGHOST": LOCALHOST, "PGPORT": str(port), "PGUSER": USER, "PGPASSWORD": password}
    variables |= {"PGDATABASE": DATABASE, "DATABASE_URL": address}
    return Running(name, process, folder, port, variables, data / "postmaster.pid")


def server_folder(name: str) -> Path:
    """Where PostgreSQL's server is: on PATH, else the newest of the system."""
    named = shutil.which("initdb")
    found = [path for pattern in SERVER_FOLDERS for path in Path("/").glob(pattern.lstrip("/")) if (path / "initdb").exists()]  # fmt: skip
    if named:
        return Path(named).resolve().parent
    if not found:
        raise NotStarted(f"cannot start the service {name}: no initdb on PATH or below /usr/lib/postgresql; install the package postgresql")  # fmt: skip
    return max(found, key=lambda path: (len(path.parent.name), path.parent.name))


def spawn(name: str, words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Starts a program in a folder of its own, outside the tree, with its output in a file."""
    with (folder / "log").open("wb") as log:
        try:
            return subprocess.Popen(words, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)  # noqa: S603 - it is what the project file names  # fmt: skip
        except OSError as error:
            raise NotStarted(f"cannot start the service {name}: {words[0]}: {error.strerror}; install it, or name another command in [workspace] services") from None  # fmt: skip


def environment() -> dict[str, str]:
    """The variables of a service."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}


def await_ready(running: Running) -> None:
    """Waits until a service takes connections."""
    deadline = time.monotonic() + START_SECONDS
    while running.process.poll() is None and time.monotonic() < deadline:
        if running.is_ready():
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.process.wait(LOOK_SECONDS)
    ended = running.process.poll()
    what = f"it ended with exit code {ended}" if ended is not None else f"nothing listens on its port after {START_SECONDS:g} s"  # fmt: skip
    printed = (running.folder / "log").read_bytes()[-LOG_BYTES:].decode(errors="replace").strip()
    raise NotStarted(f"cannot start the service {running.name}: {what}\n{printed}".strip())


def run(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Runs the command to its end."""
    try:
        code = subprocess.run(command, env=variables, check=False).returncode  # noqa: S603 - what the sandbox is for
    except OSError as error:
        sys.stdout.write(f"cannot start {command[0]!r}: {error.strerror}\n")
        return CANNOT_START
    return code if code >= 0 else SIGNALLED - code


if __name__ == "__main__":
    sys.exit(main())
