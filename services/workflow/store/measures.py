"""What the events of workflows mean in numbers."""

from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.workflow.domain.events import TaskRetried, TasksSettled


def measure(event: Event) -> None:
    """Count the tasks that are done again."""
    if isinstance(event.data, TaskRetried):
        metrics.retries.labels("task").inc()
    elif isinstance(event.data, TasksSettled):
        metrics.retries.labels("task").inc(len(event.data.retried))
