"""Who may not judge a piece of work, and whom an agent acts for."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the authors of what an assignment judges, one in each line, and the principals of agents."""
    op.add_column("assignments", sa.Column("excluded_principals", sa.Text, nullable=False, server_default=""))
    op.add_column("agents", sa.Column("principal", sa.Text, nullable=False, server_default=""))
