"""What files hold, read again when they change; the last good content while they are being replaced."""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from pointsman.services.chassis.core.errors import Refusal

Value = TypeVar("Value")
Stamp = tuple[tuple[int, int, int], ...]

log = structlog.get_logger()


class WatchedFiles(Generic[Value]):
    """The content of files that belong together, such as a certificate and its key."""

    def __init__(self, paths: Sequence[Path | None], read: Callable[[], Value]) -> None:
        """Read them once; at the start, what is wrong with them is the caller's to hear."""
        self._paths = [path for path in paths if path is not None]
        self._read = read
        self._complaint = ""
        self._stamp = self._stamp_now()
        self._value = read()

    @property
    def value(self) -> Value:
        """The content as it is now; what cannot be read is logged once, and tried again with the next call."""
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
            self._value, self._stamp, self._complaint = value, stamp, ""

    def _log_failure(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            log.warning("files_not_taken_up", files=[str(path) for path in self._paths], error=complaint)

    def _stamp_now(self) -> Stamp:
        found = (path.stat() for path in self._paths)
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in found)


def check_pair(certificate: Path, key: Path) -> None:
    """Refuse a certificate and a key that do not belong together, as they may while one of them is replaced."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)


def read_authority(path: Path) -> bytes:
    """The certificates of authorities in a PEM file, if it is a whole one."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    return path.read_bytes()
