"""The folder of the credentials: one secret for each role, and the certificate of TCP on loopback."""

import contextlib
import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pointsman._shared.files import atomic_write
from pointsman._shared.system_time import now_seconds
from pointsman.credentials.location import is_alive

NAME = "credentials"
SECRET_BYTES = 32
MAX_FILE_BYTES = 64 * 1024
MAX_SOCKET_PATH_BYTES = 100
"""Systems take between 104 and 108 bytes for the path of a Unix socket."""


class CredentialRole(StrEnum):
    """The roles that have a secret of their own."""

    OPERATOR = "operator"
    PLANNER = "planner"
    """Also researchers, designers and surveyors."""
    CODER = "coder"
    """Also resolvers."""
    REVIEWER = "reviewer"
    """Also critics of plans."""
    VERIFIER = "verifier"
    INTEGRATOR = "integrator"
    GATEWAY = "gateway"
    SERVICE = "service"


class UnusableCredentials(Exception):
    """A credential that is missing, or that others could have read or changed; the message says the way out."""


@dataclass(frozen=True, slots=True)
class CredentialFolder:
    """The credentials of one data directory."""

    path: Path

    @classmethod
    def of(cls, data: Path) -> "CredentialFolder":
        """The folder below a data directory."""
        return cls(data / NAME)

    @property
    def authority(self) -> Path:
        """The certificate that clients pin."""
        return self.path / "authority.pem"

    @property
    def certificate(self) -> Path:
        """The certificate that the server shows on TCP."""
        return self.path / "server.pem"

    @property
    def key(self) -> Path:
        """The private key of that certificate."""
        return self.path / "server-key.pem"

    def secret_file(self, role: CredentialRole) -> Path:
        """The file of a role's secret."""
        return self.path / f"{role}.secret"

    @property
    def is_complete(self) -> bool:
        """Whether a control plane has made it; clients of one that has not show nothing."""
        return self.authority.exists()

    def make(self) -> None:
        """Make what is missing; refuse what others can read, own or change."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UnusableCredentials(f"{self.path} cannot be made: {error.strerror}") from None
        check_private(self.path)
        with _locked(self.path):
            for role in CredentialRole:
                if not self.secret_file(role).exists():
                    self.rotate(role)
                self.read_secret(role)
            self._make_certificate()

    def rotate(self, role: CredentialRole) -> None:
        """Write a new secret; tokens of the old one end, and the streams that they opened."""
        atomic_write(self.secret_file(role), secrets.token_hex(SECRET_BYTES) + "\n")

    def read_secret(self, role: CredentialRole) -> bytes:
        """The secret of a role."""
        path = self.secret_file(role)
        check_private(self.path)
        secret = read_private(path).decode("ascii", "replace").strip()
        if len(secret) < SECRET_BYTES * 2:
            raise UnusableCredentials(f"{path} is damaged; remove it, and restart the control plane to make a new one")
        return secret.encode()

    def _make_certificate(self) -> None:
        from pointsman.credentials.certificate import is_due, make_pair  # noqa: PLC0415 - only at the first start

        now = datetime.fromtimestamp(now_seconds(), UTC)
        if self.key.exists() and self.certificate.exists() and self.authority.exists():
            read_private(self.key)
            if not is_due(self.certificate.read_bytes(), now):
                return
        pair = make_pair(now)
        for path, content in ((self.key, pair.key), (self.certificate, pair.chain), (self.authority, pair.authority)):
            atomic_write(path, content)

    @contextlib.contextmanager
    def socket_path(self) -> Iterator[Path]:
        """A path for the Unix socket of this process, in a folder that only its owner can enter."""
        _remove_stale_sockets(self.path)
        name = f"{os.getpid()}-{secrets.token_hex(3)}.sock"
        path = self.path / name
        if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
            with _removed_at_the_end(path):
                yield path
            return
        with tempfile.TemporaryDirectory(prefix="pointsman-", dir=_short_parent(name)) as folder:
            yield Path(folder) / name


def check_private(path: Path) -> None:
    """Refuse a file or folder that another user owns, or that others can read or change."""
    try:
        found = path.lstat()
    except OSError as error:
        raise UnusableCredentials(f"{path}: {error.strerror}; `pointsman up` makes it") from None
    _check_stat(path, found)


def read_private(path: Path) -> bytes:
    """The content of a file that nobody but its owner can read or change."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise UnusableCredentials(
            f"{path}: {error.strerror}; a restart of the control plane makes a missing one"
        ) from None
    with os.fdopen(handle, "rb") as file:
        _check_stat(path, os.fstat(file.fileno()))
        return file.read(MAX_FILE_BYTES)


def _check_stat(path: Path, found: os.stat_result) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise UnusableCredentials(f"{path} is neither a file nor a folder; remove it")
    if found.st_uid != os.geteuid():
        raise UnusableCredentials(
            f"{path} belongs to user {found.st_uid}, not to user {os.geteuid()}; "
            "use the data directory of one user, or choose another with POINTSMAN_DATA"
        )
    if found.st_mode & 0o077:
        wanted = "700" if stat.S_ISDIR(found.st_mode) else "600"
        raise UnusableCredentials(
            f"{path} can be read or changed by others (mode {found.st_mode & 0o777:o}); `chmod {wanted} {path}` if nobody "
            f"has, else remove it and restart the control plane to make a new one"
        )


def _short_parent(name: str) -> str:
    """The runtime or temporary directory, the first in which a private folder leaves room for a socket of this name."""
    for parent in (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir()):
        room = MAX_SOCKET_PATH_BYTES - len(os.fsencode(f"{parent}/pointsman-12345678/{name}"))
        if room >= 0 and Path(parent).is_absolute() and os.access(parent, os.W_OK):
            return parent
    return "/tmp"  # noqa: S108 - only for a folder of our own in it, which TemporaryDirectory makes private


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps other processes from making the same files at the same time."""
    with (folder / "lock").open("ab") as file:
        os.fchmod(file.fileno(), 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _removed_at_the_end(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _remove_stale_sockets(folder: Path) -> None:
    """Remove the sockets of processes that were killed."""
    for path in folder.glob("*.sock"):
        pid = path.name.partition("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            path.unlink(missing_ok=True)
