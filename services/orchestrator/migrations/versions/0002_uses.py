"""Which run needs which artifact, when a body was put, and which repositories an agent has."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add what retention and presence need; bodies that are there already belong to the run that put them."""
    op.create_table(
        "artifact_uses",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("project", sa.String(64), nullable=False),
    )
    op.create_index("artifact_uses_by_body", "artifact_uses", ["project", "sha256"])
    op.execute(
        "INSERT INTO artifact_uses (entity_id, sha256, project) "
        "SELECT run_id, sha256, MIN(project) FROM artifacts WHERE run_id <> '' GROUP BY run_id, sha256"
    )
    op.add_column("artifacts", sa.Column("created_at_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("agents", sa.Column("repositories", sa.Text, nullable=False, server_default=""))
