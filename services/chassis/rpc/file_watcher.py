"""Files that are read again when they change; while they cannot be read, the last good content stays."""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from pointsman.services.chassis.core.errors import Refusal

Value = TypeVar("Value")
Stamp = tuple[tuple[int, int, int], ...]


class WatchedFiles(Generic[Value]):
    """The content of files that belong together, such as a certificate and its key."""

    def __init__(self, paths: Sequence[Path | None], read: Callable[[], Value]) -> None:
        """Read the files; an error of this first read is raised."""
        self._paths = [path for path in paths if path is not None]
        self._read = read
        self._logged_error = ""
        self._stamp = self._stamp_now()
        self._value = read()

    @property
    def value(self) -> Value:
        """The current content; an error is logged once, and the next access tries again."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._reload(stamp)
        except (OSError, ValueError, Refusal) as error:
            self._log_failure(str(error)[:300])
        return self._value

    def _reload(self, stamp: Stamp) -> None:
        value = self._read()
        if self._stamp_now() == stamp:
            self._value, self._stamp, self._logged_error = value, stamp, ""

    def _log_failure(self, error: str) -> None:
        if error != self._logged_error:
            self._logged_error = error
            import structlog  # noqa: PLC0415 - short commands log nothing and start faster without it

            structlog.get_logger().warning("files_not_taken_up", files=[str(path) for path in self._paths], error=error)

    def _stamp_now(self) -> Stamp:
        found = (path.stat() for path in self._paths)
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)


def check_pair(certificate: Path, key: Path) -> None:
    """Refuse a certificate and a key that do not match, as while one of them is being replaced."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)


def read_authority(path: Path) -> bytes:
    """The certificates of a PEM file of authorities; a damaged file is refused."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    return path.read_bytes()
