"""What the router's events mean in numbers."""

from pointsman.services.chassis import metrics
from pointsman.services.chassis.machine import Event
from pointsman.services.router.domain.record import Made


def measure(event: Event) -> None:
    """Count a decision by its mode and confidence."""
    if isinstance(event.data, Made):
        metrics.decisions.labels(str(event.data.mode), str(event.data.confidence)).inc()
