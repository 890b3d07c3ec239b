"""What runs ask of the other services, against the real ones."""

from pathlib import Path

from google.protobuf.json_format import MessageToJson

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.api.workflow.v1 import tasks_pb2 as tasks
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain.calls.pipelines import StartPipeline
from pointsman.services.orchestrator.domain.calls.plans import StorePlan
from pointsman.services.orchestrator.domain.enums import Call, PipelineStatus
from pointsman.services.orchestrator.peers import REMOTE, Channels, Peers
from tests.scenarios.planes import NOBODY, Plane, plane


def peers(here: Plane) -> Peers:
    return Peers(Channels(here.channel, here.channel, here.channel))


def effect(call: Call, data: object, run_id: str = "run_a") -> PendingEffect:
    return PendingEffect(run_id, 1, 0, str(call), to_json(data), "local", "", 0, 1)


async def test_an_attempt_starts_also_when_the_pipeline_of_the_one_before_is_not_there(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        data = StartPipeline("c1", "run_a/T1/2", "T1", "fix", "run_a/T1/1")
        told = await REMOTE[Call.START_PIPELINE](peers(here), effect(Call.START_PIPELINE, data), data)
        assert (told.status, told.reflections) == (PipelineStatus.ACTIVE, ())


async def test_a_new_plan_is_stored_also_where_a_claim_of_the_old_one_arrived_late(tmp_path: Path) -> None:
    """The requirement changed while a claim was on its way: its answer is out of date, but its tasks are in progress."""
    async with plane(tmp_path, NOBODY) as here:
        old = [model.TaskSpec(task_id="T1", name="the old one", phase="build", actions=["edit"])]
        await here.workflow.UpsertPlan(
            plans.UpsertPlanRequest(request_id="old", workflow_id="epic", owner_run_id="run_a", tasks=old)
        )
        await here.workflow.Execute(plans.ExecuteRequest(request_id="go", workflow_id="epic"))
        claimed = await here.workflow.NextTasks(tasks.NextTasksRequest(request_id="late", workflow_id="epic"))
        assert [task.spec.task_id for task in claimed.tasks] == ["T1"]
        new = work.Plan(tasks=[work.PlanTask(id="T2", name="the new one", actions=["edit"])])
        data = StorePlan("c1", "epic", MessageToJson(new), audited=False)
        await REMOTE[Call.STORE_PLAN](peers(here), effect(Call.STORE_PLAN, data), data)
        found = await here.workflow.GetWorkflow(reading.GetWorkflowRequest(workflow_id="epic"))
        assert [task.spec.task_id for task in found.tasks] == ["T2"]
