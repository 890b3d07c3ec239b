"""The store of workflows: changes go through the ledger, each query is one read transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, literal, select, tuple_

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.journal import Journal
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.retention import forget_run
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store
from pointsman.services.workflow.domain.commands import Command
from pointsman.services.workflow.domain.enums import KIND, WorkflowStatus
from pointsman.services.workflow.domain.machine import MACHINE
from pointsman.services.workflow.domain.model import Header, Workflow
from pointsman.services.workflow.domain.views import ListedWorkflow, StoredWorkflow, TaskPage, WorkflowFilter
from pointsman.services.workflow.store.children import WorkflowChildren
from pointsman.services.workflow.store.measures import measure
from pointsman.services.workflow.store.row_loader import TASK_COLUMNS, task_of
from pointsman.services.workflow.store.tables import METADATA, workflow_tables


class WorkflowStore:
    """Workflows, their tasks and their journal."""

    def __init__(self, database: Database) -> None:
        self.store = Store(database, METADATA)
        self.journal = Journal(self.store)
        self._tables = workflow_tables(METADATA)
        self._children = WorkflowChildren(database, self._tables)
        self.ledger = Ledger(self.store, MACHINE, self._children, measure)

    def now(self) -> datetime:
        """The time of the database."""
        return self.store.database.clock.now()

    async def submit(self, caller: Caller, command: Command) -> Any:
        """Submits a command to the ledger."""
        return await self.ledger.submit(caller, command)

    async def read(self, project: str, workflow_id: str, page: TaskPage) -> StoredWorkflow:
        """A workflow with a page of its tasks."""

        def query(connection: Connection) -> StoredWorkflow:
            state = self.ledger.load(connection, project, workflow_id)
            self._children.load_details(connection, workflow_id, state)
            rows = connection.execute(self._task_page(workflow_id, page))
            return StoredWorkflow(state, self._seq(connection, workflow_id), tuple(task_of(tuple(row)) for row in rows))

        return await self.store.database.read(query)

    async def read_whole(self, project: str, workflow_id: str) -> Workflow:
        """A workflow with all its tasks."""
        return await self.store.database.read(lambda connection: self.read_whole_now(connection, project, workflow_id))

    def read_whole_now(self, connection: Connection, project: str, workflow_id: str) -> Workflow:
        """The same on an open connection."""
        return self._children.load_whole(connection, workflow_id, self.ledger.load(connection, project, workflow_id))

    async def list(
        self, project: str, wanted: WorkflowFilter, after: Sequence[int | str], limit: int
    ) -> Sequence[ListedWorkflow]:
        """The workflows of a project, the newest first."""
        entities = self.store.tables.entities
        order = (entities.c.created_at_us, entities.c.entity_id)
        found = select(entities.c.body, *order).where(entities.c.project == project, entities.c.kind == KIND)
        if wanted.statuses:
            found = found.where(entities.c.status.in_([status.value for status in wanted.statuses]))
        if wanted.run_id:
            found = found.where(entities.c.run_id == wanted.run_id)
        if after:
            found = found.where(tuple_(*order) < tuple_(*(literal(value) for value in after)))
        return await self._listed(found.order_by(*(column.desc() for column in order)).limit(limit))

    async def list_resumable(self, project: str, after: Sequence[int | str], limit: int) -> Sequence[ListedWorkflow]:
        """The resumable workflows: executable ones first, then by priority, latest change, id."""
        entities, resumable = self.store.tables.entities, self._tables.resumable
        order = (resumable.c.waits, resumable.c.priority, resumable.c.updated_at_us, resumable.c.entity_id)
        joined = resumable.join(entities, entities.c.entity_id == resumable.c.entity_id)
        found = select(entities.c.body, *order).select_from(joined).where(resumable.c.project == project)
        if after:
            found = found.where(tuple_(*order) > tuple_(*(literal(value) for value in after)))
        return await self._listed(found.order_by(*order).limit(limit))

    async def forget_run(self, caller: Caller, run_id: str) -> int:
        """Deletes the workflows of a run that are over; checked again inside the transaction."""
        return await forget_run(self.store, caller, run_id, lambda row: _is_over(from_json(row.body, Header), run_id))

    async def _listed(self, found: Select[Any]) -> Sequence[ListedWorkflow]:
        rows = await self.store.database.read(lambda connection: connection.execute(found).all())
        return [ListedWorkflow(from_json(row[0], Header), tuple(row[1:])) for row in rows]

    def _task_page(self, workflow_id: str, page: TaskPage) -> Select[Any]:
        tasks = self._tables.tasks
        columns = [tasks.c[name] for name in TASK_COLUMNS]
        found = select(*columns).where(tasks.c.entity_id == workflow_id, tasks.c.position > page.after_position)
        if page.statuses:
            found = found.where(tasks.c.status.in_([status.value for status in page.statuses]))
        return found.order_by(tasks.c.position).limit(page.limit)

    def _seq(self, connection: Connection, workflow_id: str) -> int:
        entities = self.store.tables.entities
        found = select(entities.c.version).where(entities.c.entity_id == workflow_id)
        return int(connection.execute(found).scalar() or 0)


def _is_over(header: Header, run_id: str) -> bool:
    """Whether no other run can continue the workflow."""
    return header.status is WorkflowStatus.COMPLETED or header.cancelled or header.owner_run_id == run_id
