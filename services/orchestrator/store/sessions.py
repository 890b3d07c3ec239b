"""Which run of a session is live: a Submit has to know it in the transaction that commits it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from sqlalchemy import Connection, func, select

from pointsman.services.chassis.engine.changes import Change
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.storage.writer import MAX_BATCH
from pointsman.services.orchestrator.domain.commands import Submit
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.store.children import RunChildren

_Session = tuple[str, str]
"""A project and the name of a session in it."""


class Sessions:
    """Looks up the live runs of the sessions that a batch submits to."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        self._database = store.database
        index, journal = children.index.c, store.tables.journal.c
        session = (index.project, index.session_id)
        place = func.row_number().over(partition_by=session, order_by=journal.position).label("place")
        live = (
            select(*session, index.entity_id, place)
            .join(store.tables.journal, (journal.entity_id == index.entity_id) & (journal.seq == 1))
            .where(
                any_of(self._database, index.project, "projects"), any_of(self._database, index.session_id, "sessions")
            )
            .where(index.ended_at_us == 0)
            .subquery()
        )
        first_ones = select(live.c.project, live.c.session_id, live.c.entity_id).where(live.c.place <= MAX_BATCH + 1)
        self._live = PreparedStatement(self._database, first_ones.order_by(live.c.place))

    def read(self, connection: Connection, commands: Sequence[Any]) -> "LiveRuns | None":
        """The live runs as they are now; nothing where no Submit names a session."""
        sessions = {_session(command) for command in commands if isinstance(command, Submit)}
        named = sorted(session for session in sessions if session[1])
        if not named:
            return None
        parameters = {
            "projects": bind_list(self._database, sorted({project for project, _ in named})),
            "sessions": bind_list(self._database, sorted({name for _, name in named})),
        }
        query = _Query(self._database, self._live, parameters)
        return LiveRuns(query, query.start(connection), frozenset(command.entity_id for command in commands))


_Rows = Callable[[], list[tuple[str, str, str]]]
"""Gives project, session and id of live runs, the first submitted first, once the statement is answered."""


@dataclass(frozen=True, slots=True)
class _Query:
    """The lookup of one batch: more runs of a session than a batch could end."""

    database: Database
    statement: PreparedStatement
    parameters: Mapping[str, Any]

    def start(self, connection: Connection) -> _Rows:
        """Ask."""
        rows: _Rows = self.statement.start(connection, self.parameters).fetchall
        return rows


class LiveRuns:
    """The live runs of a batch's sessions: those outside it as they were read, those inside it as they are decided."""

    def __init__(self, query: _Query, rows: _Rows, batch: frozenset[str]) -> None:
        self._query = query
        self._rows = rows
        self._batch = batch
        self._read: dict[_Session, list[str]] | None = None
        self._free: set[_Session] = set()
        """The sessions in which no run outside the batch was live."""

    def complete(self, command: Any, changes: Mapping[str, Change[RunState]]) -> Any:
        """A Submit with the run that it conflicts with, the first of those that live; any other command as it is."""
        if not isinstance(command, Submit) or not command.order.session_id:
            return command
        session = _session(command)
        before = self._before(session)
        if self._batch.issuperset(before):
            self._free.add(session)
        earlier = (run_id for run_id in before if run_id not in changes or not _has_ended(changes[run_id]))
        new = (key for key, change in changes.items() if change.is_new and _is_live(change, session))
        return replace(command, order=replace(command.order, rival_run_id=next(chain(earlier, new), "")))

    def _before(self, session: _Session) -> Sequence[str]:
        """The session's live runs before the batch, the first submitted first."""
        if self._read is None:
            self._read = {}
            for project, name, run_id in self._rows():
                self._read.setdefault((project, name), []).append(run_id)
        return self._read.get(session, ())

    def confirm(self, connection: Connection) -> Callable[[], bool]:
        """Whether no other replica has committed a run to a session that was free.

        The lock of the journal's head is held here: another commit for the session is either before, and visible, or after.
        """
        if not self._query.database.is_postgresql:
            return lambda: True
        rows = self._query.start(connection)
        return lambda: (
            not any((project, name) in self._free and key not in self._batch for project, name, key in rows())
        )


def _session(command: Submit) -> _Session:
    return command.order.project, command.order.session_id


def _has_ended(change: Change[RunState]) -> bool:
    return change.state is None or change.state.run.ended


def _is_live(change: Change[RunState], session: _Session) -> bool:
    if change.state is None or change.state.run.ended:
        return False
    order = change.state.run.order
    return (order.project, order.session_id) == session
