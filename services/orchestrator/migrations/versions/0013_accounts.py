"""Accounts at the providers of models, and until when they are paused."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the account that an agent polls with, and the pauses."""
    op.add_column("agents", sa.Column("account", sa.String(128), nullable=False, server_default=""))
    op.create_table(
        "account_pauses",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("account", sa.String(128), primary_key=True),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
