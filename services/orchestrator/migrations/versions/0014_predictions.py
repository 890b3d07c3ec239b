"""Snapshots of live trees, and the conflicts that are coming."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add both tables."""
    op.create_table(
        "snapshots",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("repository_id", sa.String(128), nullable=False),
        sa.Column("base_commit", sa.String(64), nullable=False),
        sa.Column("commit_id", sa.String(64), nullable=False),
        sa.Column("bundle", sa.LargeBinary, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
    )
    op.create_index("snapshots_by_repository", "snapshots", ["project", "repository_id", "at_us"])
    op.create_table(
        "predictions",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("repository_id", sa.String(128), primary_key=True),
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("other_run_id", sa.String(128), primary_key=True),
        sa.Column("files", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
    )
