"""The few places where SQLite and PostgreSQL want other words for the same thing."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, String, Table, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import ARRAY

from pointsman.services.chassis.db import Database


def among(database: Database, column: ColumnElement[Any], name: str = "values") -> ColumnElement[bool]:
    """`column` is one of the values bound to `name`: one statement text, however many values there are."""
    if database.is_postgresql:
        return column == func.any(bindparam(name, type_=ARRAY(String)))
    listed = func.json_each(bindparam(name, type_=String)).table_valued("value")
    return column.in_(select(listed.c.value))


def packed(database: Database, values: Sequence[str]) -> Any:
    """The values as `among` wants them bound."""
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
