"""Work that is reserved for the workers of its run, and the runs that an agent works for."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add whether an assignment is reserved, and the runs that an agent works for, one in each line; none means all."""
    op.add_column("assignments", sa.Column("reserved", sa.Integer, nullable=False, server_default="0"))
    op.add_column("agents", sa.Column("run_ids", sa.Text, nullable=False, server_default=""))
