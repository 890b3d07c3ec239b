"""What the router's events mean in numbers."""

from pointsman.services.chassis.core.machine import Event
from pointsman.services.router import metrics
from pointsman.services.router.domain.decision import RoutingDecision


def measure(event: Event) -> None:
    """Count a decision by its mode and confidence."""
    if isinstance(event.data, RoutingDecision):
        metrics.decisions.labels(str(event.data.mode), str(event.data.confidence)).inc()
