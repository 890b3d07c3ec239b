"""What a user's own test looks like: a control plane in the process, and agents that are functions."""

import asyncio
from pathlib import Path

import pytest

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.client import Order
from pointsman.testing.planes import control_plane_in
from pointsman.worker import Job, Worker

pytestmark = pytest.mark.timeout(120)
worker = Worker("scripted")


@worker.coder
def write(job: Job) -> handoff.CoderResult:
    criteria = [item.id for item in job.work.handoff.acceptance_criteria]
    claim = handoff.Claim(id="C1", statement="done", criterion_ids=criteria, evidence_ids=["E1"])
    evidence = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_URL, url="https://example.invalid/report")
    return handoff.CoderResult(claims=[claim], evidence=[evidence])


@worker.reviewer
async def review(_job: Job) -> handoff.ReviewDecision:
    return handoff.ReviewDecision(decision=handoff.REVIEW_VERDICT_PASS, review_level=handoff.REVIEW_LEVEL_EXECUTOR)


async def test_scripted_agents_take_a_run_to_its_end(tmp_path: Path) -> None:
    async with control_plane_in(tmp_path) as client:
        serving = asyncio.create_task(worker.serve(client))
        run_id = (await client.runs.submit(Order("write the release notes", as_action=True))).run.id
        journal = [transition async for transition in client.runs.watch(run_id)]
        worker.stop()
        await serving
        delivery = await client.runs.delivery(run_id)
    assert journal[-1].to_state == "COMPLETE"
    assert [item.statement for item in delivery.deliverables] == ["write the release notes"]
