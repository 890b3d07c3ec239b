"""The child tables of workflows; the first key column is always the workflow's id."""

from dataclasses import dataclass
from functools import cache

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text

METADATA = MetaData()
"""The tables of every store of the context: declared once in a process."""


@dataclass(frozen=True, slots=True)
class WorkflowTables:
    """The workflow tables in one store's metadata."""

    tasks: Table
    dependencies: Table
    details: Table
    resumable: Table


@cache
def workflow_tables(metadata: MetaData) -> WorkflowTables:
    """Declare the workflow tables in a store's metadata."""
    return WorkflowTables(_tasks(metadata), _dependencies(metadata), _details(metadata), _resumable(metadata))


def _tasks(metadata: MetaData) -> Table:
    return Table(
        "tasks",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("task_id", String(64), primary_key=True),
        Column("position", BigInteger, nullable=False),
        Column("status", String(16), nullable=False),
        Column("open_dependencies", Integer, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("retry_count", Integer, nullable=False),
        Column("reason", Text, nullable=False),
        Column("worker", String(128), nullable=False),
        Column("stub", Integer, nullable=False),
        Column("spec", Text, nullable=False),
        Index("tasks_by_turn", "entity_id", "status", "open_dependencies", "position"),
        Index("tasks_by_position", "entity_id", "position"),
    )


def _dependencies(metadata: MetaData) -> Table:
    return Table(
        "dependencies",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("task_id", String(64), primary_key=True),
        Column("dependant_id", String(64), primary_key=True),
    )


def _details(metadata: MetaData) -> Table:
    return Table(
        "details",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("body", Text, nullable=False),
    )


def _resumable(metadata: MetaData) -> Table:
    return Table(
        "resumable",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("project", String(64), nullable=False),
        Column("waits", Integer, nullable=False),
        Column("priority", Integer, nullable=False),
        Column("updated_at_us", BigInteger, nullable=False),
        Index("resumable_in_order", "project", "waits", "priority", "updated_at_us", "entity_id"),
    )
