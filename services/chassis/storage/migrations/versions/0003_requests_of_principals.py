"""Each principal has request ids of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = ["request_id", "project", "principal"]
MOVE = """
INSERT INTO idempotency (request_id, project, fingerprint, entity_id, command, answer, at_us, principal)
SELECT request_id, project, fingerprint, entity_id, command, answer, at_us, principal FROM idempotency_before
"""


def upgrade() -> None:
    """Add the principal to the key of idempotency records; all of them stay, and the version before can go on writing."""
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("idempotency_pkey", "idempotency", type_="primary")
        op.create_primary_key("idempotency_pkey", "idempotency", KEY)
        return
    op.rename_table("idempotency", "idempotency_before")
    op.create_table(
        "idempotency",
        sa.Column("request_id", sa.String(512), primary_key=True),
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("fingerprint", sa.String(512), nullable=False),
        sa.Column("entity_id", sa.String(256), nullable=False),
        sa.Column("command", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("principal", sa.Text, primary_key=True),
    )
    op.execute(MOVE)
    op.drop_table("idempotency_before")
    op.create_index("idempotency_by_principal", "idempotency", ["project", "principal"])
