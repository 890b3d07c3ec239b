"""Snapshots of live trees, and the conflicts that are coming: rows that replace each other, no transitions."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, delete, insert, or_, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.storage.dialect import upsert
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.views import Prediction, Snapshot
from pointsman.services.orchestrator.store import tables

FRESH_US = 600 * 1_000_000
MAX_SNAPSHOTS = 20


class Predictions:
    """What is predicted from the trees of live runs."""

    def __init__(self, store: Store, metadata: MetaData) -> None:
        self._store = store
        self.snapshots = tables.snapshots(metadata)
        self.predictions = tables.predictions(metadata)
        changed = ("repository_id", "base_commit", "commit_id", "bundle", "at_us")
        self._upsert = upsert(store.database, self.snapshots, ("project", "run_id"), changed)
        snapshot, prediction = self.snapshots.c, self.predictions.c
        self._fresh = (
            select(self.snapshots)
            .where(
                snapshot.project == bindparam("project"),
                snapshot.repository_id == bindparam("repository_id"),
                snapshot.at_us > bindparam("after_us"),
            )
            .order_by(snapshot.at_us.desc())
            .limit(MAX_SNAPSHOTS)
        )
        self._drop = delete(self.snapshots).where(snapshot.at_us <= bindparam("before_us"))
        self._clear = delete(self.predictions).where(
            prediction.project == bindparam("of_project"), prediction.repository_id == bindparam("of_repository")
        )
        self._insert = insert(self.predictions)

    def put(self, connection: Connection, project: str, repository_id: str, snapshot: Snapshot) -> None:
        """Keep a run's present tree instead of the one before, and drop those that nobody needs any more."""
        now_us = to_us(self._store.database.clock.now())
        row = {
            "project": project, "run_id": snapshot.run_id, "repository_id": repository_id,
            "base_commit": snapshot.base_commit, "commit_id": snapshot.commit, "bundle": snapshot.bundle, "at_us": now_us,
        }  # fmt: skip
        connection.execute(self._upsert, row)
        connection.execute(self._drop, {"before_us": now_us - FRESH_US})

    async def fresh(self, project: str, repository_id: str) -> Sequence[Snapshot]:
        """The trees of the last minutes, newest first."""
        after_us = to_us(self._store.database.clock.now()) - FRESH_US
        wanted = {"project": project, "repository_id": repository_id, "after_us": after_us}
        rows = await self._store.database.read(lambda connection: connection.execute(self._fresh, wanted).all())
        return [Snapshot(row.run_id, row.base_commit, row.commit_id, bytes(row.bundle)) for row in rows]

    async def replace(self, project: str, repository_id: str, found: Sequence[Prediction]) -> None:
        """Replace what is predicted for a repository."""
        at_us = to_us(self._store.database.clock.now())
        whose = {"project": project, "repository_id": repository_id, "at_us": at_us}
        pairs = {tuple(sorted((one.run_id, one.other_run_id))): one.files for one in found}
        rows = [
            {**whose, "run_id": first, "other_run_id": second, "files": to_json(files)}
            for (first, second), files in pairs.items()
        ]

        def job(connection: Connection) -> None:
            connection.execute(self._clear, {"of_project": project, "of_repository": repository_id})
            if rows:
                connection.execute(self._insert, rows)

        await self._store.write(job)

    async def of(self, project: str, run_id: str = "") -> Sequence[Prediction]:
        """What is predicted for a run, or for the project, as long as it is fresh."""
        column: Any = self.predictions.c
        after_us = to_us(self._store.database.clock.now()) - FRESH_US
        statement = select(self.predictions).where(column.project == project, column.at_us > after_us)
        if run_id:
            statement = statement.where(or_(column.run_id == run_id, column.other_run_id == run_id))
        rows = await self._store.database.read(lambda connection: connection.execute(statement).all())
        return [
            Prediction(row.run_id, row.other_run_id, from_json(row.files, tuple[str, ...]), row.at_us) for row in rows
        ]
