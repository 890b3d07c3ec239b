"""Which run of a session is live: a Submit has to know it in the transaction that commits it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, select

from pointsman.services.chassis.db import Database
from pointsman.services.chassis.ledger import Change
from pointsman.services.chassis.sql import Prepared, among, not_among, packed
from pointsman.services.chassis.store import Store
from pointsman.services.orchestrator.domain.commands import Submit
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.store.children import RunChildren

_Session = tuple[str, str]
"""A project and the name of a session in it."""


class Sessions:
    """Looks up the live runs of the sessions that a batch submits to."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        self._database = store.database
        index = children.index.c
        live = (
            select(index.project, index.session_id, func.min(index.entity_id))
            .where(
                among(self._database, index.project, "projects"), among(self._database, index.session_id, "sessions")
            )
            .where(index.ended_at_us == 0, not_among(self._database, index.entity_id, "batch"))
            .group_by(index.project, index.session_id)
        )
        self._live = Prepared(self._database, live)

    def read(self, connection: Connection, commands: Sequence[Any]) -> "LiveRuns | None":
        """The live runs outside the batch; nothing where no Submit names a session."""
        sessions = {_session(command) for command in commands if isinstance(command, Submit)}
        named = sorted(session for session in sessions if session[1])
        if not named:
            return None
        parameters = {
            "projects": packed(self._database, sorted({project for project, _ in named})),
            "sessions": packed(self._database, sorted({name for _, name in named})),
            "batch": packed(self._database, sorted({command.entity_id for command in commands})),
        }
        query = _Query(self._database, self._live, parameters)
        return LiveRuns(query, query.start(connection))


@dataclass(frozen=True, slots=True)
class _Query:
    """The lookup of one batch."""

    database: Database
    statement: Prepared
    parameters: Mapping[str, Any]

    def start(self, connection: Connection) -> Callable[[], dict[_Session, str]]:
        """Ask; what gives the live run of each session, once the statement is answered."""
        cursor = self.statement.start(connection, self.parameters)
        return lambda: {(project, name): run_id for project, name, run_id in cursor.fetchall()}


class LiveRuns:
    """The live runs of a batch's sessions: those outside it as they were read, those inside it as they are decided."""

    def __init__(self, query: _Query, answer: Callable[[], dict[_Session, str]]) -> None:
        self._query = query
        self._answer = answer
        self._outside: dict[_Session, str] | None = None
        self._free: set[_Session] = set()
        """The sessions in which a run went on because there was no other outside the batch."""

    def complete(self, command: Any, changes: Mapping[str, Change[RunState]]) -> Any:
        """A Submit with the run that it conflicts with; any other command as it is."""
        if not isinstance(command, Submit) or not command.order.session_id:
            return command
        if self._outside is None:
            self._outside = self._answer()
        session = _session(command)
        outside = self._outside.get(session, "")
        if not outside:
            self._free.add(session)
        rival = outside or next((key for key, change in changes.items() if _is_live(change, session)), "")
        return replace(command, order=replace(command.order, rival_run_id=rival))

    def confirm(self, connection: Connection) -> Callable[[], bool]:
        """Whether no other replica has committed a run to a session that was free.

        The lock of the journal's head is held by now: whoever commits a run of the session comes before, and is seen, or after.
        """
        if not self._query.database.is_postgresql:
            return lambda: True
        answer = self._query.start(connection)
        return lambda: self._free.isdisjoint(answer())


def _session(command: Submit) -> _Session:
    return command.order.project, command.order.session_id


def _is_live(change: Change[RunState], session: _Session) -> bool:
    if change.state is None or change.state.run.ended:
        return False
    order = change.state.run.order
    return (order.project, order.session_id) == session
