"""Snapshots of live trees, and the conflicts that are coming: rows that replace each other, no transitions."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, delete, insert, or_, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.storage.dialect import upsert
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.views import LiveTrees, Prediction, Snapshot
from pointsman.services.orchestrator.store import tables

FRESH_US = 600 * 1_000_000
MAX_SNAPSHOTS = 200
MAX_ANSWER_BYTES = 4 * 1024 * 1024
LOOK_SECONDS = 5.0
TREES = "#trees"
"""Told whenever a tree is put."""


class Predictions:
    """What is predicted from the trees of live runs."""

    def __init__(self, store: Store, metadata: MetaData) -> None:
        self._store = store
        self.snapshots = tables.snapshots(metadata)
        self.predictions = tables.predictions(metadata)
        changed = [column.name for column in self.snapshots.c if not column.primary_key]
        self._upsert = upsert(store.database, self.snapshots, ("project", "assignment_id"), tuple(changed))
        snapshot, prediction = self.snapshots.c, self.predictions.c
        of_repository = (
            snapshot.project == bindparam("project"),
            snapshot.repository_id == bindparam("repository_id"),
            snapshot.at_us > bindparam("after_us"),
        )
        without_bundle = [column for column in snapshot if column.name != "bundle"]
        self._fresh = select(*without_bundle).where(*of_repository).order_by(snapshot.at_us.desc()).limit(MAX_SNAPSHOTS)
        self._bundle = select(snapshot.bundle).where(
            snapshot.project == bindparam("project"), snapshot.assignment_id == bindparam("assignment_id")
        )
        self._drop = delete(self.snapshots).where(snapshot.at_us <= bindparam("before_us"))
        self._clear = delete(self.predictions).where(
            prediction.project == bindparam("of_project"), prediction.repository_id == bindparam("of_repository")
        )
        self._insert = insert(self.predictions)

    def put(self, connection: Connection, project: str, repository_id: str, snapshot: Snapshot) -> None:
        """Keep an assignment's present tree instead of the one before, and drop those that nobody needs any more."""
        now_us = to_us(self._store.database.clock.now())
        row = {
            "project": project, "assignment_id": snapshot.assignment_id, "run_id": snapshot.run_id,
            "task_id": snapshot.task_id, "declared_files": to_json(snapshot.declared_files),
            "repository_id": repository_id, "base_commit": snapshot.base_commit, "commit_id": snapshot.commit,
            "bundle": snapshot.bundle, "at_us": now_us,
        }  # fmt: skip
        connection.execute(self._upsert, row)
        connection.execute(self._drop, {"before_us": now_us - FRESH_US})
        self._store.notify({TREES})

    async def wait(self, project: str, repository_id: str, after_us: int, wait_seconds: float) -> None:
        """Until a tree was put after a time, or the wait is over."""
        left = wait_seconds
        with self._store.hub.subscribed(TREES) as news:
            while left > 0:
                news.clear()
                if (await self.fresh(project, repository_id, after_us=after_us)).snapshots:
                    return
                await wait_for_notification(news, min(left, LOOK_SECONDS))
                left -= LOOK_SECONDS

    async def fresh(
        self, project: str, repository_id: str, have: Collection[str] | None = None, after_us: int = 0
    ) -> LiveTrees:
        """The trees of the last minutes, newest first; with the bundles that the asker has not, as many as fit."""
        oldest_us = max(after_us, to_us(self._store.database.clock.now()) - FRESH_US)
        wanted = {"project": project, "repository_id": repository_id, "after_us": oldest_us}

        def query(connection: Connection) -> LiveTrees:
            rows = connection.execute(self._fresh, wanted).all()
            left, more, found = MAX_ANSWER_BYTES, False, []
            for row in rows:
                needs = have is not None and row.commit_id not in have and row.commit_id != row.base_commit
                bundle = self._bundle_of(connection, project, row.assignment_id) if needs and not more else b""
                more = more or (needs and len(bundle) > left)
                left -= len(bundle)
                found.append(_snapshot(row, b"" if more else bundle))
            return LiveTrees(tuple(found), rows[0].at_us if rows else 0, more)

        return await self._store.database.read(query)

    def _bundle_of(self, connection: Connection, project: str, assignment_id: str) -> bytes:
        return bytes(
            connection.execute(self._bundle, {"project": project, "assignment_id": assignment_id}).scalar_one()
        )

    async def replace(self, project: str, repository_id: str, found: Sequence[Prediction]) -> None:
        """Replace what is predicted for a repository."""
        at_us = to_us(self._store.database.clock.now())
        whose = {"project": project, "repository_id": repository_id, "at_us": at_us}
        pairs = {
            tuple(sorted(((one.run_id, one.task_id), (one.other_run_id, one.other_task_id)))): one for one in found
        }
        rows = [
            {
                **whose, "run_id": first[0], "task_id": first[1], "other_run_id": second[0], "other_task_id": second[1],
                "declared": int(one.declared), "files": to_json(one.files),
            }
            for (first, second), one in pairs.items()
        ]  # fmt: skip

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
        return [_prediction(row) for row in rows]


def _snapshot(row: Any, bundle: bytes) -> Snapshot:
    declared = from_json(row.declared_files, tuple[str, ...])
    tree = (row.base_commit, row.commit_id, bundle)
    return Snapshot(row.assignment_id, row.run_id, *tree, row.task_id, declared, row.at_us)


def _prediction(row: Any) -> Prediction:
    files, declared = from_json(row.files, tuple[str, ...]), bool(row.declared)
    return Prediction(row.run_id, row.other_run_id, files, row.at_us, row.task_id, row.other_task_id, declared)
