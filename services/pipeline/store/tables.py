"""The child tables of pipelines: shapes (DAGs), stages, reports."""

from dataclasses import dataclass
from functools import cache

from sqlalchemy import BigInteger, Column, MetaData, String, Table

from pointsman.services.chassis.storage.packing import PACKED

METADATA = MetaData()
"""The tables of every store of the context: declared once in a process."""


@dataclass(frozen=True, slots=True)
class PipelineTables:
    """The child tables of a pipeline, keyed by its id first."""

    shapes: Table
    stages: Table
    reports: Table


@cache
def pipeline_tables(metadata: MetaData) -> PipelineTables:
    """Declare the tables in a store's metadata."""
    return PipelineTables(
        shapes=Table(
            "shapes",
            metadata,
            Column("entity_id", String(256), primary_key=True),
            Column("body", PACKED, nullable=False),
        ),
        stages=Table(
            "stages",
            metadata,
            Column("entity_id", String(256), primary_key=True),
            Column("stage", String(64), primary_key=True),
            Column("body", PACKED, nullable=False),
        ),
        reports=Table(
            "reports",
            metadata,
            Column("entity_id", String(256), primary_key=True),
            Column("sha256", String(64), primary_key=True),
            Column("body", PACKED, nullable=False),
            Column("created_at_us", BigInteger, nullable=False),
        ),
    )
