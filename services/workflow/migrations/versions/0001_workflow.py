"""Tasks, dependencies, details and the list of what can be resumed."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the child tables of workflows, as they were in the first version."""
    op.create_table(
        "tasks",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("open_dependencies", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("worker", sa.String(128), nullable=False),
        sa.Column("stub", sa.Integer, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
    )
    op.create_index("tasks_by_turn", "tasks", ["entity_id", "status", "open_dependencies", "position"])
    op.create_index("tasks_by_position", "tasks", ["entity_id", "position"])
    op.create_table(
        "dependencies",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("dependant_id", sa.String(64), primary_key=True),
    )
    op.create_table(
        "details",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "resumable",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("waits", sa.Integer, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("updated_at_us", sa.BigInteger, nullable=False),
    )
    op.create_index("resumable_in_order", "resumable", ["project", "waits", "priority", "updated_at_us", "entity_id"])
