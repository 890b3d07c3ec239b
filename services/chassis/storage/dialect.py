"""Where SQLite and PostgreSQL differ: lists, upserts, pipelines; and prepared statements."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, String, Table, Text, bindparam, func, select

from pointsman.services.chassis.storage.database import Database, driver_of


def any_of(database: Database, column: ColumnElement[Any], name: str = "values") -> ColumnElement[bool]:
    """`column` is one of the values bound to `name`; the text does not depend on the number of values."""
    return _any_of(column, name, is_postgresql=database.is_postgresql)


@cache
def _any_of(column: ColumnElement[Any], name: str, *, is_postgresql: bool) -> ColumnElement[bool]:
    if is_postgresql:
        kind = BigInteger if isinstance(column.type, BigInteger) else String
        return column == func.any(bindparam(name, type_=ARRAY(kind)))
    listed = func.json_each(bindparam(name, type_=String)).table_valued("value")
    return column.in_(select(listed.c.value))


def bind_list(database: Database, values: Sequence[str] | Sequence[int]) -> Any:
    """The bind value for `any_of`."""
    return list(values) if database.is_postgresql else msgspec.json.encode(values).decode()


def text_of(database: Database, column: ColumnElement[str]) -> ColumnElement[str]:
    """The text of a packed column, for a condition; SQLite has a function for it."""
    return column if database.is_postgresql else func.unpacked(column, type_=Text)


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
    """A statement in the words of a database: its text, how it takes parameters, and those with a value of their own."""

    text: str
    bind: Callable[[Mapping[str, Any]], Any]
    literals: Mapping[str, Any]
    row_factory: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]] | None
    """From the driver's row to values; None where nothing in it can be packed."""


def compile_once(database: Database, build: Callable[[], Any]) -> Callable[[], Compiled]:
    """Build and compile a statement when it is first used: a store has a hundred, and a start needs a few of them."""

    @cache
    def compiled() -> Compiled:
        dialect, statement = database.writing.dialect, build()
        made = statement.compile(dialect=dialect)
        literals = {name: value for name, value in made.params.items() if value is not None}
        if made.positiontup is None:
            return Compiled(str(made), dict, literals, None)
        packers = [made.binds[name].type.dialect_impl(dialect).bind_processor(dialect) for name in made.positiontup]
        columns = getattr(statement, "selected_columns", ())
        unpackers = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
        bind, unpacked = _bind_order(made.positiontup, _converter(packers)), _converter(unpackers)
        factory = None if unpacked is None else lambda _cursor, row: unpacked(row)
        return Compiled(str(made), bind, literals, factory)

    return compiled


class PreparedStatement:
    """A statement that is compiled once and executed on the driver's cursor.

    Commits use these: executing a Core statement costs several times what the driver needs for the same rows.
    """

    def __init__(self, database: Database, statement: Any) -> None:
        self._compiled = compile_once(database, lambda: statement)

    def start(self, connection: Connection, parameters: Mapping[str, Any]) -> Any:
        """Execute it; inside `pipeline` the cursor waits for the result only when rows are fetched."""
        cursor: Any = driver_of(connection).cursor()
        text, bind, literals, row_factory = self._compiled()
        if row_factory is not None:
            cursor.row_factory = row_factory
        cursor.execute(text, bind({**literals, **parameters} if literals else parameters))
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


_Values = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def _bind_order(names: Sequence[str], pack: _Values | None) -> Callable[[Mapping[str, Any]], Any]:
    """A function from named parameters to a tuple in the order of the text, packed."""
    if len(names) == 1:
        only = names[0]
        ordered: Callable[[Mapping[str, Any]], Any] = lambda parameters: (parameters[only],)  # noqa: E731
    else:
        ordered = itemgetter(*names) if names else lambda _parameters: ()
    return ordered if pack is None else lambda parameters: pack(ordered(parameters))


def _converter(functions: Sequence[Callable[[Any], Any] | None]) -> _Values | None:
    """A function that converts some values of a tuple; None where it would convert none."""
    places = [(place, function) for place, function in enumerate(functions) if function is not None]

    def convert(values: tuple[Any, ...]) -> tuple[Any, ...]:
        converted = list(values)
        for place, function in places:
            converted[place] = function(converted[place])
        return tuple(converted)

    return convert if places else None
