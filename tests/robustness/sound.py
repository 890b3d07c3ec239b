"""Stores of a control plane that was used well, for those who plant bugs into them."""

from pathlib import Path

from pointsman.api.handoff.v1 import handoff_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2, route_pb2
from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2
from tests.scenarios.planes import Plane, plane

DIRECT_PLAN = "plan-of-three"
RETRIED, WAITING = "pipeline-with-a-retry", "pipeline-that-waits"
AUTO = pipeline_pb2.AutoDelegate(agent_id="agent")
PASS = route_pb2.Route(verdict=route_pb2.VERDICT_PASS)
FAIL = route_pb2.Route(verdict=route_pb2.VERDICT_FAIL, severity=route_pb2.SEVERITY_HIGH)


async def _a_plan(control: Plane) -> None:
    """Three tasks, one of which waits for another, all completed."""
    tasks = [model_pb2.TaskSpec(task_id=f"T{n}", name="work", depends=["T1"] if n == 2 else []) for n in (1, 2, 3)]
    await control.workflow.UpsertPlan(
        plans_pb2.UpsertPlanRequest(request_id="plan", workflow_id=DIRECT_PLAN, tasks=tasks)
    )
    settings = plans_pb2.ExecutionSettings(execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE, use_subagent=True)
    await control.workflow.Execute(
        plans_pb2.ExecuteRequest(request_id="go", workflow_id=DIRECT_PLAN, settings=settings)
    )
    for number in range(3):
        claim = tasks_pb2.NextTasksRequest(request_id=f"next-{number}", workflow_id=DIRECT_PLAN)
        task = (await control.workflow.NextTasks(claim)).tasks[0]
        done = tasks_pb2.CompleteTaskRequest(
            request_id=f"done-{number}", workflow_id=DIRECT_PLAN, task_id=task.spec.task_id, attempt=task.attempt
        )
        await control.workflow.CompleteTask(done)


async def _pipelines(control: Plane) -> None:
    """One that came back to DEV once and is completed, and one whose barrier waits for its second member."""
    for name in (RETRIED, WAITING):
        started = await control.pipeline.StartPipeline(
            pipeline_pb2.StartPipelineRequest(
                request_id=name, pipeline_id=name, template="quick-dev", auto_delegate=AUTO
            )
        )
        routes = iter([FAIL, PASS, PASS, PASS] if name == RETRIED else [PASS, PASS])
        waiting = list(started.next)
        for number, route in enumerate(routes):
            item = waiting.pop(0)
            done = pipeline_pb2.CompleteStageRequest(
                request_id=f"{name}-{number}", pipeline_id=name, delegation_id=item.delegation_id, agent_id="agent",
                route=route, auto_delegate=AUTO, report=f"What {item.stage} found.",
            )  # fmt: skip
            waiting += (await control.pipeline.CompleteStage(done)).next


async def live(data: Path) -> None:
    """A completed run, one that asks, a plan, two pipelines, and a run that was verified."""
    async with plane(data) as control:
        await control.ended((await control.submit()).id)
        asking = await control.submit("Delete every table of the old schema in db/legacy.sql")
        await control.asked(asking.id)
        await _a_plan(control)
        await _pipelines(control)
        proof = handoff_pb2.AcceptanceCriterion(id="C1", statement="it is true", verify_command="true", required=True)
        await control.ended((await control.submit(acceptance_criteria=[proof])).id)
