"""What a list of runs is sorted and searched by."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add how runs ended, when they asked, and their words; rows of the version before are filled in by a loop."""
    op.add_column("run_index", sa.Column("outcome", sa.String(16), nullable=False, server_default="?"))
    op.add_column("run_index", sa.Column("asked_at_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("run_index", sa.Column("words", sa.Text, nullable=False, server_default=""))
    op.create_index("run_index_by_outcome", "run_index", ["outcome", "project", "ended_at_us", "entity_id"])
