"""SQLAlchemy's statements on the driver's own cursor: the same text, parameters and rows, for a fraction of the time."""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import Compiled

DIALECT = sqlite.dialect()
KNOWN_STATEMENTS = 1000


@dataclass(slots=True)
class _Plan:
    """A statement's text, and which of its parameters goes where."""

    compiled: Any
    text: str
    names: Sequence[str]
    expands: bool
    """Whether the text depends on how many values a list has."""
    packers: Mapping[str, Callable[[Any], Any]]
    row: Callable[[Any], Any] | None = None


@dataclass(slots=True)
class _Bound:
    """A statement as its text and the values that are part of it."""

    plan: _Plan
    values: Mapping[str, Any]


class Answer:
    """What a statement has answered, as far as the services ask for it."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> list[Any]:
        """Every row."""
        return self._rows

    def first(self) -> Any:
        """The first row, if there is one."""
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        """The only row."""
        (row,) = self._rows
        return row

    def scalar(self) -> Any:
        """The first value, if there is one."""
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        """The only row's first value."""
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        """The only row's first value, if there is one."""
        return self.one()[0] if self._rows else None

    def scalars(self) -> "Answer":
        """The first value of each row."""
        return Answer([row[0] for row in self._rows], self.rowcount)

    def mappings(self) -> "Answer":
        """Each row by its columns' names."""
        return Answer([row._asdict() for row in self._rows], self.rowcount)


class Session:
    """Stands in for SQLAlchemy's connection; what it cannot do as SQLAlchemy does it, it refuses."""

    def __init__(self, driver: sqlite3.Connection) -> None:
        self.driver_connection = driver
        self._plans: dict[Any, _Plan] = {}
        self._bound: WeakKeyDictionary[Any, dict[Any, _Bound]] = WeakKeyDictionary()

    @property
    def connection(self) -> "Session":
        """Where the services find the driver."""
        return self

    @contextmanager
    def begin(self) -> Iterator[None]:
        """A transaction: all of it, or, whatever ends it, nothing."""
        self.driver_connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.driver_connection.execute("ROLLBACK")
            raise
        self.driver_connection.execute("COMMIT")

    def execute(self, statement: Any, parameters: Any = None) -> Answer:
        """Run a statement, once or for each of many rows."""
        many = isinstance(parameters, list | tuple)
        given = parameters if many else [parameters or {}]
        bound = self._find(statement, tuple(given[0]) if given[0] else (), many=many)
        plan, values = bound.plan, bound.values
        if plan.expands:
            plan, values = _expanded(plan, {**values, **given[0]})
        rows = [tuple([one[name] if name in one else values[name] for name in plan.names]) for one in given]
        if plan.packers:
            rows = [_packed(plan, row) for row in rows]
        if many:
            cursor = self.driver_connection.executemany(plan.text, rows)
            return Answer([], cursor.rowcount)
        cursor = self.driver_connection.execute(plan.text, rows[0])
        if cursor.description is None:
            return Answer([], cursor.rowcount)
        if plan.row is None:
            shape: Any = namedtuple("Row", [column[0] for column in cursor.description], rename=True)  # type: ignore[misc]
            plan.row = _row_maker(plan, shape._make)
        return Answer(list(map(plan.row, cursor.fetchall())), cursor.rowcount)

    def scalars(self, statement: Any, parameters: Any = None) -> Answer:
        """Run a statement; the first value of each row."""
        return self.execute(statement, parameters).scalars()

    def _find(self, statement: Any, keys: tuple[str, ...], *, many: bool) -> _Bound:
        known = self._bound.get(statement)
        if known is None:
            known = self._bound[statement] = {}
        bound = known.get((keys, many))
        if bound is None:
            bound = known[(keys, many)] = self._bind(statement, keys, many=many)
        return bound

    def _bind(self, statement: Any, keys: tuple[str, ...], *, many: bool) -> _Bound:
        cache_key = statement._generate_cache_key()
        name = (cache_key.key, keys, many)
        plan = self._plans.get(name)
        if plan is None:
            assert len(self._plans) < KNOWN_STATEMENTS
            compiled = statement.compile(
                dialect=DIALECT, cache_key=cache_key, column_keys=sorted(keys), for_executemany=many
            )
            plan = self._plans[name] = _plan(compiled, keys)
        values = plan.compiled.construct_params(extracted_parameters=cache_key.bindparams, _check=False)
        return _Bound(plan, values)


def _plan(compiled: Compiled, keys: tuple[str, ...]) -> _Plan:
    made: Any = compiled
    names = made.positiontup or ()
    assert {name for name in names if made.binds[name].required} <= {*keys}, made
    assert not made.literal_execute_params, made
    assert not [*made.insert_prefetch, *made.update_prefetch], made
    return _Plan(made, str(made), names, bool(made.post_compile_params), made._bind_processors)


def _expanded(plan: _Plan, values: dict[str, Any]) -> tuple[_Plan, dict[str, Any]]:
    """The statement with a parameter for each value of its lists."""
    state = plan.compiled._process_parameters_for_postcompile(values)
    names = state.positiontup or ()
    return _Plan(plan.compiled, state.statement, names, expands=True, packers=plan.packers), {
        **values,
        **state.additional_parameters,
    }


def _packed(plan: _Plan, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of parameters as the columns' types store it."""
    packers = plan.packers
    pairs = zip(plan.names, row, strict=True)
    return tuple([packers[name](value) if name in packers else value for name, value in pairs])


def _row_maker(plan: _Plan, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What makes the driver's row one with names, as the columns' types read it."""
    types = [column.type.dialect_impl(DIALECT) for column in plan.compiled._result_columns]
    unpackers = [one.result_processor(DIALECT, None) for one in types]
    if not any(unpackers):
        return make
    return lambda row: make([unpack(value) if unpack else value for unpack, value in zip(unpackers, row, strict=True)])
