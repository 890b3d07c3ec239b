"""Transitions with what their spans need: values of the journal row and of the rows before it."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from pointsman._shared.otlp import exports_genai
from pointsman.services.chassis.core.machine import Machine

MAX_ENTITIES = 4096

Row = tuple[Any, ...]
"""A journal row: JOURNAL_COLUMNS, then its traceparent."""


class JournaledTransition(NamedTuple):
    """One journal row, completed with what its span needs from earlier rows of the entity."""

    entity_id: str
    seq: int
    position: int
    kind: str
    project: str
    run_id: str
    event: str
    source: str
    target: str
    actor: str
    at_us: int
    cause: str
    """The trace context of the call that led to it."""
    before_us: int | None
    """When the entity's transition before was committed."""
    run_before: str | None
    """The run of the entity before this transition."""
    created_at_us: int
    outer: str
    """The trace context of the call that created the entity."""
    owner: str
    """The trace context of the call with which the entity joined its run."""


class KindStates(NamedTuple):
    """The states of one kind of entity that its spans depend on."""

    terminal: frozenset[str] = frozenset()
    """A kind without terminal states never ends: its entities have no span of their own."""
    failed: frozenset[str] = frozenset()
    genai_operation: str = ""
    """Set where the GenAI semantic conventions are opted in to."""


def states_by_kind(machines: Sequence[Machine[Any]]) -> dict[str, KindStates]:
    """The states of each machine, by its kind."""
    opted_in = exports_genai()
    return {
        machine.kind: KindStates(machine.terminal, machine.failed, machine.genai_operation if opted_in else "")
        for machine in machines
    }


JOURNAL_COLUMNS = JournaledTransition._fields[: JournaledTransition._fields.index("cause")]
_sequence_columns = itemgetter(
    *(JournaledTransition._fields.index(name) for name in ("entity_id", "seq", "position", "run_id"))
)


class LastTransitions:
    """The last transition of recent entities, so that predecessors are looked up only for the others.

    A join that adds the predecessor to every row costs PostgreSQL ten times as much as the row itself.
    """

    def __init__(self) -> None:
        self._last: dict[str, JournaledTransition] = {}

    def unknown(self, rows: Sequence[Row]) -> list[int]:
        """The positions of rows whose predecessor is not remembered."""
        unknown = []
        seen: dict[str, tuple[int, str]] = {}
        for entity_id, seq, position, run_id in map(_sequence_columns, rows):
            before = seen.get(entity_id)
            if before is None and (last := self._last.get(entity_id)) is not None:
                before = (last.seq, last.run_id)
            if seq > 1 and before != (seq - 1, run_id):
                unknown.append(position)
            seen[entity_id] = (seq, run_id)
        return unknown

    def complete(self, rows: Sequence[Row], predecessors: Mapping[int, Sequence[Any]]) -> list[JournaledTransition]:
        """The rows, completed from remembered transitions or from the predecessors given by position."""
        transitions = [self._complete(row, predecessors) for row in rows]
        while len(self._last) > MAX_ENTITIES:
            del self._last[next(iter(self._last))]
        return transitions

    def _complete(self, row: Row, predecessors: Mapping[int, Sequence[Any]]) -> JournaledTransition:
        entity_id, seq, position, _ = _sequence_columns(row)
        last = self._last.pop(entity_id, None)
        predecessor = predecessors.get(position)
        if predecessor is None and last is not None and seq > 1:
            predecessor = (last.at_us, last.run_id, last.created_at_us, last.outer, last.owner)
        elif predecessor is None:
            at_us, cause = row[-2:]
            predecessor = (None, None, at_us, cause, cause)
        transition = self._last[entity_id] = JournaledTransition(*row, *predecessor)
        return transition
