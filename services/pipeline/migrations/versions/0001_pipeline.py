"""Shapes, stages and reports of pipelines."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the child tables of a pipeline, each keyed by its id first."""
    op.create_table(
        "shapes",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "stages",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("stage", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "reports",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at_us", sa.BigInteger, nullable=False),
    )
