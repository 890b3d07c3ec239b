"""The numbers that matter, each declared once with its unit and one sentence, kept by Prometheus' own library."""

from collections import Counter as tallied  # noqa: N813 - Counter is a number of Prometheus here
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from pointsman.services.chassis.telemetry.recording import call_recorder

SECONDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 600, 3600, 86400)
CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 60)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

transitions = Counter(
    "pointsman_transitions", "Committed transitions by the state they lead to.", ("store", "kind", "event", "state")
)
dwell = Histogram(
    "pointsman_state_dwell_seconds",
    "How long an entity was in a state before it left it.",
    ("store", "kind", "state"),
    buckets=SECONDS,
)
batch_size = Histogram("pointsman_commit_batch_size", "Writes joined into one commit.", ("store",), buckets=SIZES)
commit_seconds = Histogram(
    "pointsman_commit_seconds", "How long a batch took from its begin to its commit.", ("store",), buckets=CALL_SECONDS
)
calls = Histogram(
    "pointsman_rpc_seconds", "How long calls took, by their outcome.", ("method", "code"), buckets=CALL_SECONDS
)
outbox_pending = Gauge("pointsman_outbox_pending", "Effects that are not acknowledged yet.", ("store",))
outbox_lag = Gauge("pointsman_outbox_lag_seconds", "Age of the oldest effect that is not acknowledged.", ("store",))
timers_late = Gauge("pointsman_timers_late_seconds", "How long the timer that is due longest has been due.", ("store",))
deliveries = Counter(
    "pointsman_deliveries",
    "Deliveries of effects by kind and result: done, postponed, refused.",
    ("store", "kind", "result"),
)
queue_depth = Gauge("pointsman_queue_depth", "Assignments that wait for an agent, by capability.", ("capability",))
queue_age = Gauge(
    "pointsman_queue_age_seconds", "Age of the assignment that waits longest, by capability.", ("capability",)
)
lease_expiries = Counter(
    "pointsman_lease_expiries", "Leases of assignments that ran out, by capability.", ("capability",)
)
decisions = Counter("pointsman_router_decisions", "Routing decisions by mode and confidence.", ("mode", "confidence"))
retries = Counter("pointsman_retries", "Work that is done again, by what: assignment, stage, task.", ("what",))
forced_stages = Counter(
    "pointsman_forced_stages", "Stages that went on without a proof, by why: a correction's name.", ("cause",)
)
barrier_waits = Counter(
    "pointsman_barrier_waits",
    "Members that waited at a barrier, and how barriers ended: resolved, timed_out.",
    ("how",),
)
rejected_claims = Counter(
    "pointsman_rejected_claims", "Claims of work that were not accepted, by who or what rejected them.", ("cause",)
)
spans_sent = Counter("pointsman_spans_sent", "Transitions that arrived at the collector as spans.", ("store",))
span_lag = Gauge(
    "pointsman_span_lag_seconds", "Age of the oldest transition that is not at the collector yet.", ("store",)
)
spans_dropped = Counter(
    "pointsman_spans_dropped", "Spans of calls, commits and agents that were dropped; transitions never are."
)
http_requests = Counter("pointsman_http_requests", "Requests that the gateway answered, by HTTP status.", ("status",))
event_streams = Gauge("pointsman_event_streams", "Event streams that the gateway holds open.")

UNITS: Mapping[Counter | Gauge | Histogram, str] = {
    transitions: "transitions", dwell: "seconds", batch_size: "writes", commit_seconds: "seconds", calls: "seconds",
    outbox_pending: "effects", outbox_lag: "seconds", timers_late: "seconds", deliveries: "deliveries",
    queue_depth: "assignments", queue_age: "seconds", lease_expiries: "leases", decisions: "decisions",
    retries: "retries", forced_stages: "stages", barrier_waits: "waits", rejected_claims: "claims",
    spans_sent: "transitions", span_lag: "seconds", spans_dropped: "spans", http_requests: "requests",
    event_streams: "streams",
}  # fmt: skip
"""What each number counts; Prometheus asks for it in a name only where it is a measure, such as seconds."""
DECLARED = tuple(UNITS)


class CallTimes:
    """The times of one RPC, with its labels looked up once for each code."""

    def __init__(self, method: str) -> None:
        self._method = method
        self._by_code: dict[str, Histogram] = {}

    def observe(self, code: str, seconds: float) -> None:
        """Count one call."""
        times = self._by_code.get(code)
        if times is None:
            times = self._by_code[code] = calls.labels(self._method, str(code))
        times.observe(seconds)
        if call_recorder.is_on:
            call_recorder.call_served(self._method, str(code), seconds)


def declared_names() -> set[str]:
    """Every name that a dashboard or an alert may use."""
    families = [family for metric in DECLARED for family in metric.describe()]
    return {family.name + suffix for family in families for suffix in _suffixes(family.type)}


def count_transitions(store: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Count what a batch has committed; the same transitions at once, each number has a lock."""
    counted = tallied((row["kind"], row["event"], row["target"]) for row in rows)
    for labels, count in counted.items():
        _transitions(store, *labels).inc(count)


def observe_dwells(store: str, kind: str, left: Iterable[tuple[str, int]]) -> None:
    """Take the times, in microseconds, that entities of a batch were in the states they left."""
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
    """Answer scrapes in a thread of their own."""
    start_http_server(port, host, registry)


def _suffixes(kind: str) -> tuple[str, ...]:
    return {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}[kind]
