"""Transitions with what their spans are told from: plain values, and what is remembered from one to the next."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from pointsman.services.chassis.core.machine import Machine

MAX_ENTITIES = 4096

Row = tuple[Any, ...]
"""A row of a journal, with the columns in the order of JOURNAL_COLUMNS and its trace as the last one."""


class JournaledTransition(NamedTuple):
    """One transition with what its span needs; all of it is in the journal, so that it is the same at any time."""

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
    """The context of the call that led to it."""
    before_us: int | None
    """When its entity moved before."""
    run_before: str | None
    """To which run its entity belonged before."""
    created_at_us: int
    outer: str
    """The context of the call that created its entity."""
    owner: str
    """The context of the call that gave its entity to its run."""


class KindStates(NamedTuple):
    """The states of one kind of entity that its spans depend on."""

    terminal: frozenset[str] = frozenset()
    """A kind without terminal states never ends: its entities have no span of their own."""
    failed: frozenset[str] = frozenset()


def states_by_kind(machines: Sequence[Machine[Any]]) -> dict[str, KindStates]:
    """The states of each machine, by its kind."""
    return {machine.kind: KindStates(machine.terminal, machine.failed) for machine in machines}


JOURNAL_COLUMNS = JournaledTransition._fields[: JournaledTransition._fields.index("cause")]
_sequence_columns = itemgetter(
    *(JournaledTransition._fields.index(name) for name in ("entity_id", "seq", "position", "run_id"))
)


class LastTransitions:
    """What was told last of each entity: what came before a transition is looked up only where that does not say it.

    Joined with every row, it costs PostgreSQL ten times as much as the row itself.
    """

    def __init__(self) -> None:
        self._last: dict[str, JournaledTransition] = {}

    def unknown(self, rows: Sequence[Row]) -> list[int]:
        """The positions of transitions that do not follow on the last one that is known of their entity."""
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

    def steps(self, rows: Sequence[Row], pasts: Mapping[int, Sequence[Any]]) -> list[JournaledTransition]:
        """The rows with what came before them, looked up where it was unknown."""
        steps = [self._step(row, pasts) for row in rows]
        while len(self._last) > MAX_ENTITIES:
            del self._last[next(iter(self._last))]
        return steps

    def _step(self, row: Row, pasts: Mapping[int, Sequence[Any]]) -> JournaledTransition:
        entity_id, seq, position, _ = _sequence_columns(row)
        last = self._last.pop(entity_id, None)
        past = pasts.get(position)
        if past is None and last is not None and seq > 1:
            past = (last.at_us, last.run_id, last.created_at_us, last.outer, last.owner)
        elif past is None:
            at_us, cause = row[-2:]
            past = (None, None, at_us, cause, cause)
        step = self._last[entity_id] = JournaledTransition(*row, *past)
        return step
