"""Prometheus metrics of every service, each declared once with its unit and one sentence."""

import collections
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from pointsman.services.chassis.telemetry.recording import call_recorder

SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 600, 3600, 86400)
CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Metric = TypeVar("Metric", Counter, Gauge, Histogram)

UNITS: dict[Counter | Gauge | Histogram, str] = {}
"""The unit of each declared metric; a metric's name carries it only where Prometheus asks for it, such as seconds."""


def declare(metric: Metric, unit: str) -> Metric:
    """Register a metric with its unit; metrics of one context are declared in that context's `metrics` module."""
    UNITS[metric] = unit
    return metric


transitions = declare(
    Counter(
        "pointsman_transitions", "Committed transitions by the state they lead to.", ("store", "kind", "event", "state")
    ),
    "transitions",
)
dwell = declare(
    Histogram(
        "pointsman_state_dwell_seconds",
        "How long an entity was in a state before it left it.",
        ("store", "kind", "state"),
        buckets=SECONDS,
    ),
    "seconds",
)
batch_size = declare(
    Histogram("pointsman_commit_batch_size", "Writes joined into one commit.", ("store",), buckets=SIZES), "writes"
)
commit_seconds = declare(
    Histogram(
        "pointsman_commit_seconds",
        "How long a batch took from its begin to its commit.",
        ("store",),
        buckets=CALL_SECONDS,
    ),
    "seconds",
)
commit_conflicts = declare(
    Counter(
        "pointsman_commit_conflicts",
        "Transactions that PostgreSQL ended in favour of another one and that were tried again.",
        ("store",),
    ),
    "transactions",
)
calls = declare(
    Histogram(
        "pointsman_rpc_seconds", "How long calls took, by their outcome.", ("method", "code"), buckets=CALL_SECONDS
    ),
    "seconds",
)
outbox_pending = declare(
    Gauge("pointsman_outbox_pending", "Effects that are not acknowledged yet.", ("store",)), "effects"
)
outbox_lag = declare(
    Gauge("pointsman_outbox_lag_seconds", "Age of the oldest effect that is not acknowledged.", ("store",)), "seconds"
)
timers_late = declare(
    Gauge("pointsman_timers_late_seconds", "How long the timer that is due longest has been due.", ("store",)),
    "seconds",
)
deliveries = declare(
    Counter(
        "pointsman_deliveries",
        "Deliveries of effects by kind and result: done, postponed, refused.",
        ("store", "kind", "result"),
    ),
    "deliveries",
)
retries = declare(
    Counter("pointsman_retries", "Work that is done again, by what: assignment, stage, task.", ("what",)), "retries"
)
spans_sent = declare(
    Counter("pointsman_spans_sent", "Transitions that arrived at the collector as spans.", ("store",)), "transitions"
)
span_lag = declare(
    Gauge("pointsman_span_lag_seconds", "Age of the oldest transition that is not at the collector yet.", ("store",)),
    "seconds",
)
spans_dropped = declare(
    Counter("pointsman_spans_dropped", "Spans of calls, commits and agents that were dropped; transitions never are."),
    "spans",
)


class CallTimes:
    """Observes the calls of one RPC; the labelled histogram of each code is cached."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._by_code: dict[str, Histogram] = {}

    def observe(self, code: str, seconds: float) -> None:
        """Record one call."""
        times = self._by_code.get(code)
        if times is None:
            times = self._by_code[code] = calls.labels(self._method, str(code))
        times.observe(seconds)
        if call_recorder.is_on:
            call_recorder.call_served(self._method, str(code), seconds)


def declared_names() -> set[str]:
    """Every name that a dashboard or an alert may use; a context's names are known once its `metrics` is imported."""
    families = [family for metric in UNITS for family in metric.describe()]
    return {family.name + suffix for family in families for suffix in _suffixes(family.type)}


def count_transitions(store: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Count the transitions of a batch; equal ones together, because each increment takes a lock."""
    counted = collections.Counter((row["kind"], row["event"], row["target"]) for row in rows)
    for labels, count in counted.items():
        _transitions(store, *labels).inc(count)


def observe_dwells(store: str, kind: str, left: Iterable[tuple[str, int]]) -> None:
    """Observe how many microseconds the entities of a batch spent in the states that they left."""
    for state, microseconds in left:
        if state:
            _dwell(store, kind, state).observe(microseconds / 1_000_000)


@cache
def _dwell(*labels: str) -> Histogram:
    return dwell.labels(*labels)


@cache
def _transitions(*labels: str) -> Counter:
    return transitions.labels(*labels)


def serve_metrics(port: int, host: str, registry: CollectorRegistry = REGISTRY) -> None:
    """Serve the Prometheus endpoint in a thread."""
    start_http_server(port, host, registry)


def _suffixes(kind: str) -> tuple[str, ...]:
    return {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}[kind]
