"""Bodies by their content: stored once for each project, read in chunks, removed when no run needs them."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from tempfile import SpooledTemporaryFile
from typing import IO

from sqlalchemy import Connection, MetaData, bindparam, case, delete, exists, func, select, text, update

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.errors import Reason, Refusal, not_found
from pointsman.services.chassis.storage.dialect import any_of, bind_list, insert_or_ignore, upsert
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.store import tables

ORPHANS_AT_ONCE = 100
HELD_OUT = "HELD_OUT"
"""The class of bodies that only operators and verifiers may read."""
CHUNK_BYTES = 1024 * 1024
"""A body is stored in pieces of this size, and read into memory no more than one at a time."""
PROJECTS_AT_ONCE = 2
"""So many projects can have as much on its way as one may: none can take all the room."""
QUOTA_RETRY_SECONDS = 3600.0
QUOTA_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended(:project, 0))")
"""Replicas store a project's bodies one after the other, so that they do not pass its quota together."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What is known of a stored body."""

    project: str
    sha256: str
    size_bytes: int
    media_type: str
    run_id: str
    principal: str = ""
    """Who put it; empty for the control plane itself."""
    is_held_out: bool = False
    """Only operators and verifiers may read it."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How many bytes a project, and one principal in it, may have stored; 0 means no limit."""

    project_bytes: int = 0
    principal_bytes: int = 0


NO_QUOTA = Quota()


class Arriving:
    """A body that is being received: in memory if it is short, else in a file; counted as it arrives."""

    def __init__(self, file: IO[bytes], reserve: Callable[[int], None]) -> None:
        self.file = file
        self.size_bytes = 0
        self._reserve = reserve
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The digest of what has arrived."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Take the next bytes, if there is room."""
        self._reserve(len(chunk))
        self.size_bytes += len(chunk)
        self._digest.update(chunk)
        self.file.write(chunk)


