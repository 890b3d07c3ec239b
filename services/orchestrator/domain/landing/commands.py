"""What people, the integrator and the engine ask of an entry."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.orchestrator.domain.landing.enums import EntryReply
from pointsman.services.orchestrator.domain.landing.model import (
    Below,
    Candidate,
    Finding,
    Layer,
    Proposal,
    Stack,
    Terms,
    Work,
)


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Put a run's accepted work into a queue."""

    entity_id: str
    queue_id: str
    terms: Terms
    work: Work


@dataclass(frozen=True, slots=True)
class Take:
    """The holder of the queue's lease begins to work on it."""

    entity_id: str
    epoch: int
    agent_id: str
    principal: str


@dataclass(frozen=True, slots=True)
class BaseMoved:
    """The target is not where it was: everything again, on the new tip."""

    tip: str


@dataclass(frozen=True, slots=True)
class Landed:
    """The target is at the proven tip."""

    commit: str


@dataclass(frozen=True, slots=True)
class Merged:
    """Somebody else has brought the work into the target."""

    commit: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """The layers of the work, the lowest first."""

    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class HeldUp:
    """Something is in the way for now; nothing any more, where the text is empty."""

    text: str


Report = Candidate | Landed | BaseMoved | Finding | Proposal | Merged | Split | HeldUp
"""What an integrator can say: proven, landed, moved, a setback or question, proposed, merged by another, split, held up."""


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """What the integrator found or did."""

    entity_id: str
    epoch: int
    principal: str
    report: Report


@dataclass(frozen=True, slots=True)
class PutLayer:
    """The layer below says where this one stands now; the first time, the layer comes into being."""

    entity_id: str
    queue_id: str
    terms: Terms
    work: Work
    stack: Stack
    """Its place, with what it goes onto now."""
    orphaned_by: str = ""
    """How a person has ended the layer below."""

    @property
    def on(self) -> Below:
        """What it goes onto now."""
        return self.stack.on


@dataclass(frozen=True, slots=True)
class LinkStarted:
    """The linked run is there."""

    entity_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class LinkRefused:
    """The linked run could not be started."""

    entity_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class LinkEnded:
    """A linked run has ended; with its work where it was accepted."""

    entity_id: str
    run_id: str
    outcome: str
    work: Work | None = None
    tokens: int = 0
    cost_micros: int = 0


@dataclass(frozen=True, slots=True)
class AnswerEntry:
    """A person answers."""

    entity_id: str
    reply: EntryReply
    text: str = ""


@dataclass(frozen=True, slots=True)
class CancelEntry:
    """Take it out of the queue; branch and bundle stay."""

    entity_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EntryAck:
    """The entry after the command."""

    entry_id: str
    status: str


ANSWERS: Mapping[type, type] = dict.fromkeys(
    (Enqueue, Take, ReportEntry, PutLayer, LinkStarted, LinkRefused, LinkEnded, AnswerEntry, CancelEntry), EntryAck
)
