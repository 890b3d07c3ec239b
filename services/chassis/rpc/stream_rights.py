"""Open streams and the right that each was admitted with: a stream ends when its right does."""

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
AT_ONCE = 100
"""So many rights are checked before others have their turn: each may cost the check of a signature."""


@dataclass(frozen=True, slots=True, eq=False)
class Right:
    """What a stream was admitted with."""

    context: Any
    metadata: Iterable[tuple[str, str | bytes]]
    project: str
    needs: MethodAccess

    @property
    def token(self) -> str:
        """The bearer token; empty for who shows a certificate."""
        return next(
            (str(value).partition(" ")[2].strip() for key, value in self.metadata if key == "authorization"), ""
        )


class Rights:
    """The rights of all open streams."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._open: dict[Right, tuple[float, Callable[[Refusal], None]]] = {}

    @contextmanager
    def held(self, right: Right, end: Callable[[Refusal], None]) -> Iterator[None]:
        """Hold a right that was just checked; `end` is called with the reason when it is gone."""
        if not self._access.asks:
            yield
            return
        self._open[right] = (expiry_of(right.token) if right.token else math.inf, end)
        try:
            yield
        finally:
            self._open.pop(right, None)

    async def end_lost(self) -> None:
        """A loop: end the streams whose token ran out, and after a change of keys or access file all that have lost."""
        known = self._access.contents
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            found = self._access.contents
            has_changed = any(old is not new for old, new in zip(known, found, strict=True))
            known, now = found, SystemClock().now().timestamp()
            due = [right for right, (expires_at, _) in self._open.items() if has_changed or expires_at <= now]
            for number, right in enumerate(due, 1):
                self._check(right)
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _check(self, right: Right) -> None:
        if right not in self._open:
            return
        try:
            grant = self._access.authenticate(right.context, right.metadata)
        except Refusal as refusal:
            self._end(right, refusal if right.token else _unnamed(right.needs))
            return
        try:
            self._access.authorize(grant, right.project, right.needs)
        except Refusal as refusal:
            self._end(right, refusal)

    def _end(self, right: Right, refusal: Refusal) -> None:
        _, end = self._open.pop(right)
        end(refusal)


def _unnamed(needs: MethodAccess) -> Refusal:
    return Refusal(
        Reason.PERMISSION_DENIED,
        "the access file does not name this certificate any more",
        metadata={"method": needs.method, "role": ""},
    )
