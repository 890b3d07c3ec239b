"""Whose request an idempotency record is."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the principal, whose records are counted; those that are there already count for nobody."""
    op.add_column("idempotency", sa.Column("principal", sa.Text, nullable=False, server_default=""))
    op.create_index("idempotency_by_principal", "idempotency", ["project", "principal"])
