"""Sessions of the web console: a one-time code becomes a cookie and a proof, which count together and for some hours."""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.requests import Request

from pointsman.credentials.console_code import CODE_SECONDS, read_code
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.loopback import watched_secret

COOKIE = "pointsman_session"
PROOF = "pointsman-console"
"""The header of the proof. A browser sends a cookie to every port of a host, the proof only to the console's own."""
SESSION_SECONDS = 12 * 3600.0
MAX_SESSIONS = 1000
CHECK_SECONDS = 1.0
HOW = "open the console with `pointsman console`, or send a bearer token (`pointsman token`)"


@dataclass(frozen=True, slots=True)
class Session:
    """What a browser holds."""

    cookie: str
    proof: str


@dataclass(frozen=True, slots=True)
class _Held:
    """What the gateway keeps of a session: digests, and when it ends."""

    proof: bytes
    expires_at: float
    secret: bytes
    """The gateway's secret at that time: another one ends the session."""


class Sessions:
    """The open sessions of this process; they end with it."""

    def __init__(self, folder: CredentialFolder, address: str) -> None:
        self._secret = watched_secret(folder, CredentialRole.GATEWAY)
        self._address = address
        self._begun_at = _now()
        self._used: dict[bytes, float] = {}
        self._sessions: dict[bytes, _Held] = {}
        self._streams: dict[object, tuple[bytes, Callable[[Refusal], None]]] = {}

    @property
    def secret(self) -> bytes:
        """The gateway's secret as it is now."""
        return self._secret.value

    def exchange(self, code: str) -> Session | None:
        """A new session for a code that is fresh and was never used."""
        found, now = read_code(self._secret.value, self._address, code), _now()
        self._used = {nonce: made_at for nonce, made_at in self._used.items() if made_at + CODE_SECONDS > now}
        if found is None or found.nonce in self._used or len(self._sessions) >= MAX_SESSIONS:
            return None
        if not max(self._begun_at, now - CODE_SECONDS) <= found.made_at <= now + CODE_SECONDS:
            return None
        self._used[found.nonce] = found.made_at
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        held = _Held(_digest(session.proof), now + SESSION_SECONDS, self._secret.value)
        self._sessions[_digest(session.cookie)] = held
        return session

    def is_open(self, request: Request) -> bool:
        """Whether a request comes with the cookie of an open session."""
        return self._held(_digest(request.cookies.get(COOKIE, ""))) is not None

    def is_proven(self, request: Request) -> bool:
        """Whether it also comes with the session's proof."""
        held = self._held(_digest(request.cookies.get(COOKIE, "")))
        return held is not None and hmac.compare_digest(held.proof, _digest(request.headers.get(PROOF, "")))

    def end(self, request: Request) -> None:
        """End the session of a request."""
        self._sessions.pop(_digest(request.cookies.get(COOKIE, "")), None)
        self._end_streams()

    @contextmanager
    def hold(self, request: Request, end: Callable[[Refusal], None]) -> Iterator[None]:
        """Watch the session of an open stream; `end` is called with a refusal when it ends."""
        stream = object()
        self._streams[stream] = (_digest(request.cookies.get(COOKIE, "")), end)
        try:
            yield
        finally:
            self._streams.pop(stream, None)

    async def end_expired(self) -> None:
        """A loop: forget sessions that have ended, and end their streams."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for digest in [digest for digest in self._sessions if self._held(digest) is None]:
                del self._sessions[digest]
            self._end_streams()

    def _held(self, digest: bytes) -> _Held | None:
        held = self._sessions.get(digest)
        is_live = held is not None and held.expires_at > _now() and held.secret is self._secret.value
        return held if is_live else None

    def _end_streams(self) -> None:
        ended = [stream for stream, (digest, _) in self._streams.items() if self._held(digest) is None]
        for stream in ended:
            _, end = self._streams.pop(stream)
            end(unauthenticated())


def unauthenticated() -> Refusal:
    """The refusal of a request without session and token."""
    return Refusal(Reason.UNAUTHENTICATED, HOW)


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode("utf-8", "replace")).digest()


def _now() -> float:
    return SystemClock().now().timestamp()