class Artifacts:
    """The stored bodies."""

    def __init__(self, store: Store, metadata: MetaData) -> None:
        self._store = store
        self.table = tables.artifacts(metadata)
        self.chunks = tables.artifact_chunks(metadata)
        self.uses = tables.artifact_uses(metadata)
        self._insert = upsert(store.database, self.table, ("project", "sha256"), ("size_bytes",))
        self._insert_chunk = insert_or_ignore(store.database, self.chunks)
        self.insert_use = insert_or_ignore(store.database, self.uses)
        chunk = self.chunks.c
        self._chunk = select(chunk.body).where(
            chunk.project == bindparam("project"),
            chunk.sha256 == bindparam("sha256"),
            chunk.number == bindparam("number"),
        )
        named = (self.table.c.project == bindparam("project"), self.table.c.sha256 == bindparam("sha256"))
        self._known = select(self.table.c.sha256).where(*named)
        self._class = select(self.table.c.artifact_class).where(*named)
        self._withhold = (
            update(self.table)
            .where(self.table.c.project == bindparam("of_project"), self.table.c.sha256 == bindparam("of_sha256"))
            .values(artifact_class=HELD_OUT)
        )
        entities = store.tables.entities.c
        self._run = select(entities.entity_id).where(
            entities.entity_id == bindparam("run_id"), entities.project == bindparam("project")
        )
        size_bytes = self.table.c.size_bytes
        own_bytes = case((self.table.c.principal == bindparam("principal"), size_bytes), else_=0)
        self._stored_bytes = select(
            func.coalesce(func.sum(size_bytes), 0), func.coalesce(func.sum(own_bytes), 0)
        ).where(named[0])
        self._arriving: Counter[str] = Counter()
        """Bytes of bodies on their way, by project."""
        self._sql = _Forgetting(store, self)

    @contextmanager
    def receiving(self, project: str, limit: int) -> Iterator[Arriving]:
        """Takes a body in: a project has no more on its way at once than the limit, all together have twice as much."""
        with SpooledTemporaryFile(CHUNK_BYTES) as file:
            body = Arriving(file, partial(self._reserve, project, limit))
            try:
                yield body
            finally:
                self._arriving[project] -= body.size_bytes
                if not self._arriving[project]:
                    del self._arriving[project]

    def _reserve(self, project: str, limit: int, size_bytes: int) -> None:
        """Count bytes that have arrived; what was only announced takes no room."""
        arriving = self._arriving
        if arriving[project] + size_bytes > limit or arriving.total() + size_bytes > PROJECTS_AT_ONCE * limit:
            raise Refusal(
                Reason.OVERLOADED,
                "too much is being put at once; try again",
                metadata={"limit": str(limit)},
                retry_after_seconds=1.0,
            )
        arriving[project] += size_bytes

    async def put(self, artifact: Artifact, body: IO[bytes], quota: Quota = NO_QUOTA) -> None:
        """Store a body whose digest was checked; the upsert holds its row, so that nobody forgets it meanwhile.

        One that is there already is left as it is: its chunks may be of another size.
        """
        refusal = await self._store.write(self._putting(artifact, body, quota))
        if refusal is not None:
            raise refusal

    def _putting(self, artifact: Artifact, body: IO[bytes], quota: Quota) -> Callable[[Connection], Refusal | None]:
        key = {"project": artifact.project, "sha256": artifact.sha256}
        created_at_us = to_us(self._store.database.clock.now())
        facts = {
            "size_bytes": artifact.size_bytes, "media_type": artifact.media_type, "run_id": artifact.run_id,
            "principal": artifact.principal,
        }  # fmt: skip

        def job(connection: Connection) -> Refusal | None:
            if quota != NO_QUOTA and self._store.database.features.advisory_locks:
                connection.execute(QUOTA_LOCK, {"project": artifact.project})
            is_known = connection.execute(self._known, key).first() is not None
            refusal = self._no_run(connection, artifact) or (
                None if is_known else self._beyond(connection, artifact, quota)
            )
            if refusal is not None:
                return refusal
            connection.execute(self._insert, {**key, **facts, "created_at_us": created_at_us, "artifact_class": ""})
            if artifact.is_held_out:
                connection.execute(self._withhold, {"of_project": artifact.project, "of_sha256": artifact.sha256})
            body.seek(0)
            for number in count() if not is_known else ():
                piece = body.read(CHUNK_BYTES)
                if not piece:
                    break
                connection.execute(self._insert_chunk, {**key, "number": number, "body": piece})
            if artifact.run_id:
                connection.execute(self.insert_use, {**key, "entity_id": artifact.run_id})
            return None

        return job

    def _no_run(self, connection: Connection, artifact: Artifact) -> Refusal | None:
        """The refusal of a body for a run that is not there: nothing would ever forget it."""
        named = {"project": artifact.project, "run_id": artifact.run_id}
        if not artifact.run_id or connection.execute(self._run, named).first() is not None:
            return None
        return not_found("run", artifact.run_id)

    def _beyond(self, connection: Connection, artifact: Artifact, quota: Quota) -> Refusal | None:
        """The refusal of a body that would pass the project's quota, or its principal's."""
        if quota == NO_QUOTA:
            return None
        whose = {"project": artifact.project, "principal": artifact.principal}
        project_bytes, own_bytes = connection.execute(self._stored_bytes, whose).one()
        if 0 < quota.project_bytes < project_bytes + artifact.size_bytes:
            return _over_quota(artifact, f"project {artifact.project}", project_bytes, ("PROJECT", quota.project_bytes))
        if artifact.principal and 0 < quota.principal_bytes < own_bytes + artifact.size_bytes:
            who = f"{artifact.principal} in project {artifact.project}"
            return _over_quota(artifact, who, own_bytes, ("PRINCIPAL", quota.principal_bytes))
        return None

    async def is_held_out(self, project: str, sha256: str) -> bool | None:
        """Whether only operators and verifiers may read a body; None when there is no such artifact."""
        key = {"project": project, "sha256": sha256}
        found = await self._store.database.read(
            lambda connection: connection.execute(self._class, key).scalar_one_or_none()
        )
        return None if found is None else found == HELD_OUT

    async def chunk(self, project: str, sha256: str, number: int) -> bytes | None:
        """One chunk; None after the last, and when there is no such artifact."""
        parameters = {"project": project, "sha256": sha256, "number": number}
        return await self._store.database.read(
            lambda connection: connection.execute(self._chunk, parameters).scalar_one_or_none()
        )

    def forget(self, connection: Connection, run_id: str) -> None:
        """Removes a run's uses of bodies, and the bodies that no other run uses."""
        used = connection.execute(self._sql.used, {"run_id": run_id}).all()
        for statement in self._sql.forget_run:
            connection.execute(statement, {"of_run": run_id})
        for project in sorted({row.project for row in used}):
            self._drop(connection, project, [row.sha256 for row in used if row.project == project])

    def forget_orphans(self, connection: Connection, before_us: int) -> int:
        """Bodies that were put long ago and that no run needs; how many."""
        rows = connection.execute(self._sql.orphans, {"before": before_us}).all()
        for project in sorted({row.project for row in rows}):
            self._drop(connection, project, [row.sha256 for row in rows if row.project == project])
        return len(rows)

    def _drop(self, connection: Connection, project: str, digests: Sequence[str]) -> None:
        wanted = {"project": project, "values": bind_list(self._store.database, sorted(digests))}
        free = list(connection.scalars(self._sql.hold, wanted))
        needed = set(connection.scalars(self._sql.needed, wanted))
        gone = [digest for digest in free if digest not in needed]
        for statement in self._sql.drop:
            connection.execute(statement, {"project": project, "values": bind_list(self._store.database, gone)})


