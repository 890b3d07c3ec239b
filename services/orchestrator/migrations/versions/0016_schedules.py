"""Schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the index of schedules."""
    op.create_table(
        "schedule_index",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at_us", sa.BigInteger, nullable=False),
        sa.Column("deleted_at_us", sa.BigInteger, nullable=False),
    )
    op.create_index("schedule_index_by_project", "schedule_index", ["project", "created_at_us"])
    op.create_index("schedule_index_by_deletion", "schedule_index", ["deleted_at_us"])
