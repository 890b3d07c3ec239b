"""What leaves a service as spans, by the standard variables: calls and commits below their transitions, nothing else."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from prometheus_client import REGISTRY

from pointsman._shared.otlp import exports_spans, protocol
from pointsman._shared.otlp.names import ATTRIBUTES
from pointsman._shared.otlp.span_record import now_ns
from pointsman.api.handoff.v1 import handoff_pb2
from pointsman.api.orchestrator.v1 import agent_pb2, artifact_pb2, assignment_pb2
from pointsman.api.router.v1 import decision_pb2, log_pb2
from pointsman.services.chassis.telemetry.recording import call_recorder
from pointsman.usage.output import ToolCall
from pointsman.worker.spans import DONE, GIVEN_UP, WorkSpans
from tests.contract.router.routers import served
from tests.helpers.collector import Collector, collector, http_collector, values_of
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, plane

OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = f"{OUTER[:-2]}00"
TEXT = "Fix the failing test in src/parser.py"


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'router.db'}"


def there(kept: Collector, *names: str) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return {span.name.split("/")[-1] for span in kept.spans} >= set(names)

    return check


async def classify(client: object, traceparent: str = "") -> None:
    request = decision_pb2.ClassifyRequest(request_id=traceparent or "r1", message=decision_pb2.Message(text=TEXT))
    metadata = (("traceparent", traceparent),) if traceparent else ()
    await client.stub.Classify(request, metadata=metadata)  # type: ignore[attr-defined]


async def test_a_call_and_its_commit_hang_in_the_callers_trace(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with served(url) as client:
            await classify(client, OUTER)
            await client.stub.ListDecisions(log_pb2.ListDecisionsRequest())
            await eventually(there(kept, "Classify", "COMMIT router", "decision DECISION_MADE"), 30)
    by_name = {span.name.split("/")[-1]: span for span in kept.spans}
    assert {span.trace_id.hex() for span in kept.spans} == {OUTER[3:35]}
    made = by_name["decision DECISION_MADE"]
    assert made.parent_span_id.hex() == by_name["Classify"].parent_span_id.hex() == OUTER[36:52]
    assert by_name["COMMIT router"].parent_span_id == made.span_id
    assert "ListDecisions" not in by_name, "a call that belongs to no trace has no span"
    assert values_of(by_name["Classify"]) == {
        "rpc.system.name": "grpc",
        "rpc.method": "pointsman.api.router.v1.RouterService/Classify",
        "rpc.response.status_code": "OK",
    }
    assert values_of(by_name["COMMIT router"])["db.operation.batch.size"] == "1"
    assert {key for span in kept.spans for key in values_of(span)} <= ATTRIBUTES.keys()


async def test_a_call_without_a_trace_hangs_below_the_transition_it_led_to(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with served(url) as client:
            await classify(client)
            await eventually(there(kept, "Classify", "COMMIT router", "decision DECISION_MADE"), 30)
    by_name = {span.name.split("/")[-1]: span for span in kept.spans}
    made = by_name["decision DECISION_MADE"]
    assert made.parent_span_id == b""
    assert by_name["Classify"].parent_span_id == by_name["COMMIT router"].parent_span_id == made.span_id


async def test_an_upload_and_a_stream_are_spans_and_numbers_like_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"hello"
    ref = handoff_pb2.ArtifactRef(sha256=hashlib.sha256(body).hexdigest(), size_bytes=5, media_type="x/y")
    parts = [artifact_pb2.PutRequest(start=artifact_pb2.PutStart(artifact=ref)), artifact_pb2.PutRequest(chunk=body)]
    metadata = (("traceparent", OUTER),)
    service = "/pointsman.api.orchestrator.v1.ArtifactService"
    before = {
        key: _calls(f"{service}/{key[0]}", key[1]) for key in (("Put", "OK"), ("Get", "OK"), ("Get", "NOT_FOUND"))
    }
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with plane(tmp_path, NOBODY) as here:
            await here.artifacts.Put(iter(parts), metadata=metadata)
            asked = artifact_pb2.GetRequest(sha256=ref.sha256)
            assert [part.chunk async for part in here.artifacts.Get(asked, metadata=metadata)] == [body]
            missing = artifact_pb2.GetRequest(sha256="0" * 64)
            with pytest.raises(grpc.aio.AioRpcError):
                _ = [part async for part in here.artifacts.Get(missing, metadata=metadata)]
            await eventually(lambda: _count(kept, 3), 30)
    found = [(span.name.split("/")[-1], values_of(span)["rpc.response.status_code"]) for span in kept.spans]
    assert sorted(found) == sorted(before)
    assert {span.parent_span_id.hex() for span in kept.spans} == {OUTER[36:52]}
    assert all(_calls(f"{service}/{name}", code) == count + 1 for (name, code), count in before.items())


def _calls(method: str, code: str) -> float:
    return REGISTRY.get_sample_value("pointsman_rpc_seconds_count", {"method": method, "code": code}) or 0.0


@pytest.mark.parametrize(("sampler", "traceparent"), [("always_off", OUTER), ("parentbased_always_on", UNSAMPLED)])
async def test_a_sampler_never_drops_a_transition_unless_it_is_told_to(
    url: str, monkeypatch: pytest.MonkeyPatch, sampler: str, traceparent: str
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with served(url) as client:
            await classify(client, traceparent)
            await eventually(there(kept, "decision DECISION_MADE"), 30)
        assert {span.name for span in kept.spans} == {"decision DECISION_MADE"}
        kept.spans.clear()
        monkeypatch.setenv("POINTSMAN_TELEMETRY_SAMPLE_TRANSITIONS", "true")
        async with served(url.replace("router.db", "other.db")) as client:
            await classify(client, traceparent)
            await classify(client, OUTER.replace("0af765", "1af765") if sampler != "always_off" else traceparent)
            if sampler != "always_off":
                await eventually(there(kept, "decision DECISION_MADE"), 30)
    assert {span.trace_id.hex()[:6] for span in kept.spans} <= {"1af765"}


async def test_spans_go_over_http_with_headers_and_resource_as_the_variables_say(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.version=7")
        async with served(url) as client:
            await classify(client, OUTER)
            await eventually(there(kept, "Classify", "COMMIT router", "decision DECISION_MADE"), 30)
    assert {(head["path"], head["x-tenant"]) for head in kept.headers} == {("/v1/traces", "blue")}
    for resource in kept.resources:
        assert resource["service.name"] == "pointsman-router"
        assert (resource["deployment.environment.name"], resource["service.version"]) == ("test", "7")


async def test_a_service_name_of_the_variables_wins(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "our-router")
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with served(url) as client:
            await classify(client)
            await eventually(there(kept, "decision DECISION_MADE"), 30)
    assert {resource["service.name"] for resource in kept.resources} == {"our-router"}


async def test_without_a_collector_nothing_is_noted(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    async with served(url) as client:
        await classify(client, OUTER)
        assert not call_recorder.is_on


async def test_a_collector_that_is_away_holds_nobody_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    async with served(url) as client:
        await asyncio.gather(*(classify(client, OUTER.replace("0af7", f"{n:04x}")) for n in range(1, 20)))


@pytest.mark.parametrize(
    ("variables", "exports"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x:4317"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4317", "OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_the_standard_variables_switch_export_on_and_off(variables: dict[str, str], exports: bool) -> None:
    assert exports_spans(variables) is exports


def test_what_is_not_spoken_here_is_refused_with_what_is_possible() -> None:
    with pytest.raises(SystemExit, match="possible: grpc, http/protobuf"):
        protocol({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
    with pytest.raises(SystemExit, match="possible: otlp, none"):
        exports_spans({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "zipkin"})
    assert protocol({}) == "grpc"
    assert protocol({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}) == (
        "http/protobuf"
    )


async def test_the_last_work_of_a_worker_that_stops_is_sent_while_its_loop_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    lease = agent_pb2.Lease(assignment=assignment_pb2.Assignment(id="run_1.a1", traceparent=OUTER), epoch=1)
    spans = WorkSpans()
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with spans.open():
            spans.record(lease, ("box-coder", "coder"), now_ns(), DONE, {"pointsman.assignment.tokens": 1})
        assert [span.name for span in kept.spans] == ["invoke_agent coder"]


async def test_an_agents_work_is_a_span_below_what_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = assignment_pb2.Assignment(
        id="run_1.a1", run_id="run_1", attempt=2, purpose=assignment_pb2.PURPOSE_STAGE, traceparent=OUTER
    )
    first, second = (agent_pb2.Lease(assignment=assignment, epoch=epoch) for epoch in (1, 2))
    spans = WorkSpans()
    assert spans.context_of(first) == OUTER
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with spans.open():
            inner = spans.context_of(first)
            spans.record(first, ("box-coder", "coder"), now_ns(), GIVEN_UP, {"pointsman.assignment.tokens": 7})
            spans.record(second, ("box-coder", "coder"), now_ns(), DONE, {"pointsman.assignment.tokens": 8})
            await eventually(lambda: _count(kept, 2), 30)
    failed, done = kept.spans
    assert failed.span_id.hex() == inner[36:52] != done.span_id.hex()
    assert {span.parent_span_id.hex() for span in kept.spans} == {OUTER[36:52]}
    assert (failed.name, failed.status.code, done.status.code) == ("invoke_agent coder", 2, 0)
    shown = values_of(failed)
    assert (shown["gen_ai.operation.name"], shown["gen_ai.agent.id"]) == ("invoke_agent", "box-coder")
    assert (shown["gen_ai.conversation.id"], shown["pointsman.assignment.outcome"]) == ("run_1", "given_up")
    assert shown.keys() <= ATTRIBUTES.keys()


async def test_a_plan_and_tool_calls_are_spans_below_the_agents_work_with_the_opt_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental")
    assignment = assignment_pb2.Assignment(
        id="run_1.a1", run_id="run_1", purpose=assignment_pb2.PURPOSE_PLAN, traceparent=OUTER
    )
    lease, spans = agent_pb2.Lease(assignment=assignment, epoch=1), WorkSpans()
    async with collector() as kept:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        async with spans.open():
            begin = now_ns()
            spans.record(lease, ("box", "planner"), begin, DONE, {"gen_ai.usage.input_tokens": 100})
            spans.record_tools(
                lease, [ToolCall("c1", "read", begin, begin + 5), ToolCall("c2", "edit", begin, 0, True)]
            )
            await eventually(lambda: _count(kept, 4), 30)
    by_name = {span.name: span for span in kept.spans}
    assert by_name.keys() == {"invoke_agent planner", "plan", "execute_tool read", "execute_tool edit"}
    work = by_name.pop("invoke_agent planner")
    assert values_of(work)["gen_ai.usage.input_tokens"] == "100"
    assert {span.parent_span_id for span in by_name.values()} == {work.span_id}
    shown = values_of(by_name["execute_tool edit"])
    assert (shown["gen_ai.tool.name"], shown["gen_ai.tool.call.id"]) == ("edit", "c2")
    assert by_name["execute_tool edit"].status.code == 2
    assert {key for span in kept.spans for key in values_of(span)} <= ATTRIBUTES.keys()


async def _count(kept: Collector, spans: int) -> bool:
    return len(kept.spans) == spans
