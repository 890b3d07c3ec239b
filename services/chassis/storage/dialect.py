"""Where SQLite and PostgreSQL differ: lists, upserts, pipelines; and prepared statements."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, String, Table, bindparam, func, select

from pointsman.services.chassis.storage.database import Database, driver_of


def any_of(database: Database, column: ColumnElement[Any], name: str = "values") -> ColumnElement[bool]:
    """`column` is one of the values bound to `name`; the text does not depend on the number of values."""
    if database.is_postgresql:
        kind = BigInteger if isinstance(column.type, BigInteger) else String
        return column == func.any(bindparam(name, type_=ARRAY(kind)))
    listed = func.json_each(bindparam(name, type_=String)).table_valued("value")
    return column.in_(select(listed.c.value))


def bind_list(database: Database, values: Sequence[str] | Sequence[int]) -> Any:
    """The bind value for `any_of`."""
    return list(values) if database.is_postgresql else msgspec.json.encode(values).decode()


def upsert(database: Database, table: Table, key: Sequence[str], changed: Sequence[str]) -> Any:
    """Insert a row, or update the named columns of the row with the same key."""
    insert = _insert(database, table)
    return insert.on_conflict_do_update(
        index_elements=list(key), set_={name: insert.excluded[name] for name in changed}
    )


def insert_or_ignore(database: Database, table: Table) -> Any:
    """Insert a row unless its key exists."""
    return _insert(database, table).on_conflict_do_nothing()


def _insert(database: Database, table: Table) -> Any:
    """An INSERT with the ON CONFLICT of the database; the other database's dialect is not imported."""
    if database.is_postgresql:
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite  # noqa: PLC0415

    return sqlite.insert(table)


class Compiled(NamedTuple):
    """A statement in the words of a database: its text, the order of its parameters, and those with a value of their own."""

    text: str
    names: Sequence[str] | None
    literals: Mapping[str, Any]


def compile_once(database: Database, statement: Any) -> Callable[[], Compiled]:
    """Compile a statement when it is first used: a store has a hundred, and a start needs a few of them."""

    @cache
    def compiled() -> Compiled:
        made = statement.compile(dialect=database.writing.dialect)
        literals = {name: value for name, value in made.params.items() if value is not None}
        return Compiled(str(made), made.positiontup, literals)

    return compiled


class PreparedStatement:
    """A statement that is compiled once and executed on the driver's cursor.

    Commits use these: executing a Core statement costs several times what the driver needs for the same rows.
    """

    def __init__(self, database: Database, statement: Any) -> None:
        self._compiled = compile_once(database, statement)

    @cached_property
    def _bind(self) -> Callable[[Mapping[str, Any]], Any]:
        return _bind_order(self._compiled().names)

    def start(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Execute it; inside `pipeline` the cursor waits for the result only when rows are fetched."""
        cursor: Any = driver_of(connection).cursor()
        text, _names, literals = self._compiled()
        cursor.execute(text, self._bind({**literals, **parameters} if literals else parameters))
        return cursor

    def fetch(self, connection: Connection, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Execute it and fetch all rows."""
        return list(self.start(connection, parameters).fetchall())


def pipeline(database: Database, connection: Connection) -> AbstractContextManager[Any]:
    """Pipeline mode on PostgreSQL: send statements without waiting for each result.

    The end of the block is one round trip for all; rows that are fetched inside the block cost another one.
    """
    if not database.is_postgresql:
        return nullcontext()
    driver = driver_of(connection)
    return cast("AbstractContextManager[Any]", driver.pipeline())


def _bind_order(names: Sequence[str] | None) -> Callable[[Mapping[str, Any]], Any]:
    """A function from named parameters to the driver's: a dict, or a tuple in the order of the text."""
    if names is None:
        return dict
    if len(names) == 1:
        only = names[0]
        return lambda parameters: (parameters[only],)
    return itemgetter(*names)
