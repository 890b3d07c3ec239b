"""What agents printed."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table of outputs."""
    op.create_table(
        "outputs",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("assignment_id", sa.String(256), primary_key=True),
        sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("tail", sa.Text, nullable=False),
        sa.Column("end_offset", sa.BigInteger, nullable=False),
        sa.Column("transcript_sha256", sa.String(64), nullable=False),
        sa.Column("transcript_bytes", sa.BigInteger, nullable=False),
    )
