"""Who may read an artifact."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the class of a body; everybody in the project may read what is there already."""
    op.add_column("artifacts", sa.Column("artifact_class", sa.String(16), nullable=False, server_default=""))
