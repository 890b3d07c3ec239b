"""Who put an artifact."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the principal, against whose quota a body counts; what is there already counts against the project's only."""
    op.add_column("artifacts", sa.Column("principal", sa.Text, nullable=False, server_default=""))
