"""The orchestrator's own tables, beside those that every store has."""

from functools import cache

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

from pointsman.services.chassis.storage.packing import PACKED, TRACEPARENT

METADATA = MetaData()
"""The tables of every orchestrator's store: declared once in a process."""


@cache
def run_index(metadata: MetaData) -> Table:
    """Runs by session, when and how they ended (0 and empty while they live), since when they ask, and their words."""
    return Table(
        "run_index",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("project", String(64), nullable=False),
        Column("session_id", String(128), nullable=False),
        Column("ended_at_us", BigInteger, nullable=False),
        Column("outcome", String(16), nullable=False),
        Column("asked_at_us", BigInteger, nullable=False),
        Column("words", Text, nullable=False),
        Index("run_index_by_session", "project", "session_id"),
        Index("run_index_by_end", "ended_at_us"),
        Index("run_index_by_outcome", "outcome", "project", "ended_at_us", "entity_id"),
    )


@cache
def assignments(metadata: MetaData) -> Table:
    """Assignments with their leases."""
    return Table(
        "assignments",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("assignment_id", String(256), primary_key=True),
        Column("project", String(64), nullable=False),
        Column("status", String(16), nullable=False),
        Column("capability", String(16), nullable=False),
        Column("repository_id", String(128), nullable=False),
        Column("excluded_agent", String(128), nullable=False),
        Column("priority", Integer, nullable=False),
        Column("agent_id", String(128), nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("lease_until_us", BigInteger, nullable=False),
        Column("deadline_us", BigInteger, nullable=False),
        Column("created_at_us", BigInteger, nullable=False),
        Column("traceparent", TRACEPARENT, nullable=False),
        Column("poll_id", String(192), nullable=False),
        Column("tokens", BigInteger, nullable=False),
        Column("cost_micros", BigInteger, nullable=False),
        Column("body", PACKED, nullable=False),
        Column("principal", Text, nullable=False),
        Column("principal_epoch", BigInteger, nullable=False),
        Column("apart_epoch", BigInteger, nullable=False),
        Column("secret_digests", Text, nullable=False),
        Column("secret_epoch", BigInteger, nullable=False),
        Column("excluded_principals", Text, nullable=False),
        Column("reserved", Integer, nullable=False),
        Index("assignments_by_queue", "status", "project", "capability", "priority", "created_at_us"),
        Index("assignments_by_poll", "poll_id"),
    )


@cache
def documents(metadata: MetaData) -> Table:
    """What agents handed in, by name: plan, design, research/<slot>, work/<task>, verification."""
    return Table(
        "documents",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("name", String(256), primary_key=True),
        Column("body", PACKED, nullable=False),
    )


@cache
def outputs(metadata: MetaData) -> Table:
    """What agents printed under each lease: the end of it, and where the whole is."""
    return Table(
        "outputs",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("assignment_id", String(256), primary_key=True),
        Column("epoch", BigInteger, primary_key=True, autoincrement=False),
        Column("agent_id", String(128), nullable=False),
        Column("tail", PACKED, nullable=False),
        Column("end_offset", BigInteger, nullable=False),
        Column("transcript_sha256", String(64), nullable=False),
        Column("transcript_bytes", BigInteger, nullable=False),
    )


@cache
def agents(metadata: MetaData) -> Table:
    """Agents that polled, and when they were last heard of."""
    return Table(
        "agents",
        metadata,
        Column("project", String(64), primary_key=True),
        Column("agent_id", String(128), primary_key=True),
        Column("capabilities", String(256), nullable=False),
        Column("last_seen_us", BigInteger, nullable=False),
        Column("repositories", Text, nullable=False),
        Column("principal", Text, nullable=False),
        Column("run_ids", Text, nullable=False),
        Column("account", String(128), nullable=False),
        Column("offers", Text, nullable=False),
    )


@cache
def account_limits(metadata: MetaData) -> Table:
    """Limits of accounts at the providers of models, by who reported them."""
    return Table(
        "account_limits",
        metadata,
        Column("project", String(64), primary_key=True),
        Column("account", String(128), primary_key=True),
        Column("principal", Text, primary_key=True),
        Column("until_us", BigInteger, nullable=False),
        Column("shared_from_us", BigInteger, nullable=False),
        Column("shared_until_us", BigInteger, nullable=False),
        Column("kind", String(16), nullable=False),
        Column("reason", Text, nullable=False),
    )


@cache
def limited_work(metadata: MetaData) -> Table:
    """Leases that went back because of a provider's limit, until the journals of their runs tell of it."""
    return Table(
        "limited_work",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("assignment_id", String(256), primary_key=True),
        Column("epoch", BigInteger, primary_key=True),
        Column("project", String(64), nullable=False),
        Column("traceparent", String(64), nullable=False),
        Column("agent_id", String(128), nullable=False),
        Column("account", String(128), nullable=False),
        Column("until_us", BigInteger, nullable=False),
        Column("kind", String(16), nullable=False),
        Column("reason", Text, nullable=False),
        Column("reported", Integer, nullable=False),
        Column("taken_epoch", BigInteger, nullable=False),
        Column("taken_agent", String(128), nullable=False),
        Column("taken_account", String(128), nullable=False),
    )


@cache
def artifacts(metadata: MetaData) -> Table:
    """Stored bodies, named by their content."""
    return Table(
        "artifacts",
        metadata,
        Column("project", String(64), primary_key=True),
        Column("sha256", String(64), primary_key=True),
        Column("size_bytes", BigInteger, nullable=False),
        Column("media_type", String(128), nullable=False),
        Column("run_id", String(128), nullable=False),
        Column("created_at_us", BigInteger, nullable=False),
        Column("principal", Text, nullable=False),
        Column("artifact_class", String(16), nullable=False, server_default=""),
        Index("artifacts_by_run", "run_id"),
    )


@cache
def artifact_uses(metadata: MetaData) -> Table:
    """Which run needs which body: it was put for the run, or something handed in names it."""
    return Table(
        "artifact_uses",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("sha256", String(64), primary_key=True),
        Column("project", String(64), nullable=False),
        Index("artifact_uses_by_body", "project", "sha256"),
    )


@cache
def artifact_chunks(metadata: MetaData) -> Table:
    """The bodies, in pieces."""
    return Table(
        "artifact_chunks",
        metadata,
        Column("project", String(64), primary_key=True),
        Column("sha256", String(64), primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("body", LargeBinary, nullable=False),
    )


@cache
def entry_index(metadata: MetaData) -> Table:
    """Entries by queue, by run and by status, in order of priority and arrival."""
    return Table(
        "entry_index",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("project", String(64), nullable=False),
        Column("queue_id", String(64), nullable=False),
        Column("repository_id", String(128), nullable=False),
        Column("run_id", String(128), nullable=False),
        Column("status", String(16), nullable=False),
        Column("priority", Integer, nullable=False),
        Column("created_at_us", BigInteger, nullable=False),
        Index("entry_index_by_queue", "project", "status", "repository_id"),
        Index("entry_index_by_run", "run_id"),
    )


@cache
def snapshots(metadata: MetaData) -> Table:
    """The present trees of assignments; each replaces the one before."""
    return Table(
        "snapshots",
        metadata,
        Column("project", String(64), primary_key=True),
        Column("assignment_id", String(160), primary_key=True),
        Column("run_id", String(128), nullable=False),
        Column("task_id", String(128), nullable=False),
        Column("declared_files", Text, nullable=False),
        Column("repository_id", String(128), nullable=False),
        Column("base_commit", String(64), nullable=False),
        Column("commit_id", String(64), nullable=False),
        Column("bundle", LargeBinary, nullable=False),
        Column("at_us", BigInteger, nullable=False),
        Index("snapshots_by_repository", "project", "repository_id", "at_us"),
    )


@cache
def predictions(metadata: MetaData) -> Table:
    """Pairs of work whose trees conflict, or whose plans meet, as the integrator saw them last."""
    return Table(
        "predictions",
        metadata,
        Column("project", String(64), primary_key=True),
        Column("repository_id", String(128), primary_key=True),
        Column("run_id", String(128), primary_key=True),
        Column("task_id", String(128), primary_key=True),
        Column("other_run_id", String(128), primary_key=True),
        Column("other_task_id", String(128), primary_key=True),
        Column("declared", Integer, nullable=False),
        Column("files", Text, nullable=False),
        Column("at_us", BigInteger, nullable=False),
    )


@cache
def schedule_index(metadata: MetaData) -> Table:
    """Schedules of a project by age, and those that were deleted, for retention."""
    return Table(
        "schedule_index",
        metadata,
        Column("entity_id", String(256), primary_key=True),
        Column("project", String(64), nullable=False),
        Column("status", String(16), nullable=False),
        Column("created_at_us", BigInteger, nullable=False),
        Column("deleted_at_us", BigInteger, nullable=False),
        Index("schedule_index_by_project", "project", "created_at_us"),
        Index("schedule_index_by_deletion", "deleted_at_us"),
    )
