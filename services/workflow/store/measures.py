"""The metrics of workflow events."""

from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.workflow.domain.events import TaskRetried, TasksSettled


def measure(event: Event) -> None:
    """Counts retried tasks."""
    if isinstance(event.data, TaskRetried):
        metrics.retries.labels("task").inc()
    elif isinstance(event.data, TasksSettled):
        metrics.retries.labels("task").inc(len(event.data.retried))
