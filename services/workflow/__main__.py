"""Wires the workflow service together; `python -m pointsman.services.workflow` serves it alone."""

from pathlib import Path

from pointsman.api.workflow.v1 import workflow_pb2
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.runtime.service import Service, serve_alone
from pointsman.services.chassis.storage.database import Database
from pointsman.services.workflow.config import WorkflowSettings
from pointsman.services.workflow.servicer import WorkflowServicer
from pointsman.services.workflow.store import WorkflowStore

MIGRATIONS = Path(__file__).parent / "migrations"


def build(stores: StoreSettings, settings: WorkflowSettings) -> Service:
    """The workflow service on its own store."""
    return build_on(Database(stores.url_for("workflow"), "workflow"), settings)


def build_on(database: Database, settings: WorkflowSettings) -> Service:
    """The workflow service on a given database."""
    workflows = WorkflowStore(database)
    descriptor = workflow_pb2.DESCRIPTOR.services_by_name["WorkflowService"]
    return Service("workflow", workflows.store, MIGRATIONS, [(descriptor, WorkflowServicer(workflows, settings))])


if __name__ == "__main__":
    serve_alone(lambda _address: [build(load(StoreSettings), load(WorkflowSettings))])
