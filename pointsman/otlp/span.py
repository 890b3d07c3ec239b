"""Spans as OTLP's own messages, put together straight: the SDK's way from span to message costs ten times as much."""

import base64
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from pointsman.otlp.names import ATTRIBUTES
from pointsman.otlp.noted import Noted, Value
from pointsman.redaction import redact

MAX_VALUE_LETTERS = 256
SCOPE = InstrumentationScope(name="pointsman")
_FAILED = Status(code=Status.STATUS_CODE_ERROR)
_HEX_FIELDS = frozenset({"traceId", "spanId", "parentSpanId"})


def span_of(noted: Noted) -> Span:
    """The span as a message, with the attributes that are on the list."""
    trace_id = bytes.fromhex(noted.traceparent[3:35])
    return Span(
        trace_id=trace_id,
        span_id=bytes.fromhex(noted.span_id),
        parent_span_id=b"" if noted.is_root else bytes.fromhex(noted.traceparent[36:52]),
        flags=1,
        name=noted.name,
        kind=Span.SpanKind.ValueType(noted.kind.value),
        start_time_unix_nano=noted.begin_ns,
        end_time_unix_nano=max(noted.begin_ns, noted.end_ns),
        attributes=[attribute(*pair) for pair in noted.attributes.items() if pair[0] in ATTRIBUTES and pair[1] != ""],
        links=[
            Span.Link(trace_id=bytes.fromhex(link[3:35]), span_id=bytes.fromhex(link[36:52])) for link in noted.links
        ],
        status=_FAILED if noted.failed else None,
    )


@lru_cache(maxsize=8192)
def attribute(name: str, value: Value) -> KeyValue:
    """An attribute, bounded, with secrets masked; most values come again and again."""
    if isinstance(value, str):
        return KeyValue(key=name, value=AnyValue(string_value=redact(value)[:MAX_VALUE_LETTERS]))
    return KeyValue(key=name, value=AnyValue(int_value=value))


def request_of(spans: Iterable[Span], resource: Resource) -> ExportTraceServiceRequest:
    """Spans of one sender as one request."""
    scope = ScopeSpans(scope=SCOPE, spans=spans)
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])])


def resource_of(attributes: Mapping[str, Any]) -> Resource:
    """Who sends, as a message."""
    pairs = [KeyValue(key=name, value=AnyValue(string_value=str(value))) for name, value in attributes.items()]
    return Resource(attributes=pairs)


def otlp_json(request: ExportTraceServiceRequest) -> dict[str, Any]:
    """A request as OTLP's JSON, which differs from protobuf's: ids are hexadecimal, enums are numbers."""
    shown: dict[str, Any] = _hexadecimal(MessageToDict(request, use_integers_for_enums=True))
    return shown


def _hexadecimal(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in _HEX_FIELDS else _hexadecimal(item)
            for key, item in value.items()
        }
    return [_hexadecimal(item) for item in value] if isinstance(value, list) else value
