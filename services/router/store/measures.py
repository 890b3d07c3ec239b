"""Metrics of the router's events."""

from pointsman.services.chassis.core.machine import Event
from pointsman.services.router import metrics
from pointsman.services.router.domain.decision_record import RoutingDecision


def measure(event: Event) -> None:
    """Counts a decision by mode and confidence."""
    if isinstance(event.data, RoutingDecision):
        metrics.decisions.labels(str(event.data.mode), str(event.data.confidence)).inc()
