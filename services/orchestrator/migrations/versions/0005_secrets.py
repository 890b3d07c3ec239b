"""What shows that a lease is the caller's."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the digests of a lease's secrets; live leases, whose holders have none, go back as if they had not been tried."""
    op.add_column("assignments", sa.Column("secret_digests", sa.Text, nullable=False, server_default=""))
    op.add_column("assignments", sa.Column("secret_epoch", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(
        "UPDATE assignments SET status = 'OPEN', agent_id = '', poll_id = '', lease_until_us = 0, attempt = attempt - 1 "
        "WHERE status = 'LEASED'"
    )
