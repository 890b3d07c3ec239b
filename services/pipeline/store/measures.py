"""The metrics of pipeline events."""

from collections.abc import Callable, Mapping
from typing import Any

from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.telemetry.metrics import retries
from pointsman.services.pipeline import metrics
from pointsman.services.pipeline.domain import events
from pointsman.services.pipeline.domain.enums import Correction, EventName

FORCED = frozenset({Correction.FORCED_ON, Correction.CRASH_LIMIT})
SKIPPED = "skipped"


def measure(event: Event) -> None:
    """Counts one committed event."""
    count = _COUNTERS.get(event.name)
    if count is not None:
        count(event.data)


def _corrected(data: events.RouteCorrected) -> None:
    for warned in data.warnings:
        if warned.code in FORCED:
            metrics.forced_stages.labels(str(warned.code)).inc()


def _exhausted(data: events.RetryExhausted) -> None:
    if data.forced_on:
        metrics.forced_stages.labels(str(Correction.RETRY_EXHAUSTED)).inc(len(data.stages))


def _timed_out(data: events.BarrierTimedOut) -> None:
    metrics.barrier_waits.labels("timed_out").inc()
    metrics.forced_stages.labels(str(Correction.BARRIER_TIMEOUT)).inc(len(data.absent))


_COUNTERS: Mapping[str, Callable[[Any], None]] = {
    EventName.STAGE_RETRY: lambda _data: retries.labels("stage").inc(),
    EventName.STAGE_SKIPPED: lambda _data: metrics.forced_stages.labels(SKIPPED).inc(),
    EventName.ROUTE_CORRECTED: _corrected,
    EventName.RETRY_EXHAUSTED: _exhausted,
    EventName.BARRIER_WAITING: lambda _data: metrics.barrier_waits.labels("waiting").inc(),
    EventName.BARRIER_RESOLVED: lambda _data: metrics.barrier_waits.labels("resolved").inc(),
    EventName.BARRIER_TIMED_OUT: _timed_out,
}
