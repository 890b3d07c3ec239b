"""Time limits of tests in seconds of an idle machine: the busier the machine, the longer they last.

A limit stops a test that hangs; it never judges speed. So nothing in `tests/` outside `tests/bench` reads a clock or passes a bare number of seconds
as a deadline: it takes a `Limit`, `within` or `scaled` from here.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic, thread_time

MAX_SLOWDOWN = 15.0
"""The ceiling: what hangs on a busy machine ends too."""
PROBE_SECONDS = 0.03
"""Several turns of the scheduler: a shorter probe runs to its end before it has to share the processor."""
FRESH_SECONDS = 5.0
"""How long a measured slowdown is used; the system renews its load average as often."""


class Gauge:
    """Measures how many times longer work takes than on an idle machine."""

    def __init__(self) -> None:
        self._measured = (-FRESH_SECONDS, 1.0)

    def slowdown(self) -> float:
        """At least 1, at most the ceiling; measured again when the last value is old."""
        at, factor = self._measured
        if monotonic() - at > FRESH_SECONDS:
            factor = min(MAX_SLOWDOWN, max(1.0, _load_per_core(), _probe()))
            self._measured = (monotonic(), factor)
        return factor


def _load_per_core() -> float:
    """Processes per core that ran or waited over the last minute: what the tests have been through."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def _probe() -> float:
    """Elapsed time of a little work divided by its processor time: what happens now, in containers with a quota too."""
    begun, used = monotonic(), thread_time()
    while thread_time() - used < PROBE_SECONDS:
        pass
    return (monotonic() - begun) / PROBE_SECONDS


GAUGE = Gauge()


def scaled(seconds: float, gauge: Gauge = GAUGE) -> float:
    """A limit for others to enforce (a gRPC deadline, a subprocess), as long as the load of this moment asks for."""
    return seconds * gauge.slowdown()


class Limit:
    """A limit that starts now and is extended at its end if the machine was busy."""

    def __init__(self, seconds: float, gauge: Gauge = GAUGE) -> None:
        self.seconds = seconds
        self._gauge = gauge
        self._begun = monotonic()
        self._allowed = seconds

    @property
    def left_seconds(self) -> float:
        """Seconds until the end as known now."""
        return max(0.0, self._begun + self._allowed - monotonic())

    def is_over(self) -> bool:
        """Whether the end is reached; measures the load only then."""
        if not self.left_seconds:
            self._allowed = max(self._allowed, scaled(self.seconds, self._gauge))
        return not self.left_seconds


@asynccontextmanager
async def within(seconds: float, gauge: Gauge = GAUGE) -> AsyncIterator[None]:
    """`asyncio.timeout` with such a limit."""
    limit, loop = Limit(seconds, gauge), asyncio.get_running_loop()
    async with asyncio.timeout(None) as timeout:

        async def watch() -> None:
            while not limit.is_over():  # noqa: ASYNC110 - the limit grows while it is waited for
                await asyncio.sleep(limit.left_seconds)
            timeout.reschedule(loop.time())

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
