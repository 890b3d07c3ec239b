"""Values of one transaction: commands on their way, entities in memory, and what contexts add to a batch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.machine import Command, Event
from pointsman.services.chassis.engine.deliveries import Delivery

State = TypeVar("State")
AttachChildren = Callable[[Mapping[str, State]], None]
"""Adds child rows to the states of their entities, once both are loaded."""
TransitionKey = tuple[str, str, int]
"""A transition by its trace context, its entity and its seq."""


class AnswerKey(NamedTuple):
    """Names an idempotency record: each principal has request ids of its own."""

    project: str
    principal: str
    request_id: str


@dataclass(slots=True)
class Submission:
    """A command with its caller and with the effect or timer that it acknowledges."""

    command: Command
    caller: Caller
    acknowledges: Delivery | None = None
    transition: TransitionKey | None = None
    """The last transition that it led to; set only while spans are exported."""

    @property
    def key(self) -> AnswerKey:
        """The key of its idempotency record."""
        return AnswerKey(self.caller.project, self.caller.principal, self.caller.request_id)


@dataclass(slots=True)
class Change(Generic[State]):
    """An entity within one batch: as loaded, and as the commands of the batch have changed it."""

    entity_id: str
    project: str
    state: State | None
    version: int
    digest: str
    loaded_version: int
    traceparent: str
    """The trace context of its run, else its own."""
    created_at_us: int
    entered_at_us: int
    """When it entered its present state."""
    at: datetime
    joined_run: bool = False
    """Whether this batch has assigned it to a run, or to another run."""
    is_shared: bool = False
    """Whether its state came with the decision: nobody changes that object any more, so it may be cached."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Its journal rows of this batch."""
    events: list[Event] = field(default_factory=list)
    """Its events of this batch, in order: child rows are written from them."""
    trace: str = ""
    """The trace context of its last transition: an entity without an end is recorded in its caller's trace."""
    transition: TransitionKey | None = None
    """Its last transition; set only while spans are exported."""

    @property
    def is_new(self) -> bool:
        """Whether this batch creates the entity."""
        return self.loaded_version == 0


class Children(Protocol[State]):
    """Rows of an entity beyond its body: loaded by slice, saved by what changed."""

    body_type: type

    def body(self, state: State) -> Any:
        """The part of the state that is stored in the entity's row."""

    def state(self, body: Any) -> State:
        """A state with that body and no children loaded yet."""

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> "AttachChildren[State] | None":
        """Start to load the child rows that the commands need, in the pipeline that loads their entities."""

    def save(self, connection: Connection, changes: Sequence[Change[State]]) -> None:
        """Write the child rows of changed entities, one statement per table, in the pipeline of the batch."""


class Premise(Protocol[State]):
    """What the commands of a batch have to know about other entities, read in their own transaction."""

    def complete(self, command: Any, changes: Mapping[str, Change[State]]) -> Any:
        """Add to the command what holds when it is decided, after the commands of the batch before it."""

    def confirm(self, connection: Connection) -> Callable[[], bool]:
        """Read it again while the journal's head is locked; the returned function says whether it still holds."""


Premises = Callable[[Connection, Sequence[Any]], Premise[State] | None]
"""Starts to read what the commands of a batch have to know; None where no command has to know anything."""
