"""Work that went back because of a provider's limit, for the journals of its runs."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the table; replicas of the version before write nothing there, and their limits are in no journal."""
    op.create_table(
        "limited_work",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("assignment_id", sa.String(256), primary_key=True),
        sa.Column("epoch", sa.BigInteger, primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("account", sa.String(128), nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("reported", sa.Integer, nullable=False),
        sa.Column("taken_epoch", sa.BigInteger, nullable=False),
        sa.Column("taken_agent", sa.String(128), nullable=False),
        sa.Column("taken_account", sa.String(128), nullable=False),
    )
