"""Which leases were given to somebody whom a principal tells apart."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the lease it is said of: the version before gives out leases without saying so."""
    op.add_column("assignments", sa.Column("apart_epoch", sa.BigInteger, nullable=False, server_default="0"))
