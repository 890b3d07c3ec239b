"""Effects and timers as a context receives them: rows of the outbox and of the timers, with ids that stay the same."""

from dataclasses import dataclass
from typing import Any

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.telemetry.context import current_request, current_traceparent

LEASE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class PendingEffect:
    """An effect that is being delivered; its id is the same for every try."""

    entity_id: str
    seq: int
    number: int
    kind: str
    payload: str
    project: str
    traceparent: str
    created_at_us: int
    attempts: int

    @property
    def effect_id(self) -> str:
        """The idempotency key of the delivery and of its acknowledgement."""
        return f"{self.entity_id}:{self.seq}:{self.number}"

    def data(self, expected: Any) -> Any:
        """The payload as the domain's value."""
        return from_json(self.payload, expected)


@dataclass(frozen=True, slots=True)
class FiredTimer:
    """A timer that is due."""

    entity_id: str
    name: str
    seq: int
    payload: str
    project: str
    traceparent: str
    attempts: int

    @property
    def timer_id(self) -> str:
        """The idempotency key of the firing; a timer that was set again has another one."""
        return f"timer:{self.entity_id}:{self.name}:{self.seq}"

    def data(self, expected: Any) -> Any:
        """The payload as the domain's value."""
        return from_json(self.payload, expected)


Delivery = PendingEffect | FiredTimer


def pending_effect(row: Any) -> PendingEffect:
    """A row of the outbox as an effect."""
    return PendingEffect(*(row[name] for name in PendingEffect.__slots__))


def fired_timer(row: Any) -> FiredTimer:
    """A row of the timers as a timer."""
    return FiredTimer(*(row[name] for name in FiredTimer.__slots__))


def set_log_context(delivery: Delivery) -> None:
    """Let log lines and spans of this task name the delivery's trace and entity."""
    current_traceparent.set(delivery.traceparent)
    current_request.set(delivery)
