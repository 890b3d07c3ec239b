"""The few places where SQLite and PostgreSQL want other words for the same thing, and statements compiled once."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import Any, cast

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Connection, String, Table, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import ARRAY

from pointsman.services.chassis.storage.database import Database, driver_of


def any_of(database: Database, column: ColumnElement[Any], name: str = "values") -> ColumnElement[bool]:
    """`column` is one of the values bound to `name`: one statement text, however many values there are."""
    if database.is_postgresql:
        kind = BigInteger if isinstance(column.type, BigInteger) else String
        return column == func.any(bindparam(name, type_=ARRAY(kind)))
    listed = func.json_each(bindparam(name, type_=String)).table_valued("value")
    return column.in_(select(listed.c.value))


def bind_list(database: Database, values: Sequence[str] | Sequence[int]) -> Any:
    """The values as `any_of` wants them bound."""
    return list(values) if database.is_postgresql else msgspec.json.encode(values).decode()


def upsert(database: Database, table: Table, key: Sequence[str], changed: Sequence[str]) -> Any:
    """Insert a row, or change the named columns of the one that has its key."""
    insert: Any = (postgresql.insert if database.is_postgresql else sqlite.insert)(table)
    return insert.on_conflict_do_update(
        index_elements=list(key), set_={name: insert.excluded[name] for name in changed}
    )


def insert_or_ignore(database: Database, table: Table) -> Any:
    """Insert a row unless one with its key is there already."""
    insert: Any = (postgresql.insert if database.is_postgresql else sqlite.insert)(table)
    return insert.on_conflict_do_nothing()


class PreparedStatement:
    """A statement compiled once for its database and run on the driver's own cursor.

    The hot path of a commit runs on these: building text, parameters and result of a Core statement anew costs
    several times what the drivers need for the same rows.
    """

    def __init__(self, database: Database, statement: Any) -> None:
        compiled = statement.compile(dialect=database.writing.dialect)
        self._text = str(compiled)
        self._arrange: Callable[[Mapping[str, Any]], Any] = _arrangement(compiled.positiontup)
        self._literals = {name: value for name, value in compiled.params.items() if value is not None}

    def start(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Execute it once; the cursor, which inside `pipeline` waits for its rows only when they are fetched."""
        cursor: Any = driver_of(connection).cursor()
        given = {**self._literals, **parameters} if self._literals else parameters
        cursor.execute(self._text, self._arrange(given))
        return cursor

    def fetch(self, connection: Connection, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Execute it once; all rows, with the columns in the statement's order."""
        return list(self.start(connection, parameters).fetchall())


def pipeline(database: Database, connection: Connection) -> AbstractContextManager[Any]:
    """Send statements without waiting for each answer, where the database is a round trip away.

    Its end is one round trip for all of them: rows that are fetched before it cost another one.
    """
    if not database.is_postgresql:
        return nullcontext()
    driver = driver_of(connection)
    return cast("AbstractContextManager[Any]", driver.pipeline())


def _arrangement(names: Sequence[str] | None) -> Callable[[Mapping[str, Any]], Any]:
    """Parameters as the driver wants them: by name as they come, or as a tuple in the order of the text."""
    if names is None:
        return dict
    if len(names) == 1:
        only = names[0]
        return lambda parameters: (parameters[only],)
    return itemgetter(*names)
