"""Proves of a whole workflow store that its rows are the fold of its journal and that no task was handed out wrongly."""

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.clock import from_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.engine.audit import Auditor
from pointsman.services.chassis.storage.database import Database
from pointsman.services.workflow.domain.enums import EventName, TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.events import EVENTS
from pointsman.services.workflow.domain.machine import MACHINE
from pointsman.services.workflow.domain.model import Workflow
from pointsman.services.workflow.store import WorkflowStore
from tests.unit.workflow.random_commands import assert_counts


def assert_kept(database_url: str) -> int:
    """Everything that must hold after any fault; how many workflows were looked at."""
    workflows = WorkflowStore(Database(database_url, "workflow"))
    try:
        return workflows.store.database.read_now(lambda connection: _look(connection, workflows))
    finally:
        workflows.store.close()


def _look(connection: Connection, workflows: WorkflowStore) -> int:
    auditor = Auditor(workflows.store)
    assert list(auditor.violations(connection)) == []
    entities = workflows.store.tables.entities
    found = connection.execute(select(entities.c.entity_id, entities.c.project)).all()
    for entity_id, project in found:
        stored = workflows.read_whole_now(connection, project, entity_id)
        folded = _folded(connection, workflows, entity_id)
        assert stored.tasks.by_id == folded.tasks.by_id
        assert stored.details == folded.details
        assert_counts(stored)
        _assert_never_completed_too_early(stored)
    return len(found)


def _folded(connection: Connection, workflows: WorkflowStore, entity_id: str) -> Workflow:
    state: Workflow | None = None
    for row in workflows.journal.rows(connection, entity_id, 0, 1_000_000):
        event = Event(row.event, row.source, row.target, from_json(row.payload, EVENTS[row.event]))
        if event.name == EventName.CLAIMED and state is not None:
            for task_id in event.data.task_ids:
                assert state.tasks.by_id[task_id].ready, f"{task_id} was handed out before its turn, or twice"
        state = MACHINE.apply(state, event, from_us(row.at_us))
    assert state is not None
    return state


def _assert_never_completed_too_early(stored: Workflow) -> None:
    if stored.header.status is WorkflowStatus.COMPLETED:
        assert {task.status for task in stored.tasks.by_id.values()} <= {TaskStatus.COMPLETED, TaskStatus.SKIPPED}
        assert stored.details.constraints.unmet == ()
