"""The words in which every state machine is written. Pure: no clock, no randomness, no input or output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

State = TypeVar("State")


class Command(Protocol):
    """What somebody asks of one entity; each kind is a frozen dataclass of the domain."""

    @property
    def entity_id(self) -> str:
        """The entity it is for; a command that creates one carries the new id."""


class Event(msgspec.Struct, frozen=True):
    """One transition: the journal keeps it, and folding all of them gives the state again."""

    name: str
    source: str
    target: str
    data: Any


class Effect(msgspec.Struct, frozen=True):
    """Something to be done outside this store after the commit, at least once, in the order given."""

    kind: str
    data: Any


class SetTimer(msgspec.Struct, frozen=True):
    """Wake the entity at a time, also when no client is there; the same name replaces the earlier one."""

    name: str
    due_at: datetime
    data: Any = None


class CancelTimer(msgspec.Struct, frozen=True):
    """Forget the timer of this name, if there is one."""

    name: str


class Decision(msgspec.Struct, frozen=True):
    """What a command leads to: nothing of it happens unless all of it is committed."""

    events: Sequence[Event]
    answer: Any
    effects: Sequence[Effect] = ()
    timers: Sequence[SetTimer | CancelTimer] = ()
    drop_effects: bool = False
    """Delete this entity's undelivered effects and timers first (cancel, terminal states)."""
    state: Any = None
    """The state with every event folded in, from a machine that folds as it decides: it is not folded again."""


@dataclass(frozen=True, slots=True)
class Machine(Generic[State]):
    """One kind of entity: how it decides, how it changes, and the types its journal holds."""

    kind: str
    version: int
    state_type: type[State]
    decide: Callable[[State | None, Any, datetime], Decision]
    apply: Callable[[State | None, Event, datetime], State]
    status: Callable[[State], str]
    run_id: Callable[[State], str]
    events: Mapping[str, type]
    answers: Mapping[type, type]
    terminal: frozenset[str] = frozenset()
    """The states after which nothing comes: the entity's span ends there."""
    failed: frozenset[str] = frozenset()
    """The states that mean failure: a span that leads into one has status ERROR."""
