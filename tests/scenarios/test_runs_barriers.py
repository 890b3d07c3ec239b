"""How long the barriers of a run's pipelines wait: as the pipeline service is set, unless Submit says otherwise."""

from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.pipeline.v1 import pipeline_pb2 as pipeline
from pointsman.api.pipeline.v1 import requests_pb2 as pipelines
from pointsman.client import Client, Order
from tests.scenarios.planes import NOBODY, WISH, Plane, plane

SETTING = "POINTSMAN_PIPELINE_BARRIER_TIMEOUT_SECONDS"


async def timeout_of(here: Plane, order: Order) -> Duration:
    """How long barriers of a new run's pipeline wait."""
    submitted = await Client(here.channel).runs.submit(order)
    run = await here.reached(submitted.run.id, runs.RUN_STATE_CODER_EXEC)
    request = pipelines.GetPipelineRequest(pipeline_id=run.tasks[0].pipeline_id)
    waits: Duration = (await here.pipeline.GetPipeline(request)).pipeline.barrier_timeout
    return waits


async def test_the_setting_of_the_pipeline_service_holds_for_pipelines_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "77")
    async with plane(tmp_path, NOBODY) as here:
        assert (await timeout_of(here, Order(WISH))).seconds == 77


async def test_without_a_setting_a_barrier_of_a_run_waits_an_hour_and_another_one_five_minutes(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        assert (await timeout_of(here, Order(WISH))).seconds == 3600
        request = pipeline.StartPipelineRequest(request_id="own", pipeline_id="own", template="standard")
        await here.pipeline.StartPipeline(request)
        found = await here.pipeline.GetPipeline(pipelines.GetPipelineRequest(pipeline_id="own"))
        assert found.pipeline.barrier_timeout.seconds == 300


async def test_a_timeout_that_submit_names_holds_for_the_runs_pipelines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SETTING, "77")
    async with plane(tmp_path, NOBODY) as here:
        waits = await timeout_of(here, Order(WISH, barrier_timeout_seconds=12.5))
        assert waits == Duration(seconds=12, nanos=500_000_000)


async def test_a_run_asks_when_the_time_of_a_barrier_is_over(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(mock.MOCK_ROLE_REVIEWER, mock.MOCK_OUTCOME_SILENT)
        run = await here.asked((await here.submit(barrier_timeout=Duration(seconds=1))).id)
        assert run.question.kind == runs.QUESTION_KIND_PIPELINE_ESCALATED


async def test_a_lenient_run_goes_on_when_the_time_of_a_barrier_is_over(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(mock.MOCK_ROLE_REVIEWER, mock.MOCK_OUTCOME_SILENT)
        run = await here.submit(barrier_timeout=Duration(seconds=1), lenient=True)
        run = await here.reached(run.id, runs.RUN_STATE_REVIEW_ACCEPT)
        risks = {risk.key: risk.statement for risk in run.residual_risks}
        assert {key for key in risks if key.startswith("stage-")} == {"stage-T1-REVIEW", "stage-T1-TEST"}
        assert all("timed_out" in risks[key] for key in ("stage-T1-REVIEW", "stage-T1-TEST"))
