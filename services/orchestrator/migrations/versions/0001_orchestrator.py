"""Run index, assignments, documents, agents and artifacts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the orchestrator's own tables, as they were in the first version."""
    op.create_table(
        "run_index",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("session_id", sa.String(128), nullable=False),
        sa.Column("ended_at_us", sa.BigInteger, nullable=False),
    )
    op.create_index("run_index_by_session", "run_index", ["project", "session_id"])
    op.create_index("run_index_by_end", "run_index", ["ended_at_us"])
    _assignments()
    op.create_table(
        "documents",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("name", sa.String(256), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "agents",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("agent_id", sa.String(128), primary_key=True),
        sa.Column("capabilities", sa.String(256), nullable=False),
        sa.Column("last_seen_us", sa.BigInteger, nullable=False),
    )
    _artifacts()


def _assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("assignment_id", sa.String(256), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("capability", sa.String(16), nullable=False),
        sa.Column("repository_id", sa.String(128), nullable=False),
        sa.Column("excluded_agent", sa.String(128), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lease_until_us", sa.BigInteger, nullable=False),
        sa.Column("deadline_us", sa.BigInteger, nullable=False),
        sa.Column("created_at_us", sa.BigInteger, nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("poll_id", sa.String(192), nullable=False),
        sa.Column("tokens", sa.BigInteger, nullable=False),
        sa.Column("cost_micros", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index(
        "assignments_by_queue", "assignments", ["status", "project", "capability", "priority", "created_at_us"]
    )
    op.create_index("assignments_by_poll", "assignments", ["poll_id"])


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("media_type", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
    )
    op.create_index("artifacts_by_run", "artifacts", ["run_id"])
    op.create_table(
        "artifact_chunks",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
