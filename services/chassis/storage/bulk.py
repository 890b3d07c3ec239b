"""Many rows with one statement: rows of parameters on SQLite, one JSON parameter on PostgreSQL.

PostgreSQL unpacks the parameter itself, so that a batch is one message however many rows it has. SQLite's driver lets
go of the interpreter for every step, and may have to wait for it again: a step for many rows is worth many steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, Integer, Table, Text, bindparam, column, func, select
from sqlalchemy.dialects import postgresql, sqlite

from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.storage.database import Database, driver_of

ROWS = "rows"
CHUNKS = (64, 32, 16, 8, 4, 2, 1)
"""How many rows a statement on SQLite takes: few texts, each compiled once, for any number of rows."""
Computed = Mapping[str, Callable[[Callable[[str], Any]], Any]]
"""Columns whose value is an expression over the row's other values, which it gets by name."""


class Written(NamedTuple):
    """How many rows a statement has touched."""

    rowcount: int


class _Rows:
    """A statement for rows of one shape."""

    def __init__(self, database: Database, statement: Any) -> None:
        compiled = statement.compile(dialect=database.writing.dialect)
        self._text = str(compiled)
        self._names = compiled.positiontup
        self._as_json = database.is_postgresql

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Execute it for all rows; the cursor, whose rowcount holds once the statement has been answered."""
        cursor: Any = driver_of(connection).cursor()
        if self._as_json:
            cursor.execute(self._text, {ROWS: to_json(rows)})
        else:
            cursor.executemany(self._text, _tuples(self._names, rows))
        return cursor


class _Inserts:
    """An INSERT on SQLite, of as many rows at once as there are."""

    def __init__(self, database: Database, statement: Any) -> None:
        compiled = statement.compile(dialect=database.writing.dialect)
        self._names = compiled.positiontup
        self._before, self._row, self._after = _around_values(str(compiled))
        self._texts: dict[int, str] = {}

    def _text(self, count: int) -> str:
        """The statement for so many rows; SQLAlchemy would compile the same, in a thousand times the time."""
        if count not in self._texts:
            self._texts[count] = self._before + ", ".join([self._row] * count) + self._after
        return self._texts[count]

    def run(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> Written:
        """Execute it for all rows."""
        cursor: Any = driver_of(connection).cursor()
        tuples, touched = _tuples(self._names, rows), 0
        for begin, end in _chunks(len(tuples)):
            cursor.execute(self._text(end - begin), list(chain.from_iterable(tuples[begin:end])))
            touched += cursor.rowcount
        return Written(touched)


def _around_values(text: str) -> tuple[str, str, str]:
    """What stands before the row of values in an INSERT, that row with its brackets, and what stands after it."""
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


def _tuples(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    if len(names) == 1:
        return [(row[names[0]],) for row in rows]
    return list(map(itemgetter(*names), rows))


def insert_rows(database: Database, table: Table, computed: Computed | None = None) -> _Rows | _Inserts:
    """Insert rows given by column name."""
    values = _values(database, table, computed or {})
    if not database.is_postgresql:
        return _Inserts(database, table.insert().values(values))
    return _Rows(database, table.insert().from_select(list(values), select(*values.values())))


def upsert_rows(
    database: Database, table: Table, key: Sequence[str], changed: Sequence[str] = (), newer: str = ""
) -> _Rows | _Inserts:
    """Insert rows, or change the ones that have their key: in all columns or those named, if `newer` is, where named."""

    def changing(statement: Any) -> Any:
        names = changed or [name for name in table.c.keys() if name not in key]  # noqa: SIM118
        where = table.c[newer] < statement.excluded[newer] if newer else None
        values = {name: statement.excluded[name] for name in names}
        return statement.on_conflict_do_update(index_elements=list(key), set_=values, where=where)

    values = _values(database, table, {})
    if not database.is_postgresql:
        return _Inserts(database, changing(sqlite.insert(table).values(values)))
    return _Rows(database, changing(postgresql.insert(table).from_select(list(values), select(*values.values()))))


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
