"""What verifiers say about the repositories of their workers."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the repositories that an agent offers, as JSON."""
    op.add_column("agents", sa.Column("offers", sa.Text, nullable=False, server_default="[]"))
