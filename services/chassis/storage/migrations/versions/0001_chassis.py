"""Entities, journal, outbox, timers, idempotency, leases and the head."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables that every store has, as they were in the first version."""
    _entities()
    _journal()
    _outbox()
    _timers()
    _idempotency()
    op.create_table(
        "leases",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "cursors",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    head = op.create_table(
        "head",
        sa.Column("only", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(head, [{"only": 1, "position": 0}])


def _entities() -> None:
    op.create_table(
        "entities",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(256), nullable=False),
        sa.Column("machine_version", sa.Integer, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("created_at_us", sa.BigInteger, nullable=False),
        sa.Column("entered_at_us", sa.BigInteger, nullable=False),
        sa.Column("updated_at_us", sa.BigInteger, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_index("entities_by_project", "entities", ["project", "kind", "created_at_us", "entity_id"])
    op.create_index("entities_by_run", "entities", ["run_id"])


def _journal() -> None:
    """PostgreSQL: keyed by entity, so that it can be spread; SQLite: in commit order, so that a batch is one run of pages."""
    by_entity = _on_postgresql()
    op.create_table(
        "journal",
        sa.Column("position", sa.BigInteger if by_entity else sa.Integer, primary_key=not by_entity, nullable=False),
        sa.Column("entity_id", sa.String(256), primary_key=by_entity, nullable=False),
        sa.Column("seq", sa.BigInteger, primary_key=by_entity, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(256), nullable=False),
        sa.Column("machine_version", sa.Integer, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("actor", sa.String(256), nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
    )
    if by_entity:
        op.create_index("journal_by_position", "journal", ["position"])
    else:
        op.create_index("journal_by_entity", "journal", ["entity_id", "seq"], unique=True)


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("created_at_us", sa.BigInteger, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at_us", sa.BigInteger, nullable=False),
        sa.Column("lease_owner", sa.String(64), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger, nullable=False),
        sa.Column("last_error", sa.String(256), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("outbox_by_due", "outbox", ["due_at_us"])


def _timers() -> None:
    op.create_table(
        "timers",
        sa.Column("entity_id", sa.String(256), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("project", sa.String(64), nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("due_at_us", sa.BigInteger, nullable=False),
        sa.Column("lease_until_us", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("timers_by_due", "timers", ["due_at_us"])


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("request_id", sa.String(512), primary_key=True),
        sa.Column("project", sa.String(64), primary_key=True),
        sa.Column("fingerprint", sa.String(512), nullable=False),
        sa.Column("entity_id", sa.String(256), nullable=False),
        sa.Column("command", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
    )
    if _on_postgresql():
        op.create_index("idempotency_by_age", "idempotency", ["at_us"], postgresql_using="brin")


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"
