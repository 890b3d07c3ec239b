"""The workflow service in a test: a real server on a real database, called over gRPC."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2, workflow_pb2_grpc
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.workflow.__main__ import build_on
from pointsman.services.workflow.config import WorkflowSettings
from tests.helpers.statuses import status_of_call

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Client:
    """A caller of the service, with shorter words for what tests do often."""

    stub: workflow_pb2_grpc.WorkflowServiceStub
    address: str

    async def plan(self, workflow_id: str, *tasks: model_pb2.TaskSpec, **fields: Any) -> plans_pb2.UpsertPlanResponse:
        """Store a plan."""
        request = plans_pb2.UpsertPlanRequest(request_id=new(), workflow_id=workflow_id, tasks=tasks, **fields)
        return await self.stub.UpsertPlan(request)

    async def run(self, workflow_id: str, *tasks: model_pb2.TaskSpec) -> None:
        """Store a plan and execute it without pauses."""
        await self.plan(workflow_id, *tasks)
        settings = plans_pb2.ExecutionSettings(
            execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE, use_subagent=True, pause_before_commit=False
        )
        await self.stub.Execute(plans_pb2.ExecuteRequest(request_id=new(), workflow_id=workflow_id, settings=settings))

    async def take(self, workflow_id: str, limit: int = 1) -> list[str]:
        """Claim tasks; their ids."""
        request = tasks_pb2.NextTasksRequest(request_id=new(), workflow_id=workflow_id, limit=limit)
        return [task.spec.task_id for task in (await self.stub.NextTasks(request)).tasks]

    async def complete(self, workflow_id: str, *task_ids: str) -> None:
        """Complete tasks, one call each."""
        for task_id in task_ids:
            request = tasks_pb2.CompleteTaskRequest(request_id=new(), workflow_id=workflow_id, task_id=task_id)
            await self.stub.CompleteTask(request)


def new() -> str:
    """A request id that nobody used."""
    return f"request-{next(_numbers)}"


def task(task_id: str, *depends: str, **fields: Any) -> model_pb2.TaskSpec:
    """A task."""
    return model_pb2.TaskSpec(task_id=task_id, name=fields.pop("name", f"do {task_id}"), depends=depends, **fields)


@asynccontextmanager
async def served(database_url: str) -> AsyncIterator[Client]:
    """The service on a database, as one replica."""
    service = build_on(Database(database_url, "workflow"), WorkflowSettings())
    running = await start(lambda _address: [service], ServerSettings(port=0))
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield Client(workflow_pb2_grpc.WorkflowServiceStub(channel), running.address)
    finally:
        await running.stop()


async def refused(call: Any) -> tuple[str, dict[str, str], list[str]]:
    """The reason, the metadata and the named fields of a call that is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    status = status_of_call(caught.value)
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(bad)
    return info.reason, dict(info.metadata), [violation.field for violation in bad.field_violations]
