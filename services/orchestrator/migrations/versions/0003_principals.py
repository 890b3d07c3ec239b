"""Which principal holds a lease."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add who polled, and the lease it was for: the version before gives out leases without saying either."""
    op.add_column("assignments", sa.Column("principal", sa.Text, nullable=False, server_default=""))
    op.add_column("assignments", sa.Column("principal_epoch", sa.BigInteger, nullable=False, server_default="0"))
