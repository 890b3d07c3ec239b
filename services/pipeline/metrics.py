"""Prometheus metrics of the pipeline."""

from prometheus_client import Counter

from pointsman.services.chassis.telemetry.metrics import declare

forced_stages = declare(
    Counter("pointsman_forced_stages", "Stages that went on without a proof, by why: a correction's name.", ("cause",)),
    "stages",
)
barrier_waits = declare(
    Counter(
        "pointsman_barrier_waits",
        "Members that waited at a barrier, and how barriers ended: resolved, timed_out.",
        ("how",),
    ),
    "waits",
)
