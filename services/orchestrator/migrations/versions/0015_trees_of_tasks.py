"""Snapshots and predictions by task: several coders of one run have a tree each; both are hints, made anew."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Replace both tables; what was in them is sent again within minutes."""
    op.drop_index("snapshots_by_repository", "snapshots")
    op.drop_table("snapshots")
    op.drop_table("predictions")
    op.create_table(
        "snapshots",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("assignment_id", sa.String(160), primary_key=True),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("task_id", sa.String(128), nullable=False),
        sa.Column("declared_files", sa.Text, nullable=False),
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
        sa.Column("task_id", sa.String(128), primary_key=True),
        sa.Column("other_run_id", sa.String(128), primary_key=True),
        sa.Column("other_task_id", sa.String(128), primary_key=True),
        sa.Column("declared", sa.Integer, nullable=False),
        sa.Column("files", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
    )
