"""Prometheus metrics of the router."""

from prometheus_client import Counter

from pointsman.services.chassis.telemetry.metrics import declare

decisions = declare(
    Counter("pointsman_router_decisions", "Routing decisions by mode and confidence.", ("mode", "confidence")),
    "decisions",
)
