"""Bulk statements: rows of parameters on SQLite, one JSON parameter on PostgreSQL.

PostgreSQL unpacks the parameter, so a batch is one message however many rows it has. SQLite's driver releases the
interpreter lock for every statement and may wait to get it back, so one statement takes many rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import JSON, BigInteger, Connection, Integer, Table, Text, bindparam, column, func, select
from sqlalchemy.dialects import sqlite

from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.storage.database import Database, driver_of
from pointsman.services.chassis.storage.dialect import compile_once

ROWS = "rows"
CHUNKS = (64, 32, 16, 8, 4, 2, 1)
"""The numbers of rows of SQLite statements: a few texts, each prepared once, cover any number of rows."""
Computed = Mapping[str, Callable[[Callable[[str], Any]], Any]]
"""Columns whose value is an expression; it refers to other values of the row by name."""


class RowCount(NamedTuple):
    """The number of rows that a statement has changed; the part of a cursor that callers use."""

    rowcount: int


class _RowsStatement:
    """A statement that is executed for many rows."""

    def __init__(self, database: Database, build: Callable[[], Any]) -> None:
        self._compiled = compile_once(database, build)
        self._as_json = database.is_postgresql

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Execute it for all rows; the rowcount of the cursor is valid once the statement has completed."""
        cursor: Any = driver_of(connection).cursor()
        compiled = self._compiled()
        if self._as_json:
            cursor.execute(compiled.text, {ROWS: to_json(rows)})
        else:
            cursor.executemany(compiled.text, list(map(compiled.bind, rows)))
        return cursor


class _ChunkedInsert:
    """A multi-row INSERT on SQLite."""

    def __init__(self, database: Database, build: Callable[[], Any]) -> None:
        self._compiled = compile_once(database, build)
        self._texts: dict[int, str] = {}

    def _text(self, count: int) -> str:
        """The text for so many rows; compiling it with SQLAlchemy takes a thousand times as long."""
        if count not in self._texts:
            before, row, after = _split_at_values(self._compiled().text)
            self._texts[count] = before + ", ".join([row] * count) + after
        return self._texts[count]

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> RowCount:
        """Execute it for all rows."""
        cursor: Any = driver_of(connection).cursor()
        tuples, touched = list(map(self._compiled().bind, rows)), 0
        for begin, end in _chunks(len(tuples)):
            cursor.execute(self._text(end - begin), list(chain.from_iterable(tuples[begin:end])))
            touched += cursor.rowcount
        return RowCount(touched)


def _split_at_values(text: str) -> tuple[str, str, str]:
    """The text of an INSERT before its row of values, the row with its brackets, and the text after it."""
    begin = text.index(" VALUES (") + len(" VALUES ")
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return text[:begin], text[begin : place + 1], text[place + 1 :]
    raise ValueError(f"no row of values in: {text}")


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    begin = 0
    for size in CHUNKS:
        while count - begin >= size:
            yield begin, begin + size
            begin += size


def insert_rows(database: Database, table: Table, computed: Computed | None = None) -> _RowsStatement | _ChunkedInsert:
    """Insert rows given by column name."""

    def build() -> Any:
        values = _values(database, table, computed or {})
        if not database.is_postgresql:
            return table.insert().values(values)
        return table.insert().from_select(list(values), select(*values.values()))

    return _RowsStatement(database, build) if database.is_postgresql else _ChunkedInsert(database, build)


def upsert_rows(
    database: Database, table: Table, key: Sequence[str], changed: Sequence[str] = (), newer: str = ""
) -> _RowsStatement | _ChunkedInsert:
    """Insert rows or update those with the same key: all columns or `changed`, only where column `newer` grows."""

    def changing(statement: Any) -> Any:
        names = changed or [name for name in table.c.keys() if name not in key]  # noqa: SIM118
        where = table.c[newer] < statement.excluded[newer] if newer else None
        values = {name: statement.excluded[name] for name in names}
        return statement.on_conflict_do_update(index_elements=list(key), set_=values, where=where)

    def build() -> Any:
        values = _values(database, table, {})
        if not database.is_postgresql:
            return changing(sqlite.insert(table).values(values))
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415 - SQLite does without it

        return changing(insert(table).from_select(list(values), select(*values.values())))

    return _RowsStatement(database, build) if database.is_postgresql else _ChunkedInsert(database, build)


def update_rows(database: Database, table: Table, key: Mapping[str, str], changed: Sequence[str]) -> _RowsStatement:
    """Update columns of the rows whose key columns equal the given values of each row."""

    def build() -> Any:
        value = _reader(database, table, [*key.values(), *changed], dict(zip(key.values(), key, strict=True)))
        matches = [table.c[name] == value(given) for name, given in key.items()]
        return table.update().where(*matches).values({name: value(name) for name in changed})

    return _RowsStatement(database, build)


def delete_rows(database: Database, table: Table, key: Mapping[str, str]) -> _RowsStatement:
    """Delete the rows whose key columns equal the given values of each row."""

    def build() -> Any:
        value = _reader(database, table, list(key.values()), dict(zip(key.values(), key, strict=True)))
        return table.delete().where(*[table.c[name] == value(given) for name, given in key.items()])

    return _RowsStatement(database, build)


def _values(database: Database, table: Table, computed: Computed) -> dict[str, Any]:
    extra = {name for make in computed.values() for name in _names_used(make)}
    names = [name for name in table.c.keys() if name not in computed]  # noqa: SIM118 - a collection, not a mapping
    value = _reader(database, table, [*names, *sorted(extra)], {})
    return {name: value(name) for name in names} | {name: make(value) for name, make in computed.items()}


def _names_used(make: Callable[[Callable[[str], Any]], Any]) -> list[str]:
    used: list[str] = []

    def record(name: str) -> Any:
        used.append(name)
        return bindparam(name, type_=BigInteger)

    make(record)
    return used


def _reader(database: Database, table: Table, names: Sequence[str], columns: Mapping[str, str]) -> Callable[[str], Any]:
    """How a statement refers to a value of a row: a bind parameter, or a column of the unpacked JSON."""
    if not database.is_postgresql:
        return lambda name: bindparam(name)  # noqa: PLW0108 - mypy knows bindparam as a class
    typed = [column(name, _type_of(table, columns.get(name, name))) for name in names]
    unpacked = func.json_to_recordset(bindparam(ROWS, type_=JSON)).table_valued(*typed, name="r")
    derived = unpacked.render_derived(with_types=True)
    return lambda name: derived.c[name]


def _type_of(table: Table, name: str) -> Any:
    if name not in table.c:
        return BigInteger()
    kind = table.c[name].type
    if isinstance(kind, BigInteger):
        return BigInteger()
    return Integer() if isinstance(kind, Integer) else Text()
