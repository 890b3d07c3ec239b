"""Bearer tokens of a role: JSON Web Tokens (HS256), signed with the secret of the role."""

import base64
import contextlib
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from pointsman._shared.system_time import now_seconds
from pointsman.credentials.folder import CredentialFolder, CredentialRole, UnusableCredentials

AUDIENCE = "pointsman"
LIFE_SECONDS = 3600.0
SAFE = ":@"
"""Characters of an agent id that its principal shows as they are, besides letters, digits and `_.-~`."""
Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who shows a token: a role of a data directory, or one agent of the role."""

    folder: CredentialFolder
    role: CredentialRole
    agent_id: str = ""

    @classmethod
    def named(cls, folder: CredentialFolder, name: str) -> "Identity":
        """The identity of a name as people write it: `coder`, or `coder/box-1` for one agent."""
        role, _, agent_id = name.partition("/")
        if role not in list(CredentialRole):
            raise UnusableCredentials(f"there is no role '{role}'; known are {', '.join(CredentialRole)}")
        return cls(folder, CredentialRole(role), agent_id)

    @property
    def principal(self) -> str:
        """The subject of its tokens."""
        return f"{self.role}/{quote(self.agent_id, safe=SAFE)}" if self.agent_id else str(self.role)


def mint(identity: Identity, seconds: float = LIFE_SECONDS) -> str:
    """A token of this identity that lives for some seconds."""
    secret = identity.folder.read_secret(identity.role)
    header = {"alg": "HS256", "typ": "JWT", "kid": identity.role}
    claims = {"sub": identity.principal, "aud": AUDIENCE, "exp": int(now_seconds() + seconds)}
    # Written here because PyJWT loads the whole of `cryptography`, which takes longer than most commands.
    body = f"{_encoded(header)}.{_encoded(claims)}"
    signature = hmac.new(secret, body.encode(), hashlib.sha256).digest()
    return f"{body}.{_base64(signature)}"


class Token(Protocol):
    """A bearer token that can change."""

    @property
    def value(self) -> str:
        """The current token."""


class TokenFile:
    """The token of a file, read again when the file changes."""

    def __init__(self, path: Path) -> None:
        """Read the file; an error of this first read is raised."""
        self._path = path
        self._stamp, self._token = _stamp(path), path.read_text().strip()

    @property
    def value(self) -> str:
        """The token; the last one while the file cannot be read."""
        with contextlib.suppress(OSError):
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._token, self._stamp = self._path.read_text().strip(), stamp
        return self._token


class TokenSource:
    """The current token of an identity; a new one after half of its life, or when the secret has changed."""

    def __init__(self, identity: Identity) -> None:
        """Mint the first token; an unusable secret is refused here."""
        self.identity = identity
        self._path = identity.folder.secret_file(identity.role)
        self._token, self._renew_at, self._stamp = "", 0.0, (0, 0, 0)
        self._renew(time.monotonic())

    @property
    def value(self) -> str:
        """The token; the last one while the secret cannot be read."""
        now = time.monotonic()
        try:
            if now >= self._renew_at or _stamp(self._path) != self._stamp:
                self._renew(now)
        except (OSError, UnusableCredentials):
            self._renew_at = now
        return self._token

    def _renew(self, now: float) -> None:
        stamp = _stamp(self._path)
        self._token = mint(self.identity)
        self._stamp, self._renew_at = stamp, now + LIFE_SECONDS / 2


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _encoded(value: object) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
