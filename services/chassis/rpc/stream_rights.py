"""The rights of open streams: a stream ends when its token expires or its grant is revoked."""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.authentication import Access, MethodAccess
from pointsman.services.chassis.rpc.tokens import expiry_of

CHECK_SECONDS = 1.0
CHECKS_PER_TURN = 100
"""How many rights are checked before the event loop runs other tasks: each may verify a signature."""


@dataclass(frozen=True, slots=True, eq=False)
class Right:
    """The credentials and the access with which a stream was admitted."""

    context: Any
    metadata: Iterable[tuple[str, str | bytes]]
    project: str
    access: MethodAccess

    @property
    def token(self) -> str:
        """The bearer token; empty if the caller has a certificate."""
        return next(
            (str(value).partition(" ")[2].strip() for key, value in self.metadata if key == "authorization"), ""
        )


class Rights:
    """The rights of all open streams."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._open: dict[Right, tuple[float, Callable[[Refusal], None]]] = {}

    @contextmanager
    def hold(self, right: Right, end: Callable[[Refusal], None]) -> Iterator[None]:
        """Watch a right that was just checked; `end` is called with a refusal when it is revoked."""
        if not self._access.requires_credentials:
            yield
            return
        self._open[right] = (expiry_of(right.token) if right.token else math.inf, end)
        try:
            yield
        finally:
            self._open.pop(right, None)

    async def end_revoked(self) -> None:
        """A loop: end streams whose token has expired and, after a change of keys or access file, whose right is revoked."""
        known = self._access.contents
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            found = self._access.contents
            has_changed = any(old is not new for old, new in zip(known, found, strict=True))
            known, now = found, SystemClock().now().timestamp()
            due = [right for right, (expires_at, _) in self._open.items() if has_changed or expires_at <= now]
            for number, right in enumerate(due, 1):
                self._check(right)
                if number % CHECKS_PER_TURN == 0:
                    await asyncio.sleep(0)

    def _check(self, right: Right) -> None:
        if right not in self._open:
            return
        try:
            grant = self._access.authenticate(right.context, right.metadata)
        except Refusal as refusal:
            self._end(right, refusal if right.token else _no_longer_granted(right.access))
            return
        try:
            self._access.authorize(grant, right.project, right.access)
        except Refusal as refusal:
            self._end(right, refusal)

    def _end(self, right: Right, refusal: Refusal) -> None:
        _, end = self._open.pop(right)
        end(refusal)


def _no_longer_granted(access: MethodAccess) -> Refusal:
    return Refusal(
        Reason.PERMISSION_DENIED,
        "the access file does not name this certificate any more",
        metadata={"method": access.method, "role": ""},
    )
