"""The statements of the queue of assignments, built once."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, Text, Update, bindparam, func, literal_column, or_, select

from pointsman.services.chassis.storage.bulk import upsert_rows
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS
from pointsman.services.orchestrator.store.children import LEASED, OPEN, RunChildren, holder_of, secrets_of
from pointsman.services.orchestrator.store.polling import LeaseKey, run_of

LEASE = (
    "status", "agent_id", "epoch", "attempt", "lease_until_us", "poll_id", "principal", "principal_epoch", "apart_epoch",
    "secret_digests", "secret_epoch",
)  # fmt: skip
MOST_LOST = 1000
DIGESTS_LENGTH = 4 * 65
"""Room for the digests of a lease's last four secrets, with the spaces between them."""
EXHAUSTED = ("entity_id", "assignment_id", "epoch", "project", "traceparent", "capability")


class Kind(NamedTuple):
    """Work of one kind, as much of it as is looked at."""

    project: str
    capability: str
    limit: int
    repositories: frozenset[str]
    runs: frozenset[str] = frozenset()
    """Of these runs only; none means every run whose work is not reserved."""


class Queue:
    """The statements that read and write open and leased assignments."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        table = children.assignments
        database, columns = store.database, table.c
        self._database = database
        self._row = _row_maker(table)
        until_us = columns.lease_until_us
        is_over = or_(until_us < bindparam("now_us"), until_us > bindparam("far_us"))
        self._open = _offered(database, table, columns.status == literal_column(f"'{OPEN}'"))
        self._ran_out = _offered(
            database,
            table,
            columns.status == literal_column(f"'{LEASED}'"),
            is_over,
            columns.attempt < literal_column(str(MAX_ATTEMPTS)),
        )
        self._given = PreparedStatement(
            database,
            select(table).where(
                any_of(database, columns.poll_id, "polls"), columns.status == literal_column(f"'{LEASED}'")
            ),
        )
        self.lease = upsert_rows(database, table, ("entity_id", "assignment_id"), LEASE, "epoch")
        mine = (columns.entity_id == bindparam("of_entity")) & (columns.assignment_id == bindparam("of_assignment"))
        held = table.update().where(
            mine,
            columns.epoch == bindparam("of_epoch"),
            columns.agent_id == bindparam("of_agent"),
            columns.project == bindparam("of_project"),
            or_(holder_of(table) == literal_column("''"), holder_of(table) == bindparam("of_principal")),
            or_(secrets_of(table) == literal_column("''"), secrets_of(table).contains(bindparam("of_digest"))),
            columns.status == LEASED,
        )
        self.add_secret = _add_secret(table, mine)
        granted = any_of(database, columns.capability, "of_capabilities")
        renewed = held.where(granted).values(lease_until_us=bindparam("new_until"))
        self.renew = PreparedStatement(database, renewed)
        self.give_back = held.values(
            status=OPEN, agent_id="", poll_id="", lease_until_us=0, attempt=columns.attempt - 1
        )
        self.repository = select(columns.repository_id).where(mine)
        self._trace = select(columns.entity_id, columns.assignment_id, columns.epoch, columns.traceparent).where(mine)
        self.busy = (
            select(columns.project, func.count().label("held"))
            .where(columns.status == LEASED)
            .group_by(columns.project)
        )
        overdue = select(*(columns[name] for name in EXHAUSTED)).where(columns.status == LEASED, is_over)
        self.exhausted = overdue.where(columns.attempt >= MAX_ATTEMPTS).limit(bindparam("limit"))
        may_go_on = overdue.add_columns(columns.agent_id, columns.attempt).where(columns.attempt < MAX_ATTEMPTS)
        self.lost = may_go_on.limit(MOST_LOST)
        self._authors = _authors_of(store, children)
        self._bodies = _bodies_of(store)
        self._documents = _documents_of(store, children)

    def bodies(self, connection: Connection, run_ids: list[str]) -> list[tuple[Any, ...]]:
        """The runs' bodies."""
        return self._bodies.fetch(connection, {"values": bind_list(self._database, run_ids)})

    def documents(self, connection: Connection, run_ids: list[str]) -> list[tuple[Any, ...]]:
        """The runs' documents."""
        return self._documents.fetch(connection, {"values": bind_list(self._database, run_ids)})

    def authors(self, connection: Connection, run_ids: list[str]) -> frozenset[tuple[Any, ...]]:
        """Each agent of the runs with the principal that it worked for."""
        return frozenset(self._authors.fetch(connection, {"values": bind_list(self._database, run_ids)}))

    def named(self, connection: Connection, key: LeaseKey) -> dict[str, Any]:
        """The lease, and where in the run's trace its work is."""
        wanted = {"of_entity": run_of(key.assignment_id), "of_assignment": key.assignment_id}
        return connection.execute(self._trace, wanted).one()._asdict()

    def open(self, connection: Connection, kind: Kind) -> list[Any]:
        """Open work of one kind, the most urgent first."""
        return list(map(self._row, self._open[bool(kind.runs)].fetch(connection, self._bound(kind))))

    def ran_out(self, connection: Connection, kind: Kind, over: dict[str, int]) -> list[Any]:
        """Work of one kind whose lease ran out and that may be tried again."""
        return list(map(self._row, self._ran_out[bool(kind.runs)].fetch(connection, {**self._bound(kind), **over})))

    def _bound(self, kind: Kind) -> dict[str, Any]:
        bound = {**kind._asdict(), "repositories": bind_list(self._database, sorted(kind.repositories))}
        runs = bound.pop("runs")
        return bound | ({"runs": bind_list(self._database, sorted(runs))} if runs else {})

    def given(self, connection: Connection, polls: list[str]) -> list[Any]:
        """Live leases that these polls were given."""
        return list(map(self._row, self._given.fetch(connection, {"polls": bind_list(self._database, polls)})))


