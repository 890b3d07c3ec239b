"""Many rows with one statement: executemany on SQLite, one JSON parameter on PostgreSQL.

PostgreSQL unpacks the parameter itself, so that a batch is one message however many rows it has.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, Table, Text, bindparam, column, func, select
from sqlalchemy.dialects import postgresql, sqlite

from pointsman.services.chassis.codec import to_text
from pointsman.services.chassis.db import Database

ROWS = "rows"
Computed = Mapping[str, Callable[[Callable[[str], Any]], Any]]
"""Columns whose value is an expression over the row's other values, which it gets by name."""


class _Rows:
    """A statement for rows of one shape."""

    def __init__(self, database: Database, statement: Any) -> None:
        compiled = statement.compile(dialect=database.writing.dialect)
        self._text = str(compiled)
        self._names = compiled.positiontup
        self._as_json = database.is_postgresql

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Execute it for all rows; the cursor, whose rowcount holds once the statement has been answered."""
        cursor: Any = connection.connection.driver_connection.cursor()  # type: ignore[union-attr]
        if self._as_json:
            cursor.execute(self._text, {ROWS: to_text(rows)})
        elif len(self._names) == 1:
            cursor.executemany(self._text, [(row[self._names[0]],) for row in rows])
        else:
            cursor.executemany(self._text, list(map(itemgetter(*self._names), rows)))
        return cursor


def insert_rows(database: Database, table: Table, computed: Computed | None = None) -> _Rows:
    """Insert rows given by column name."""
    values = _values(database, table, computed or {})
    if not database.is_postgresql:
        return _Rows(database, table.insert().values(values))
    return _Rows(database, table.insert().from_select(list(values), select(*values.values())))


def upsert_rows(database: Database, table: Table, key: Sequence[str]) -> _Rows:
    """Insert rows, or replace the ones that have their key."""
    values = _values(database, table, {})
    statement: Any
    if database.is_postgresql:
        statement = postgresql.insert(table).from_select(list(values), select(*values.values()))
    else:
        statement = sqlite.insert(table).values(values)
    changed = {name: statement.excluded[name] for name in values if name not in key}
    return _Rows(database, statement.on_conflict_do_update(index_elements=list(key), set_=changed))


def update_rows(database: Database, table: Table, key: Mapping[str, str], changed: Sequence[str]) -> _Rows:
    """Change columns of the rows whose key columns equal the row's values of the names given for them."""
    value = _reader(database, table, [*key.values(), *changed], dict(zip(key.values(), key, strict=True)))
    matches = [table.c[name] == value(given) for name, given in key.items()]
    return _Rows(database, table.update().where(*matches).values({name: value(name) for name in changed}))


def delete_rows(database: Database, table: Table, key: Mapping[str, str]) -> _Rows:
    """Delete the rows whose key columns equal the row's values of the names given for them."""
    value = _reader(database, table, list(key.values()), dict(zip(key.values(), key, strict=True)))
    return _Rows(database, table.delete().where(*[table.c[name] == value(given) for name, given in key.items()]))


def _values(database: Database, table: Table, computed: Computed) -> dict[str, Any]:
    extra = {name for make in computed.values() for name in _names_used(make)}
    names = [name for name in table.c.keys() if name not in computed]  # noqa: SIM118 - a collection, not a mapping
    value = _reader(database, table, [*names, *sorted(extra)], {})
    return {name: value(name) for name in names} | {name: make(value) for name, make in computed.items()}


def _names_used(make: Callable[[Callable[[str], Any]], Any]) -> list[str]:
    used: list[str] = []

    def note(name: str) -> Any:
        used.append(name)
        return bindparam(name, type_=BigInteger)

    make(note)
    return used


def _reader(database: Database, table: Table, names: Sequence[str], columns: Mapping[str, str]) -> Callable[[str], Any]:
    """How a statement refers to a row's value: a parameter of its own, or a column of the unpacked JSON."""
    if not database.is_postgresql:
        return lambda name: bindparam(name)  # noqa: PLW0108 - mypy knows bindparam as a class
    typed = [column(name, _type_of(table, columns.get(name, name))) for name in names]
    unpacked = func.json_to_recordset(bindparam(ROWS, type_=postgresql.JSON)).table_valued(*typed, name="r")
    derived = unpacked.render_derived(with_types=True)
    return lambda name: derived.c[name]


def _type_of(table: Table, name: str) -> Any:
    if name not in table.c:
        return BigInteger()
    kind = table.c[name].type
    if isinstance(kind, BigInteger):
        return BigInteger()
    return Integer() if isinstance(kind, Integer) else Text()
