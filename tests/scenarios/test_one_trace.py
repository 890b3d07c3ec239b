"""A run leaves one trace over all four services, and stores that keep their promises."""

import asyncio
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.cli.audit_stores import audit_stores
from tests.helpers.collector import Collector, collector
from tests.helpers.eventually import eventually
from tests.helpers.traces import arrived_at, differences
from tests.scenarios.planes import WISH, plane


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
            await eventually(lambda: complete(kept, tmp_path, run), 30)
        spans = arrived_at(kept, trace_id)
        assert differences(spans, tmp_path, run.id, trace_id) == []
    kinds = {span.name.split()[0] for span in spans}
    assert kinds >= {"run", "workflow", "pipeline", "decision", "COMMIT"}
    calls = {span.attributes["rpc.method"].split(".")[2] for span in spans if "rpc.method" in span.attributes}
    assert calls == {"router", "workflow", "pipeline", "orchestrator"}
    assert sum(span.is_transition for span in spans) > 60


async def test_after_good_and_bad_runs_no_store_has_broken_a_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with plane(tmp_path) as control:
        first = await control.submit(WISH)
        await control.ended(first.id)
        second = await control.submit("Delete every table of the old schema in db/legacy.sql")
        await control.asked(second.id)
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path))
    code = await asyncio.to_thread(audit_stores, as_json=False)
    assert code == 0, capsys.readouterr().out


async def complete(kept: Collector, data: Path, run: runs.Run) -> bool:
    trace_id = run.traceparent[3:35]
    return not differences(arrived_at(kept, trace_id), data, run.id, trace_id)
