"""Entries of the merge queues."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the index of entries."""
    op.create_table(
        "entry_index",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("queue_id", sa.String(64), nullable=False),
        sa.Column("repository_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("created_at_us", sa.BigInteger, nullable=False),
    )
    op.create_index("entry_index_by_queue", "entry_index", ["project", "status", "repository_id"])
    op.create_index("entry_index_by_run", "entry_index", ["run_id"])
