"""Decisions by time, task tracks and errors."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create what the router keeps beside its entities, each keyed by an entity's id first."""
    op.create_table(
        "decisions",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.String(256), nullable=False),
        sa.Column("task_id", sa.String(64), nullable=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("confidence", sa.String(16), nullable=False),
        sa.Column("fast_path", sa.Integer, nullable=False),
        sa.Column("debate", sa.Integer, nullable=False),
        sa.Column("overridden", sa.Integer, nullable=False),
        sa.Column("clarifications", sa.Integer, nullable=False),
    )
    op.create_index("decisions_by_time", "decisions", ["project", "at_us", "entity_id"])
    op.create_table(
        "tracks",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "errors",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("fingerprint", sa.String(256), primary_key=True),
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("at_us", sa.BigInteger, nullable=False),
    )
