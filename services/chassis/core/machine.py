"""The types of state machines. Pure: no clock, no randomness, no input or output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

State = TypeVar("State")


class Command(Protocol):
    """A request to change one entity; each kind is a frozen dataclass of the domain."""

    @property
    def entity_id(self) -> str:
        """The entity it is for; a command that creates one carries the new id."""


class Event(msgspec.Struct, frozen=True):
    """One transition, as the journal stores it; applying all events of an entity gives its state."""

    name: str
    source: str
    target: str
    data: Any


class Effect(msgspec.Struct, frozen=True):
    """Something to do outside the store after the commit, at least once, in order."""

    kind: str
    data: Any


class SetTimer(msgspec.Struct, frozen=True):
    """A durable wake-up of the entity; it replaces an earlier timer of the same name."""

    name: str
    due_at: datetime
    data: Any = None


class CancelTimer(msgspec.Struct, frozen=True):
    """Delete the timer of this name, if there is one."""

    name: str


class Decision(msgspec.Struct, frozen=True):
    """What a command leads to, committed as a whole or not at all."""

    events: Sequence[Event]
    answer: Any
    effects: Sequence[Effect] = ()
    timers: Sequence[SetTimer | CancelTimer] = ()
    drop_effects: bool = False
    """Delete this entity's undelivered effects and timers first (cancel, terminal states)."""
    state: Any = None
    """The state after all events, if the machine has applied them while deciding; else the engine applies them."""


@dataclass(frozen=True, slots=True)
class Machine(Generic[State]):
    """One kind of entity: `decide`, `apply`, its event and answer types, its terminal states."""

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
    """States without further transitions: the entity's span ends there."""
    failed: frozenset[str] = frozenset()
    """The states that mean failure: a span that leads into one has status ERROR."""
    genai_operation: str = ""
    """The operation of the GenAI semantic conventions that an entity's span stands for; empty for none."""
