"""The machine of a recorded thinking decision: stores the envelope, never the values of the snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pointsman.services.chassis.core.machine import Decision, Event, Machine
from pointsman.services.router.domain.thinking import Envelope

KIND = "thinking"
RECORDED = "RECORDED"


class ThinkingEvent(StrEnum):
    """Journal events of a thinking decision."""

    THINKING_ROUTED = "THINKING_ROUTED"


@dataclass(frozen=True, slots=True)
class Routed:
    """State of a thinking decision: its envelope and run."""

    envelope: Envelope
    run_id: str


@dataclass(frozen=True, slots=True)
class RecordThinking:
    """Records a decision that was made from a snapshot."""

    entity_id: str
    routed: Routed


def decide(_state: Routed | None, command: RecordThinking, _now: datetime) -> Decision:
    """Records the decision."""
    event = Event(ThinkingEvent.THINKING_ROUTED, "", RECORDED, command.routed)
    return Decision([event], command.routed.envelope)


def apply(_state: Routed | None, event: Event, _at: datetime) -> Routed:
    """Applies the only event."""
    routed: Routed = event.data
    return routed


EVENTS: Mapping[str, type] = {ThinkingEvent.THINKING_ROUTED: Routed}

MACHINE: Machine[Routed] = Machine(
    kind=KIND,
    version=1,
    state_type=Routed,
    decide=decide,
    apply=apply,
    status=lambda _routed: RECORDED,
    run_id=lambda routed: routed.run_id,
    events=EVENTS,
    answers={RecordThinking: Envelope},
)
