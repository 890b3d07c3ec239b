"""Prometheus metrics of the orchestrator."""

from prometheus_client import Counter, Gauge

from pointsman.services.chassis.telemetry.metrics import declare

queue_depth = declare(
    Gauge("pointsman_queue_depth", "Assignments that wait for an agent, by capability.", ("capability",)), "assignments"
)
queue_age = declare(
    Gauge("pointsman_queue_age_seconds", "Age of the assignment that waits longest, by capability.", ("capability",)),
    "seconds",
)
lease_expiries = declare(
    Counter("pointsman_lease_expiries", "Leases of assignments that ran out, by capability.", ("capability",)), "leases"
)
rejected_claims = declare(
    Counter(
        "pointsman_rejected_claims", "Claims of work that were not accepted, by who or what rejected them.", ("cause",)
    ),
    "claims",
)
