"""`pointsman trace`: the run from the stores, with no collector anywhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pointsman.cli.commands.trace import read_journals, spans_as_json, trace_of_run
from pointsman.cli.session.control_plane import Plane
from pointsman.services.all_in_one import CONTEXTS
from pointsman.services.chassis.telemetry.context import transition_span_id
from pointsman.tracing.waterfall import draw, tree_of
from tests.helpers.traces import Arrived, differences, transitions_of
from tests.scenarios.planes import WISH, plane


def shown_by(channel: grpc.aio.Channel) -> Plane:
    """Everything behind one channel, as the command finds it."""
    return Plane(dict.fromkeys(CONTEXTS, channel), "", embedded=True, open_as=lambda *_: channel)


async def test_the_spans_from_the_stores_are_those_that_a_collector_would_have(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        run = await here.ended((await here.submit(WISH)).id)
        journals = await read_journals(shown_by(here.channel), run.id, "local")
        shown = spans_as_json(journals)
        trace_id = run.traceparent[3:35]
        assert trace_of_run(journals[0]) == trace_id
        spans = [
            Arrived(span["spanId"], span.get("parentSpanId", ""), span["name"], _values(span))
            for resource in shown["resourceSpans"]
            for span in resource["scopeSpans"][0]["spans"]
        ]
        lost = {f"lost {key}" for key in transitions_of(tmp_path, run.id, trace_id)}
        wrong = differences(spans, tmp_path, run.id, trace_id)
        assert set(wrong) <= lost
        assert len(wrong) <= 1, "only what the router learned of the outcome has no RPC that lists it"
        tree = tree_of(journals[0], {rows[0].entity_id: rows for rows in journals[1:]})
        assert {line.split("|")[0].split()[4] for line in draw(tree)} >= {"run", "pipeline", "workflow", "decision"}


async def test_the_json_is_a_request_that_a_collector_takes(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        run = await here.ended((await here.submit(WISH)).id)
        journals = await read_journals(shown_by(here.channel), run.id, "local")
    text = json.dumps(spans_as_json(journals))
    parsed = ParseDict(json.loads(text), ExportTraceServiceRequest())
    names = {pair.value.string_value for one in parsed.resource_spans for pair in one.resource.attributes}
    assert names == {f"pointsman-{name}" for name in CONTEXTS}
    ids = {span["spanId"] for one in json.loads(text)["resourceSpans"] for span in one["scopeSpans"][0]["spans"]}
    assert transition_span_id(run.traceparent[3:35], run.id, 0) in ids
    assert all(len(key) == 16 and int(key, 16) for key in ids)


def test_a_run_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pointsman.cli", "trace", "run_nowhere"]
    ended = subprocess.run(
        command, env={"POINTSMAN_DATA": str(tmp_path), "PATH": ""}, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "run_nowhere" in ended.stderr


def _values(span: dict[str, Any]) -> dict[str, str]:
    return {pair["key"]: str(next(iter(pair["value"].values()))) for pair in span.get("attributes", ())}


@pytest.fixture(autouse=True)
def _no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
