"""The chassis tables of every store, for statements; the migrations create them with their indexes."""

from dataclasses import dataclass
from functools import cache

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table, Text

from pointsman.services.chassis.storage.packing import DIGEST, PACKED, TRACEPARENT


@dataclass(frozen=True, slots=True)
class ChassisTables:
    """The chassis tables of one store."""

    entities: Table
    journal: Table
    outbox: Table
    timers: Table
    idempotency: Table
    leases: Table
    cursors: Table
    head: Table


@cache
def chassis_tables(metadata: MetaData) -> ChassisTables:
    """Declare the chassis tables in a store's metadata."""
    return ChassisTables(
        entities=_entities(metadata),
        journal=_journal(metadata),
        outbox=_outbox(metadata),
        timers=_timers(metadata),
        idempotency=_idempotency(metadata),
        leases=_leases(metadata),
        cursors=Table(
            "cursors",
            metadata,
            Column("name", String(128), primary_key=True),
            Column("position", BigInteger, nullable=False),
        ),
        head=Table(
            "head",
            metadata,
            Column("only", Integer, primary_key=True, autoincrement=False),
            Column("position", BigInteger, nullable=False),
        ),
    )


def _entities(metadata: MetaData) -> Table:
    return Table(
        "entities",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("kind", String(32), nullable=False),
        Column("project", String(64), nullable=False),
        Column("run_id", String(256), nullable=False),
        Column("machine_version", Integer, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("status", String(64), nullable=False),
        Column("digest", DIGEST, nullable=False),
        Column("traceparent", TRACEPARENT, nullable=False),
        Column("created_at_us", BigInteger, nullable=False),
        Column("entered_at_us", BigInteger, nullable=False),
        Column("updated_at_us", BigInteger, nullable=False),
        Column("body", PACKED, nullable=False),
    )


def _journal(metadata: MetaData) -> Table:
    return Table(
        "journal",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("seq", BigInteger, primary_key=True, autoincrement=False),
        Column("position", BigInteger, nullable=False),
        Column("kind", String(32), nullable=False),
        Column("project", String(64), nullable=False),
        Column("run_id", String(256), nullable=False),
        Column("machine_version", Integer, nullable=False),
        Column("at_us", BigInteger, nullable=False),
        Column("event", String(64), nullable=False),
        Column("source", String(64), nullable=False),
        Column("target", String(64), nullable=False),
        Column("payload", PACKED, nullable=False),
        Column("actor", String(256), nullable=False),
        Column("traceparent", TRACEPARENT, nullable=False),
        Column("digest", DIGEST, nullable=False),
    )


def _outbox(metadata: MetaData) -> Table:
    return Table(
        "outbox",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("seq", BigInteger, primary_key=True, autoincrement=False),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("kind", String(64), nullable=False),
        Column("payload", PACKED, nullable=False),
        Column("project", String(64), nullable=False),
        Column("traceparent", TRACEPARENT, nullable=False),
        Column("created_at_us", BigInteger, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("due_at_us", BigInteger, nullable=False),
        Column("lease_owner", String(64), nullable=False),
        Column("lease_until_us", BigInteger, nullable=False),
        Column("last_error", String(256), nullable=False),
    )


def _timers(metadata: MetaData) -> Table:
    return Table(
        "timers",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("name", String(128), primary_key=True),
        Column("seq", BigInteger, nullable=False),
        Column("payload", PACKED, nullable=False),
        Column("project", String(64), nullable=False),
        Column("traceparent", TRACEPARENT, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("due_at_us", BigInteger, nullable=False),
        Column("lease_until_us", BigInteger, nullable=False),
    )


def _idempotency(metadata: MetaData) -> Table:
    return Table(
        "idempotency",
        metadata,
        Column("request_id", String(512), primary_key=True),
        Column("project", String(64), primary_key=True),
        Column("fingerprint", DIGEST, nullable=False),
        Column("entity_id", String(256), nullable=False),
        Column("command", String(64), nullable=False),
        Column("answer", PACKED, nullable=False),
        Column("at_us", BigInteger, nullable=False),
        Column("principal", Text, primary_key=True),
        Index("idempotency_by_principal", "project", "principal"),
    )


def _leases(metadata: MetaData) -> Table:
    return Table(
        "leases",
        metadata,
        Column("name", String(128), primary_key=True),
        Column("owner", String(64), nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("until_us", BigInteger, nullable=False),
    )
