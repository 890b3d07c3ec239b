"""Sends spans with the OpenTelemetry exporters: endpoint, headers, TLS, compression and retries by OTEL_ variables."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Protocol

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, DEFAULT_OFF, DEFAULT_ON, Decision, Sampler
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from pointsman._shared.otlp import HTTP, protocol
from pointsman._shared.otlp.span import Request, encode_record, request_of, resource_of
from pointsman._shared.otlp.span_record import SpanRecord

FOR_ALL_TRACES = (DEFAULT_ON, DEFAULT_OFF, ALWAYS_ON, ALWAYS_OFF)
"""Samplers that ignore the trace id: one decision for each value of the flags is cached."""
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Sender(Protocol):
    """Sends requests; blocks, never raises."""

    def send(self, request: Request) -> bool:
        """Whether the collector accepted it."""

    def shutdown(self) -> None:
        """Stop sending."""


class GrpcSender(GrpcExporter):
    """OTLP/gRPC."""

    def send(self, request: Request) -> bool:
        """Whether the collector accepted it."""
        return self._export(request) is SpanExportResult.SUCCESS  # type: ignore[arg-type]

    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._client: Any = _BytesStub(self._channel)

    def _translate_data(self, data: Request) -> bytes:  # type: ignore[override]
        return data.data

    def _count_data(self, data: Request) -> int:  # type: ignore[override]
        return data.spans


class _BytesStub:
    """A stub of the collector's service for requests that are encoded already."""

    def __init__(self, channel: Any) -> None:
        self.Export = channel.unary_unary(EXPORT, response_deserializer=ExportTraceServiceResponse.FromString)


class HttpSender(HttpExporter):
    """OTLP/HTTP with protobuf."""

    def send(self, request: Request) -> bool:
        """Whether the collector accepted it."""
        return bool(self._client.export(request.data).success)


class SpanSender:
    """Samples span records and sends them, one request per service."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._sampler = new_sampler()
        self._resources: dict[str, resource_pb2.Resource] = {}

    def send(self, records: Iterable[SpanRecord]) -> int:
        """Send each once; the number of spans that the collector did not accept."""
        by_service: dict[str, list[bytes]] = {}
        for record in records:
            if is_sampled(self._sampler, record.traceparent):
                by_service.setdefault(record.template.service, []).append(encode_record(record))
        sent = ((group, request_of(group, self._resource(service))) for service, group in by_service.items())
        return sum(len(group) for group, request in sent if not self._sender.send(request))

    def _resource(self, service: str) -> resource_pb2.Resource:
        if service not in self._resources:
            self._resources[service] = new_resource(service)
        return self._resources[service]


def new_sender() -> Sender:
    """The exporter that the standard variables ask for."""
    return HttpSender() if protocol() == HTTP else GrpcSender()


def new_resource(service: str, instance_id: str = "") -> resource_pb2.Resource:
    """The resource of a service; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override our own values."""
    own = {"service.name": f"pointsman-{service}", "service.namespace": "pointsman"}
    if instance_id:
        own["service.instance.id"] = instance_id
    return resource_of(Resource.create(own).merge(OTELResourceDetector().detect()).attributes)


def new_sampler() -> Sampler:
    """The sampler of OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG; by default the decision of the parent."""
    return TracerProvider(shutdown_on_exit=False).sampler


def is_sampled(sampler: Sampler, traceparent: str) -> bool:
    """Whether a child span of this context is sampled; the same for a whole trace."""
    trace_id = "1" if sampler in FOR_ALL_TRACES else traceparent[3:35]
    return _is_sampled(sampler, trace_id, traceparent[53:55])


@lru_cache(maxsize=4096)
def _is_sampled(sampler: Sampler, trace: str, flags: str) -> bool:
    trace_id = int(trace, 16)
    parent = NonRecordingSpan(SpanContext(trace_id, 1, is_remote=True, trace_flags=TraceFlags(int(flags, 16))))
    result = sampler.should_sample(set_span_in_context(parent, Context()), trace_id, "")
    return result.decision is Decision.RECORD_AND_SAMPLE