def _offered(database: Database, table: Table, *status: ColumnElement[bool]) -> dict[bool, PreparedStatement]:
    """Work of one kind, the most urgent first: of every run whose work is not reserved, or (True) of named runs."""
    columns = table.c
    of_kind: Any = (
        select(table)
        .where(columns.project == bindparam("project"), columns.capability == bindparam("capability"))
        .where(any_of(database, columns.repository_id, "repositories"), *status)
        .order_by(columns.priority, columns.created_at_us)
        .limit(bindparam("limit"))
    )
    if database.features.skip_locked:
        of_kind = of_kind.with_for_update(skip_locked=True)
    shared, of_runs = columns.reserved == literal_column("0"), any_of(database, columns.entity_id, "runs")
    return {
        whose: PreparedStatement(database, of_kind.where(part)) for whose, part in ((False, shared), (True, of_runs))
    }


def _add_secret(table: Table, mine: ColumnElement[bool]) -> Update:
    """Puts a new secret before those that a lease has; the oldest of too many falls out."""
    return (
        table.update()
        .where(
            mine,
            table.c.epoch == bindparam("of_epoch"),
            table.c.poll_id == bindparam("of_poll"),
            table.c.status == LEASED,
        )
        .values(
            secret_digests=func.substr(
                bindparam("new_digest", type_=Text) + literal_column("' '") + secrets_of(table), 1, DIGESTS_LENGTH
            ),
            secret_epoch=table.c.epoch,
        )
    )


def _row_maker(table: Table) -> Callable[[Any], Any]:
    """What makes a driver's tuple a row with names."""
    shape: Any = namedtuple("AssignmentRow", table.c.keys())  # type: ignore[misc]
    maker: Callable[[Any], Any] = shape._make
    return maker


def _authors_of(store: Store, children: RunChildren) -> PreparedStatement:
    table = children.assignments
    wanted = select(table.c.entity_id, table.c.agent_id, holder_of(table)).where(
        table.c.agent_id != literal_column("''")
    )
    return PreparedStatement(store.database, wanted.where(any_of(store.database, table.c.entity_id)))


def _bodies_of(store: Store) -> PreparedStatement:
    entities = store.tables.entities.c
    wanted = select(entities.entity_id, entities.body).where(any_of(store.database, entities.entity_id))
    return PreparedStatement(store.database, wanted)


def _documents_of(store: Store, children: RunChildren) -> PreparedStatement:
    documents = children.documents.c
    columns = (documents.entity_id, documents.name, documents.body)
    return PreparedStatement(store.database, select(*columns).where(any_of(store.database, documents.entity_id)))
