"""Time and chance of a simulation: both follow from the seed alone."""

import asyncio
import heapq
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 - all chance of a simulation comes from its seed
from typing import Any

from pointsman.services.chassis.core import ids

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
HERE: ContextVar[str] = ContextVar("process", default="")
"""The process that the running code belongs to; empty for the actors."""


class StandstillError(Exception):
    """Nobody has anything to do, and no timer will wake anybody."""


class SimLoop(asyncio.BaseEventLoop):
    """An event loop without a clock or sockets: when all wait, it is at once the time that the first waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self.now

    def _run_once(self) -> None:
        """One round of what is ready; as asyncio's own, without what a loop with sockets needs."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready:
            if not scheduled:
                raise StandstillError
            self.now = max(self.now, scheduled[0]._when)
        end = self.now + self._clock_resolution
        while scheduled and scheduled[0]._when < end:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """There is one thread."""


class SimClock:
    """The stores' clock; a jump moves it against the loop's time."""

    def __init__(self) -> None:
        self.loop = SimLoop()
        self.jump_seconds = 0.0

    def now(self) -> datetime:
        """The time of the simulation."""
        return BEGIN + timedelta(seconds=self.loop.now + self.jump_seconds)


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one call on the network."""

    there_seconds: float
    back_seconds: float
    lost_there: bool = False
    lost_back: bool = False
    again_after_seconds: float = 0.0


class Chance:
    """Draws everything that may be one way or the other; calm after a while, so that a seed comes to rest."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.calm = False
        self.trouble = self.random.choice((0.0, 0.02, 0.05, 0.15, 0.3))
        self.deaths = self.random.choice((0.0, 0.002, 0.01, 0.03))
        self.outages = self.random.choice((0.0, 0.0, 0.01, 0.05))

    def happens(self, probability: float) -> bool:
        """Whether trouble of this probability strikes now."""
        return not self.calm and self.random.random() < probability

    def be_calm(self) -> None:
        """From now on nothing goes wrong any more."""
        self.calm = True

    def moment(self) -> float:
        """A short time: mostly next to nothing, now and then noticeable."""
        if self.happens(self.trouble):
            return self.random.choice((0.2, 1.0, 4.0, 30.0)) * self.random.random()
        return self.random.random() * 0.005

    def fate(self) -> Fate:
        """How the next call fares."""
        there, back = self.moment(), self.moment()
        if not self.happens(self.trouble):
            return Fate(there, back)
        kind = self.random.randrange(3)
        again = self.random.random() * self.random.choice((0.01, 1.0, 60.0)) if kind == 2 else 0.0
        return Fate(there, back, kind == 0, kind == 1, again)

    def take_over_secrets(self) -> None:
        """Ids, nonces and jitter come from the seed too."""
        vars(ids)["secrets"] = _Secrets(self.random)


class _Secrets:
    """Stands in for the operating system's randomness."""

    def __init__(self, random: Random) -> None:
        self.randbits = random.getrandbits
        self.randbelow = random.randrange
