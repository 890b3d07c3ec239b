"""The router's child tables: decisions by time, each task's track, and errors by fingerprint."""

from dataclasses import dataclass
from functools import cache

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table

from pointsman.services.chassis.storage.packing import PACKED

METADATA = MetaData()
"""The tables of every store of the context: declared once in a process."""


@dataclass(frozen=True, slots=True)
class RouterTables:
    """The router's own tables, keyed by an entity's id first."""

    decisions: Table
    tracks: Table
    errors: Table


@cache
def router_tables(metadata: MetaData) -> RouterTables:
    """Declares the tables in a store's metadata."""
    return RouterTables(
        decisions=Table(
            "decisions",
            metadata,
            Column("entity_id", String(256), primary_key=True),
            Column("project", String(64), nullable=False),
            Column("at_us", BigInteger, nullable=False),
            Column("run_id", String(256), nullable=False),
            Column("task_id", String(64), nullable=False),
            Column("mode", String(16), nullable=False),
            Column("confidence", String(16), nullable=False),
            Column("fast_path", Integer, nullable=False),
            Column("debate", Integer, nullable=False),
            Column("overridden", Integer, nullable=False),
            Column("clarifications", Integer, nullable=False),
            Index("decisions_by_time", "project", "at_us", "entity_id"),
        ),
        tracks=Table(
            "tracks",
            metadata,
            Column("entity_id", String(256), primary_key=True),
            Column("task_id", String(64), primary_key=True),
            Column("body", PACKED, nullable=False),
        ),
        errors=Table(
            "errors",
            metadata,
            Column("entity_id", String(256), primary_key=True),
            Column("fingerprint", String(256), primary_key=True),
            Column("task_id", String(64), primary_key=True),
            Column("at_us", BigInteger, nullable=False),
        ),
    )
