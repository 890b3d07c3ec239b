"""The workflow service as a process that is killed while callers work: nothing lost, nothing handed out twice."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.api.workflow.v1 import model_pb2, plans_pb2, reading_pb2, tasks_pb2, workflow_pb2_grpc
from tests.contract.workflow.proof import assert_kept
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled

ID = "killed"
TASKS = 240
CALLERS = 8
KILL_AT = (40, 120)
"""The process is killed when so many tasks are completed."""


class Callers:
    """Clients that go on with the same request_id when the service is away."""

    def __init__(self) -> None:
        self.address = ""
        self.claimed: list[str] = []
        self.completed: list[str] = []

    async def call(self, method: str, request: Any) -> Any:
        """Ask until there is an answer."""
        while True:
            async with grpc.aio.insecure_channel(self.address) as channel:
                try:
                    return await getattr(workflow_pb2_grpc.WorkflowServiceStub(channel), method)(
                        request, timeout=scaled(5)
                    )
                except grpc.aio.AioRpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
            await asyncio.sleep(0.05)

    async def work(self, name: str) -> None:
        """Claim and complete one task after the other, until the workflow is completed."""
        for number in range(TASKS + 1):
            claim = tasks_pb2.NextTasksRequest(request_id=f"{name}-{number}", workflow_id=ID, worker=name)
            answer = await self.call("NextTasks", claim)
            if not answer.tasks:
                return
            task = answer.tasks[0]
            self.claimed.append(task.spec.task_id)
            done = tasks_pb2.CompleteTaskRequest(
                request_id=f"{name}-{number}-done", workflow_id=ID, task_id=task.spec.task_id, attempt=task.attempt
            )
            await self.call("CompleteTask", done)
            self.completed.append(task.spec.task_id)


async def _plan(callers: Callers) -> None:
    tasks = [model_pb2.TaskSpec(task_id=f"T{number}", name="work") for number in range(TASKS)]
    await callers.call("UpsertPlan", plans_pb2.UpsertPlanRequest(request_id="plan", workflow_id=ID, tasks=tasks))
    settings = plans_pb2.ExecutionSettings(execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE, use_subagent=True)
    await callers.call("Execute", plans_pb2.ExecuteRequest(request_id="go", workflow_id=ID, settings=settings))


@contextmanager
def serving(data: Path) -> Iterator["subprocess.Popen[str]"]:
    """The workflow service as a process of its own, killed at the end of the block."""
    environment = {**os.environ, "POINTSMAN_DATA": str(data), "POINTSMAN_SERVER_PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "pointsman.services.workflow"], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def _kill_at(callers: Callers, count: int, process: "subprocess.Popen[str]") -> None:
    async def reached() -> bool:
        return len(callers.completed) >= count

    await eventually(reached, 60)
    process.kill()


def _address(process: "subprocess.Popen[str]") -> str:
    """The first line that names an address; logs may come before it."""
    assert process.stdout is not None
    found = next((line.strip() for line in process.stdout if line.startswith("127.0.0.1:")), "")
    assert found, "the service ended before it listened"
    return found


async def _run(callers: Callers, data: Path) -> None:
    working: list[asyncio.Task[None]] = []
    for count in (*KILL_AT, TASKS):
        with serving(data) as process:
            callers.address = await asyncio.to_thread(_address, process)
            if not working:
                await _plan(callers)
                working = [asyncio.create_task(callers.work(f"caller-{number}")) for number in range(CALLERS)]
            if count < TASKS:
                await _kill_at(callers, count, process)
                continue
            await asyncio.gather(*working)
            await _check_journal(callers)


async def _check_journal(callers: Callers) -> None:
    claims: Counter[str] = Counter()
    async with grpc.aio.insecure_channel(callers.address) as channel:
        stub = workflow_pb2_grpc.WorkflowServiceStub(channel)
        async for answer in stub.WatchWorkflow(reading_pb2.WatchWorkflowRequest(workflow_id=ID)):
            if answer.transition.event == "claimed":
                claims.update(json.loads(answer.transition.payload_json)["task_ids"])
            if answer.transition.to_state == "completed":
                break
    assert claims == Counter(f"T{number}" for number in range(TASKS))


@pytest.mark.timeout(180)
def test_a_service_that_is_killed_twice_hands_out_each_task_once_and_loses_no_completion(tmp_path: Path) -> None:
    callers = Callers()
    asyncio.run(_run(callers, tmp_path))
    assert sorted(callers.claimed) == sorted(callers.completed) == sorted(f"T{number}" for number in range(TASKS))
    assert assert_kept(f"sqlite:///{tmp_path / 'workflow.db'}") == 1
