"""What the journal keeps of an entry, by the name of the event."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.orchestrator.domain.landing.commands import BaseMoved, HeldUp, Landed, Merged, Split
from pointsman.services.orchestrator.domain.landing.enums import QUESTIONS, SETBACKS, EntryEvent
from pointsman.services.orchestrator.domain.landing.model import (
    Below,
    Candidate,
    Finding,
    Proposal,
    Stack,
    Terms,
    Work,
)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The first event."""

    entry_id: str
    queue_id: str
    terms: Terms
    work: Work
    stack: Stack | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """An integrator has it."""

    epoch: int
    agent_id: str
    principal: str


@dataclass(frozen=True, slots=True)
class Linked:
    """A linked run was started."""

    run_id: str


@dataclass(frozen=True, slots=True)
class LinkOver:
    """A linked run has ended."""

    run_id: str
    outcome: str
    work: Work | None = None
    tokens: int = 0
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said."""

    text: str


EVENTS: Mapping[str, type] = {
    str(EntryEvent.ENQUEUED): Enqueued,
    str(EntryEvent.TAKEN): Taken,
    str(EntryEvent.PROVEN): Candidate,
    str(EntryEvent.LANDED): Landed,
    str(EntryEvent.MERGED): Merged,
    str(EntryEvent.BASE_MOVED): BaseMoved,
    str(EntryEvent.SPLIT): Split,
    str(EntryEvent.HELD_UP): HeldUp,
    str(EntryEvent.RESTACKED): Below,
    str(EntryEvent.PROPOSED): Proposal,
    str(EntryEvent.LINKED): Linked,
    str(EntryEvent.RESOLVED): LinkOver,
    str(EntryEvent.LINK_FAILED): LinkOver,
    **{str(event): Finding for event in (*SETBACKS, *QUESTIONS)},
    **{
        str(event): Said
        for event in (EntryEvent.RETRIED, EntryEvent.APPROVED, EntryEvent.REJECTED, EntryEvent.CANCELLED)
    },
}
