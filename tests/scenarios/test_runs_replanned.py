"""Runs over four real services whose planner keeps the ids of its tasks over re-plans."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from google.protobuf.duration_pb2 import Duration

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.scenarios.planes import Plane, plane

KEPT = "P31"
PLAN = work.Plan(
    tasks=[
        work.PlanTask(
            id=KEPT,
            name="do it",
            actions=["do it"],
            acceptance_criteria=[handoff.AcceptanceCriterion(id="C1", statement="it is done", required=True)],
        )
    ],
    confidence=0.9,
)
WANTED = agent.Wanted(capabilities=[assignments.CAPABILITY_PLAN])


@asynccontextmanager
async def planner(here: Plane) -> AsyncIterator[None]:
    """An agent that answers every request for a plan with the same task."""

    async def work_on() -> None:
        while True:
            poll = agent.PollRequest(
                request_id=here.request_id(), agent_id="planner", wanted=WANTED, wait=Duration(seconds=5)
            )
            for lease in (await here.agents.Poll(poll)).leases:
                key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
                done = agent.Completion(lease=key, plan=PLAN)
                await here.agents.Complete(
                    agent.CompleteRequest(request_id=here.request_id(), agent_id="planner", completions=[done])
                )

    task = asyncio.create_task(work_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_planner_that_keeps_a_task_id_over_re_plans_does_not_wedge_the_run(tmp_path: Path) -> None:
    async with plane(tmp_path) as here, planner(here):
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        run = await here.taken((await here.submit()).id)
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SUCCESS)
        await here.runs.ChangeRequirement(
            pb.ChangeRequirementRequest(request_id="c", run_id=run.id, message="and keep the old flag")
        )
        run = await here.ended(run.id)
        assert run.state == runs.RUN_STATE_COMPLETE, run
        assert "dispatch_failed" not in await here.moves(run.id)
        assert [(task.task_id, task.attempt) for task in run.tasks] == [(KEPT, 2)]
        found = await here.runs.GetEvidence(evidence.GetEvidenceRequest(run_id=run.id))
        assert [(item.attempt, item.status) for item in found.attempts] == [(1, "abandoned"), (2, "accepted")]
