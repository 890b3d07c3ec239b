"""What the events of runs mean in numbers, and how long work waits for agents."""

from collections.abc import Callable

from sqlalchemy import Connection, func, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.telemetry.metrics import retries
from pointsman.services.orchestrator import metrics
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.domain.events import AssignmentRetried, TaskJudged
from pointsman.services.orchestrator.store.children import OPEN, RunChildren

JUDGES = frozenset({"rule", "reviewer", "verifier", "person"})


def measure(event: Event) -> None:
    """Count attempts that failed and claims that nobody believed."""
    if isinstance(event.data, AssignmentRetried):
        retries.labels("assignment").inc()
    elif isinstance(event.data, TaskJudged) and event.data.accepted is False:
        judge = event.data.judge
        metrics.rejected_claims.labels(judge if judge in JUDGES else "other").inc()


def queue_gauge(store: Store, children: RunChildren) -> Callable[[Connection], None]:
    """A function that reads how many assignments wait for an agent, and how long the oldest does, by capability."""
    table = children.assignments
    waiting = (
        select(table.c.capability, func.count(), func.min(table.c.created_at_us))
        .where(table.c.status == OPEN)
        .group_by(table.c.capability)
    )

    def read(connection: Connection) -> None:
        now_us = to_us(store.database.clock.now())
        found = {name: (count, oldest_us) for name, count, oldest_us in connection.execute(waiting)}
        for capability in map(str, Capability):
            count, oldest_us = found.get(capability, (0, now_us))
            metrics.queue_depth.labels(capability).set(count)
            metrics.queue_age.labels(capability).set(max(0, now_us - oldest_us) / 1_000_000)

    return read
