"""A judge that cannot be read: a run asks a person, unless it was submitted as lenient."""

from pathlib import Path

import pytest
from google.protobuf.message import Message

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.pipeline.v1 import requests_pb2 as pipelines
from pointsman.api.pipeline.v1 import state_pb2 as pipeline_state
from pointsman.client import Client
from pointsman.worker import Job
from tests.scenarios.planes import NOBODY, Plane, plane
from tests.scenarios.scripted import PASS, coding, crew, planning, researching

pytestmark = pytest.mark.timeout(120)
PASSING = '<!-- PIPELINE_ROUTE: {"verdict":"PASS","route":"NEXT"} -->'


def printing(job: Job) -> Message:
    """A judge that says what it thinks of a stage in its output alone."""
    return work.StageResult(transcript=PASSING) if job.assignment.purpose == assignments.PURPOSE_STAGE else PASS


async def pipeline_of(here: Plane, run: runs.Run) -> pipeline_state.Pipeline:
    """The pipeline of the run's task."""
    request = pipelines.GetPipelineRequest(pipeline_id=run.tasks[0].pipeline_id)
    found: pipeline_state.Pipeline = (await here.pipeline.GetPipeline(request)).pipeline
    return found


async def test_a_judge_whose_words_stand_only_in_its_output_never_passes_a_run(tmp_path: Path) -> None:
    async with (
        plane(tmp_path, NOBODY) as here,
        crew(here, planner=planning(), researcher=researching(), coder=coding(), reviewer=printing),
    ):
        run = await here.asked((await here.submit()).id)
        assert run.question.kind == runs.QUESTION_KIND_PIPELINE_ESCALATED
        assert "its transcript is not read" in run.question.text
        starts = [
            item.attempt async for item in Client(here.channel).agents.assignments(run.id) if item.stage == "REVIEW"
        ]
        assert starts == [2], "the same failure twice asks"
        found = await pipeline_of(here, run)
        assert found.require_nonce
        assert found.policy == pipeline_state.POLICY_STRICT


async def test_a_lenient_run_goes_on_past_it_and_says_so(tmp_path: Path) -> None:
    async with (
        plane(tmp_path, NOBODY) as here,
        crew(here, planner=planning(), researcher=researching(), coder=coding(), reviewer=printing),
    ):
        run = await here.ended((await here.submit(lenient=True)).id)
        assert run.state == runs.RUN_STATE_COMPLETE
        assert {"stage-T1-REVIEW", "stage-T1-TEST"} <= {risk.key for risk in run.residual_risks}
