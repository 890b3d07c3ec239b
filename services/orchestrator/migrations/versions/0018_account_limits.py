"""Limits of accounts by the principal that reported them."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the table of reports; the pauses that are there have no reporter, and replicas of the version before write on there."""
    op.create_table(
        "account_limits",
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("account", sa.String(128), primary_key=True),
        sa.Column("principal", sa.Text, primary_key=True),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.Column("shared_from_us", sa.BigInteger, nullable=False),
        sa.Column("shared_until_us", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.execute(
        "INSERT INTO account_limits "
        "SELECT project, account, '', until_us, 0, until_us, kind, reason FROM account_pauses"
    )
