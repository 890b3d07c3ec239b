"""A run leaves one trace over all four services, and stores that keep their promises."""

import asyncio
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.audit.stores import audit_stores
from pointsman.client import Order
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.telemetry.context import new_traceparent, transition_span_id
from pointsman.services.orchestrator.domain.run import run_id_for
from pointsman.testing.planes import control_plane_in
from pointsman.worker import Worker
from tests.helpers.collector import Collector, collector
from tests.helpers.eventually import eventually
from tests.helpers.traces import arrived_at, differences
from tests.scenarios.planes import WISH, plane
from tests.scenarios.processes import CONTEXTS
from tests.scenarios.test_real_run_testing import review, write
from tests.scenarios.tracing import Traced, killed_process, killed_services, two_days_of_waiting


async def test_every_transition_of_a_run_is_a_span_of_one_trace_with_one_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        async with plane(tmp_path) as control:
            run = await control.ended((await control.submit(WISH)).id)
            assert run.state == runs.RUN_STATE_COMPLETE
            trace_id = run.traceparent[3:35]
            await eventually(lambda: whole(kept, tmp_path, Traced(run.id, trace_id, "COMPLETE")), 50)
        spans = arrived_at(kept, trace_id)
    kinds = {span.name.split()[0] for span in spans}
    assert kinds >= {"run", "workflow", "pipeline", "decision", "COMMIT"}
    calls = {span.attributes["rpc.method"].split(".")[2] for span in spans if "rpc.method" in span.attributes}
    assert calls == {"router", "workflow", "pipeline", "orchestrator"}
    assert sum(span.is_transition for span in spans) > 60


async def test_a_question_that_becomes_no_run_is_one_whole_trace_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = run_id_for(Caller("local", "local").request_scope, "question")
    traced = Traced(run_id, new_traceparent(run_id)[3:35], "")
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        async with plane(tmp_path) as control:
            answer = await control.runs.Submit(pb.SubmitRequest(request_id="question", message="What is a barrier?"))
            assert not answer.HasField("run")
            await eventually(lambda: whole(kept, tmp_path, traced), 50)


@pytest.mark.timeout(240)
async def test_a_run_is_one_whole_trace_also_when_all_services_are_killed_in_its_middle(tmp_path: Path) -> None:
    async with (
        collector() as kept,
        killed_process(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{kept.endpoint}") as all_runs,
    ):
        for traced in all_runs:
            assert traced.state == "COMPLETE"
            await eventually(lambda: whole(kept, tmp_path, traced), 100)  # noqa: B023
    services = {resource["service.name"] for resource in kept.resources}
    assert services >= {f"pointsman-{name}" for name in CONTEXTS}


@pytest.mark.timeout(240)
async def test_a_run_is_one_whole_trace_also_when_a_service_is_killed_in_its_middle(tmp_path: Path) -> None:
    async with (
        collector() as kept,
        killed_services(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{kept.endpoint}") as all_runs,
    ):
        assert len(all_runs) == len(CONTEXTS)
        for traced in all_runs:
            assert traced.state == "COMPLETE"
            assert traced.moves_since > 0, "it was over before its service was killed"
            await eventually(lambda: whole(kept, tmp_path, traced), 100)  # noqa: B023


async def test_what_an_agent_does_is_a_span_in_its_runs_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker("scripted")
    worker.coder(write)
    worker.reviewer(review)
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        async with control_plane_in(tmp_path) as client:
            serving = asyncio.create_task(worker.serve(client))
            run_id = (await client.runs.submit(Order("write the release notes", as_action=True))).run.id
            _ = [transition async for transition in client.runs.watch(run_id)]
            run = await client.runs.get(run_id)
            worker.stop()
            await serving
            traced = Traced(run_id, run.traceparent[3:35], "COMPLETE")
            await eventually(lambda: whole(kept, tmp_path, traced), 50)
            await eventually(lambda: both_have_arrived(kept, traced), 30)
    by_id = {span.span_id: span for span in arrived_at(kept, traced.trace_id)}
    work = [span for span in by_id.values() if span.name.startswith("invoke_agent")]
    for span in work:
        assert by_id[span.parent_id].is_transition
        assert by_id[span.parent_id].attributes["pointsman.run.id"] == run_id == span.attributes["pointsman.run.id"]
        assert span.attributes["pointsman.assignment.outcome"] == "done"


async def both_have_arrived(kept: Collector, traced: Traced) -> bool:
    """Whether the work of coder and reviewer has reached the collector."""
    found = {span.name for span in arrived_at(kept, traced.trace_id) if span.name.startswith("invoke_agent")}
    return found == {"invoke_agent coder", "invoke_agent reviewer"}


@pytest.mark.timeout(240)
async def test_a_run_that_waits_two_days_over_three_restarts_is_one_whole_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with two_days_of_waiting(tmp_path) as traced:
            assert traced.state == "COMPLETE"
            await eventually(lambda: whole(kept, tmp_path, traced), 100)
    root = kept.of_trace(traced.trace_id)[transition_span_id(traced.trace_id, traced.run_id, 0)]
    assert root.end_time_unix_nano - root.start_time_unix_nano > 2 * 86_400 * 10**9


async def test_after_good_and_bad_runs_no_store_has_broken_a_promise(tmp_path: Path) -> None:
    async with plane(tmp_path) as control:
        first = await control.submit(WISH)
        await control.ended(first.id)
        second = await control.submit("Delete every table of the old schema in db/legacy.sql")
        await control.asked(second.id)
    findings = await audit_stores(StoreSettings(data=tmp_path))
    assert [violation for found in findings.values() for violation in found.violations] == []
    assert sum(found.transitions for found in findings.values()) > 0


async def whole(kept: Collector, data: Path, traced: Traced) -> bool:
    spans = arrived_at(kept, traced.trace_id)
    return not differences(spans, data, traced.run_id, traced.trace_id)
