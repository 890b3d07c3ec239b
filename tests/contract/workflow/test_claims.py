"""A ready task goes to exactly one caller, however many ask and from however many replicas."""

import asyncio
import os

import pytest

from pointsman.api.workflow.v1 import model_pb2, reading_pb2, tasks_pb2
from tests.contract.workflow.proof import assert_kept
from tests.contract.workflow.workflows import Client, new, served, task
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer

ID = "big"
TASKS = int(os.environ.get("POINTSMAN_CLAIMED_TASKS", "2000"))
"""More than all callers hold at once; the campaign takes 10,000."""
CALLERS = 64


async def _plan(client: Client, count: int) -> None:
    tasks = [task(f"T{number}", *([f"T{number - 1}"] if number % 10 == 9 else [])) for number in range(count)]
    await client.run(ID, *tasks[: count // 2])
    await client.plan(ID, *tasks[count // 2 :], append=True)


async def _work(client: Client, taken: list[str], limit: int) -> None:
    """Claim and complete until nothing comes any more."""
    while True:
        request = tasks_pb2.NextTasksRequest(request_id=new(), workflow_id=ID, limit=limit)
        answer = await client.stub.NextTasks(request)
        if not answer.tasks:
            if answer.progress.status != model_pb2.WORKFLOW_STATUS_RUNNING:
                return
            await asyncio.sleep(0)
            continue
        ids = [one.spec.task_id for one in answer.tasks]
        taken.extend(ids)
        await client.stub.SettleTasks(tasks_pb2.SettleTasksRequest(request_id=new(), workflow_id=ID, completed=ids))


async def _assert_completed(client: Client, count: int) -> None:
    reading = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=ID))
    assert reading.workflow.progress.status == model_pb2.WORKFLOW_STATUS_COMPLETED
    assert reading.workflow.progress.counts.completed == count


@pytest.mark.timeout(120)
async def test_sixty_four_callers_on_thousands_of_tasks_get_each_once(database_url: str) -> None:
    async with served(database_url) as client:
        await _plan(client, TASKS)
        taken: list[str] = []
        await asyncio.gather(*(_work(client, taken, 16) for _ in range(CALLERS)))
        assert len(taken) == TASKS
        assert len(set(taken)) == TASKS
        await _assert_completed(client, TASKS)
    assert assert_kept(database_url) == 1


async def test_two_replicas_hand_out_each_task_once(postgres: PostgresServer) -> None:
    url = new_postgres_database(postgres)
    async with served(url) as one, served(url) as other:
        await _plan(one, 400)
        taken: list[str] = []
        await asyncio.gather(*(_work(client, taken, 2) for client in (one, other) * 8))
        assert sorted(taken) == sorted(f"T{number}" for number in range(400))
        await _assert_completed(other, 400)
    assert assert_kept(url) == 1


async def test_a_task_taken_before_a_restart_is_not_handed_out_again(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run(ID, task("a"), task("b"))
        assert await client.take(ID) == ["a"]
    async with served(database_url) as client:
        assert await client.take(ID, 5) == ["b"]
        await client.complete(ID, "a", "b")
        await _assert_completed(client, 2)
