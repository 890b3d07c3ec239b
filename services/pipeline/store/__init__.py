"""The store of pipelines: changes go through the ledger, each query is one read transaction."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, and_, or_, select

from pointsman.services.chassis.core.caller import ENGINE_REQUESTS, Caller
from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.errors import Refusal, not_found
from pointsman.services.chassis.engine.journal import Journal, Transition, until
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.retention import find_answer, forget_run, store_answer
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import insert_or_ignore
from pointsman.services.chassis.storage.store import Store
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import MERGED
from pointsman.services.pipeline.domain.decision import CLEAN_UP_TIMER
from pointsman.services.pipeline.domain.delegation import addressed_reports, context_handle
from pointsman.services.pipeline.domain.enums import KIND, LIVE
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.model import Head, Report
from pointsman.services.pipeline.domain.views import (
    CleanedUp,
    ListedPipeline,
    PipelineCursor,
    PipelineFilter,
    StoredPipeline,
)
from pointsman.services.pipeline.store.children import PipelineChildren
from pointsman.services.pipeline.store.measures import measure
from pointsman.services.pipeline.store.tables import METADATA, pipeline_tables

MAX_MERGED_CHARACTERS = 1_048_576
MAX_CLEANED = 1000


class PipelineStore:
    """Pipelines, their reports and their journal."""

    def __init__(self, database: Database) -> None:
        self.store = Store(database, METADATA)
        self._own = pipeline_tables(METADATA)
        self._children = PipelineChildren(database, self._own)
        self.ledger = Ledger(self.store, MACHINE, self._children, measure)
        self.journal = Journal(self.store)

    async def submit(self, caller: Caller, command: Any) -> Any:
        """Submits a command to the ledger."""
        return await self.ledger.submit(caller, command)

    async def store_report(self, caller: Caller, pipeline_id: str, body: str) -> commands.NewReport:
        """Stores the body of a report under its digest, before the command that attaches it; not for an ended pipeline."""
        data = body.encode()
        report = commands.NewReport(sha256(data).hexdigest(), len(data))
        row = {
            "entity_id": pipeline_id,
            "sha256": report.sha256,
            "body": body,
            "created_at_us": to_us(self.store.database.clock.now()),
        }

        def job(connection: Connection) -> Refusal | None:
            status = self._status(connection, caller.project, pipeline_id)
            if status is None:
                return not_found(KIND, pipeline_id)
            if status in LIVE:
                connection.execute(insert_or_ignore(self.store.database, self._own.reports), row)
            return None

        refused = await self.store.write(job)
        if refused is not None:
            raise refused
        return report

    async def get(self, project: str, pipeline_id: str) -> StoredPipeline:
        """A pipeline with all its stages."""
        return await self.store.database.read(lambda connection: self._get(connection, project, pipeline_id))

    async def watch(
        self, project: str, pipeline_id: str, after_seq: int, most: int = 1
    ) -> AsyncIterator[list[Transition]]:
        """The transitions of a pipeline after a seq, until it has ended and all are sent."""
        stored = await self.get(project, pipeline_id)
        last_seq = 0 if stored.pipeline.is_live() else stored.seq
        if not stored.pipeline.is_live() and after_seq >= last_seq:
            return
        batches = self.journal.tail(project, (KIND, pipeline_id), after_seq, most)
        async for rows in until(batches, lambda row: row.target not in LIVE and row.seq >= last_seq):
            yield rows

    async def context(self, project: str, pipeline_id: str, reader: str, handle: str) -> str:
        """The report of a handle, for the delegation that it is addressed to; several are joined under headings."""

        def query(connection: Connection) -> str:
            stored = self._get(connection, project, pipeline_id)
            reports = addressed_reports(stored.pipeline, pipeline_id, reader, handle)
            return self._joined(connection, pipeline_id, handle, reports)

        return await self.store.database.read(query)

    async def page(
        self, project: str, wanted: PipelineFilter, after: PipelineCursor | None, limit: int
    ) -> list[ListedPipeline]:
        """Pipelines of a project, newest first, after a cursor."""
        entities = self.store.tables.entities
        conditions = [entities.c.project == project, entities.c.kind == KIND]
        if wanted.statuses:
            conditions.append(entities.c.status.in_(wanted.statuses))
        if wanted.run_id:
            conditions.append(entities.c.run_id == wanted.run_id)
        if after is not None:
            same = and_(entities.c.created_at_us == after.created_at_us, entities.c.entity_id < after.pipeline_id)
            conditions.append(or_(entities.c.created_at_us < after.created_at_us, same))
        columns = (entities.c.entity_id, entities.c.body, entities.c.created_at_us, entities.c.updated_at_us)
        order = (entities.c.created_at_us.desc(), entities.c.entity_id.desc())
        statement = select(*columns).where(*conditions).order_by(*order).limit(limit)
        rows = await self.store.database.read(lambda connection: connection.execute(statement).all())
        return [ListedPipeline(row[0], from_json(row[1], Head), from_us(row[2]), from_us(row[3])) for row in rows]

    async def clean_up(self, caller: Caller, older_than_seconds: float) -> CleanedUp:
        """Cleans up pipelines of a project that ended long enough ago; a repeated request gets the first answer."""
        before = await self._stored_answer(caller, None)
        if before is not None:
            return before
        now = self.store.database.clock.now()
        ended_before = now - timedelta(seconds=min(older_than_seconds, now.timestamp()))
        found = await self._ended(caller.project, ended_before)
        for pipeline_id in found:
            step = replace(caller, request_id=f"{ENGINE_REQUESTS}clean-up:{caller.request_id}:{pipeline_id}")
            await self.submit(step, commands.CleanUp(pipeline_id, older_than_seconds))
        done = CleanedUp(len(found), ended_before)
        return await self._stored_answer(caller, done) or done

    async def _stored_answer(self, caller: Caller, answer: CleanedUp | None) -> CleanedUp | None:
        """The stored answer of this request; stores the given one if there is none."""

        def job(connection: Connection) -> CleanedUp | Refusal | None:
            before: CleanedUp | Refusal | None = find_answer(connection, self.store, caller, CleanedUp)
            if before is None and answer is not None:
                store_answer(connection, self.store, caller, "CleanUp", answer)
            return before

        outcome = await self.store.write(job)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    async def _ended(self, project: str, ended_before: datetime) -> Sequence[str]:
        """Pipelines that ended before a time and have not been cleaned up."""
        entities, timers = self.store.tables.entities, self.store.tables.timers
        statement = (
            select(timers.c.entity_id)
            .join(entities, entities.c.entity_id == timers.c.entity_id)
            .where(
                timers.c.name == CLEAN_UP_TIMER,
                entities.c.project == project,
                entities.c.updated_at_us <= to_us(ended_before),
            )
            .limit(MAX_CLEANED)
        )
        return await self.store.database.read(lambda connection: connection.execute(statement).scalars().all())

    async def forget_run(self, caller: Caller, run_id: str) -> int:
        """Deletes the ended pipelines of a run with all their rows."""
        return await forget_run(self.store, caller, run_id, lambda row: row.status in MACHINE.terminal)

    def _status(self, connection: Connection, project: str, pipeline_id: str) -> str | None:
        """The status of a pipeline, locked until this transaction ends; None if the project has no such pipeline."""
        entities = self.store.tables.entities
        mine = (entities.c.entity_id == pipeline_id, entities.c.kind == KIND, entities.c.project == project)
        status: str | None = connection.execute(select(entities.c.status).where(*mine).with_for_update()).scalar()
        return status

    def _get(self, connection: Connection, project: str, pipeline_id: str) -> StoredPipeline:
        """Reads a pipeline from one snapshot: head, stages and version are rows of different tables."""
        if self.store.database.is_postgresql:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        pipeline = self.ledger.load(connection, project, pipeline_id)
        self._children.load_whole(connection, pipeline_id, pipeline)
        entities = self.store.tables.entities
        columns = select(entities.c.version, entities.c.created_at_us, entities.c.updated_at_us)
        row = connection.execute(columns.where(entities.c.entity_id == pipeline_id)).one()
        return StoredPipeline(pipeline_id, pipeline, row[0], from_us(row[1]), from_us(row[2]))

    def _joined(self, connection: Connection, pipeline_id: str, handle: str, reports: Sequence[Report]) -> str:
        table = self._own.reports
        digests = [report.sha256 for report in reports]
        found = select(table.c.sha256, table.c.body).where(
            table.c.entity_id == pipeline_id, table.c.sha256.in_(digests)
        )
        bodies = {row[0]: row[1] for row in connection.execute(found)}
        if not bodies:
            raise not_found("context", handle)
        if handle != context_handle(MERGED):
            return str(bodies[digests[0]])
        parts = [f"# {report.stage}\n\n{bodies[report.sha256]}" for report in reports if report.sha256 in bodies]
        return "\n\n".join(parts)[:MAX_MERGED_CHARACTERS]
