"""The way to the collector, by the OpenTelemetry exporters: endpoint, headers, TLS, compression and retries as OTEL_ says."""

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
from pointsman._shared.otlp.span import Request, request_of, resource_of, span_of
from pointsman._shared.otlp.span_record import SpanRecord

FOR_ALL_TRACES = (DEFAULT_ON, DEFAULT_OFF, ALWAYS_ON, ALWAYS_OFF)
"""Samplers that do not look at a trace's id: they are asked once for each kind of flags."""
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class Sender(Protocol):
    """Sends requests; blocks, and does not raise."""

    def send(self, request: Request) -> bool:
        """Whether the collector took it."""

    def shutdown(self) -> None:
        """Send no more."""


class OverGrpc(GrpcExporter):
    """OTLP/gRPC."""

    def send(self, request: Request) -> bool:
        """Whether the collector took it."""
        return self._export(request) is SpanExportResult.SUCCESS  # type: ignore[arg-type]

    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._client: Any = _Written(self._channel)

    def _translate_data(self, data: Request) -> bytes:  # type: ignore[override]
        return data.data

    def _count_data(self, data: Request) -> int:  # type: ignore[override]
        return data.spans


class _Written:
    """The collector's service for requests that are bytes already."""

    def __init__(self, channel: Any) -> None:
        self.Export = channel.unary_unary(EXPORT, response_deserializer=ExportTraceServiceResponse.FromString)


class OverHttp(HttpExporter):
    """OTLP/HTTP with protobuf."""

    def send(self, request: Request) -> bool:
        """Whether the collector took it."""
        return bool(self._client.export(request.data).success)


class NotedSender:
    """Sends spans that were noted, if they are sampled: those of each service in a request of its own."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._sampler = new_sampler()
        self._resources: dict[str, resource_pb2.Resource] = {}

    def send(self, notes: Iterable[SpanRecord]) -> int:
        """Send them once; how many did not arrive."""
        by_service: dict[str, list[bytes]] = {}
        for noted in notes:
            if is_sampled(self._sampler, noted.traceparent):
                by_service.setdefault(noted.sort.service, []).append(span_of(noted))
        sent = ((group, request_of(group, self._resource(service))) for service, group in by_service.items())
        return sum(len(group) for group, request in sent if not self._sender.send(request))

    def _resource(self, service: str) -> resource_pb2.Resource:
        if service not in self._resources:
            self._resources[service] = new_resource(service)
        return self._resources[service]


def new_sender() -> Sender:
    """The exporter that the standard variables ask for."""
    return OverHttp() if protocol() == HTTP else OverGrpc()


def new_resource(service: str, instance_id: str = "") -> resource_pb2.Resource:
    """Who sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win over what we know ourselves."""
    own = {"service.name": f"pointsman-{service}", "service.namespace": "pointsman"}
    if instance_id:
        own["service.instance.id"] = instance_id
    return resource_of(Resource.create(own).merge(OTELResourceDetector().detect()).attributes)


def new_sampler() -> Sampler:
    """What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG say; without them, whatever the parent does."""
    return TracerProvider(shutdown_on_exit=False).sampler


def is_sampled(sampler: Sampler, traceparent: str) -> bool:
    """Whether a span below this context is to be recorded; one answer for a whole trace."""
    trace_id = "1" if sampler in FOR_ALL_TRACES else traceparent[3:35]
    return _is_sampled(sampler, trace_id, traceparent[53:55])


@lru_cache(maxsize=4096)
def _is_sampled(sampler: Sampler, trace: str, flags: str) -> bool:
    trace_id = int(trace, 16)
    parent = NonRecordingSpan(SpanContext(trace_id, 1, is_remote=True, trace_flags=TraceFlags(int(flags, 16))))
    result = sampler.should_sample(set_span_in_context(parent, Context()), trace_id, "")
    return result.decision is Decision.RECORD_AND_SAMPLE
