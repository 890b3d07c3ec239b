"""The workflow service over gRPC, on both databases."""

from pointsman.api.workflow.v1 import model_pb2, plans_pb2, reading_pb2, tasks_pb2
from tests.contract.workflow.workflows import new, refused, served, task

ID = "w1"


async def test_a_plan_runs_to_its_end(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run(ID, task("a"), task("b", "a"), task("c", "a"))
        assert await client.take(ID, 5) == ["a"]
        await client.complete(ID, "a")
        assert await client.take(ID, 5) == ["b", "c"]
        await client.complete(ID, "b", "c")
        reading = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=ID))
        assert reading.workflow.progress.status == model_pb2.WORKFLOW_STATUS_COMPLETED
        assert [one.status for one in reading.tasks] == [model_pb2.TASK_STATUS_COMPLETED] * 3


async def test_a_request_sent_twice_is_answered_alike_and_changes_nothing(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run(ID, task("a"), task("b"))
        request = tasks_pb2.NextTasksRequest(request_id="same", workflow_id=ID)
        first = await client.stub.NextTasks(request)
        assert await client.stub.NextTasks(request) == first
        assert await client.take(ID, 5) == ["b"]
        request.limit = 5
        reason, _, _ = await refused(client.stub.NextTasks(request))
        assert reason == "REQUEST_ID_REUSED"


async def test_every_problem_of_a_plan_is_told_and_nothing_is_stored(database_url: str) -> None:
    async with served(database_url) as client:
        reason, _, fields = await refused(client.plan(ID, task("a", "zz"), task("a"), task("c", files=["/x"])))
        assert reason == "INVALID_FIELD"
        assert fields == ["tasks[0].depends", "tasks[1].task_id", "tasks[2].files"]
        reason, _, _ = await refused(client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=ID)))
        assert reason == "NOT_FOUND"


async def test_a_refusal_names_the_state_and_what_it_allows(database_url: str) -> None:
    async with served(database_url) as client:
        await client.plan(ID, task("a"))
        reason, metadata, _ = await refused(
            client.stub.Resume(plans_pb2.ResumeRequest(request_id=new(), workflow_id=ID))
        )
        assert reason == "STATE_FORBIDS"
        assert metadata["state"] == "planned"
        assert "Execute" in metadata["allowed"].split(",")


async def test_limits_hold_at_their_edge_and_one_past_it(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run(ID, *(task(f"T{number}") for number in range(10_000)))
        assert len(await client.take(ID, 64)) == 64
        assert (await refused(client.take(ID, 65)))[::2] == ("INVALID_FIELD", ["limit"])
        too_many = [task(f"T{number}") for number in range(10_001)]
        assert (await refused(client.plan("other", *too_many)))[::2] == ("INVALID_FIELD", ["tasks"])
        for workflow_id in ("", "a/b", "x" * 129):
            assert (await refused(client.plan(workflow_id)))[::2] == ("INVALID_FIELD", ["workflow_id"])
        await client.plan("x" * 128)


async def test_a_task_of_a_gate_with_thousands_of_dependants_frees_them_all(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run(ID, task("gate", quality_gate=True), *(task(f"T{number}", "gate") for number in range(3_000)))
        await client.complete(ID, *await client.take(ID))
        await client.stub.Resume(plans_pb2.ResumeRequest(request_id=new(), workflow_id=ID))
        assert len(await client.take(ID, 64)) == 64
        reading = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=ID))
        assert reading.workflow.progress.counts.ready == 3_000 - 64