def _over_quota(artifact: Artifact, whose: str, stored_bytes: int, limit: tuple[str, int]) -> Refusal:
    kind, quota_bytes = limit
    return Refusal(
        Reason.OVERLOADED,
        f"{whose} has {stored_bytes} bytes of artifacts; with {artifact.size_bytes} more it would pass its "
        f"quota of {quota_bytes} (POINTSMAN_ORCHESTRATOR_MAX_{kind}_ARTIFACT_BYTES): raise it, or wait until ended runs are "
        "forgotten (POINTSMAN_ORCHESTRATOR_RETENTION_DAYS)",
        metadata={"limit": str(quota_bytes)},
        retry_after_seconds=QUOTA_RETRY_SECONDS,
    )


class _Forgetting:
    """The statements that forget, built once."""

    def __init__(self, store: Store, artifacts: Artifacts) -> None:
        table, uses, database = artifacts.table, artifacts.uses, store.database
        self.used = select(uses.c.project, uses.c.sha256).where(uses.c.entity_id == bindparam("run_id"))
        self.forget_run = (
            delete(uses).where(uses.c.entity_id == bindparam("of_run")),
            update(table).where(table.c.run_id == bindparam("of_run")).values(run_id=""),
        )
        named = (table.c.project == bindparam("project"), any_of(database, table.c.sha256))
        hold = select(table.c.sha256).where(*named).order_by(table.c.sha256)
        self.hold = hold.with_for_update() if database.is_postgresql else hold
        self.needed = select(uses.c.sha256).where(
            uses.c.project == bindparam("project"), any_of(database, uses.c.sha256)
        )
        is_used = exists().where(uses.c.project == table.c.project, uses.c.sha256 == table.c.sha256)
        self.orphans = (
            select(table.c.project, table.c.sha256)
            .where(table.c.created_at_us < bindparam("before"), ~is_used)
            .limit(ORPHANS_AT_ONCE)
        )
        self.drop = [
            delete(each).where(each.c.project == bindparam("project"), any_of(database, each.c.sha256))
            for each in (artifacts.chunks, table)
        ]
