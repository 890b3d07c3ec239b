"""Spans as OTLP's own messages, put together straight: the SDK's way from span to message costs ten times as much."""

import base64
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pointsman.otlp.names import ATTRIBUTES
from pointsman.otlp.noted import Noted, Value
from pointsman.redaction import redact

MAX_VALUE_LETTERS = 256
SCOPE = InstrumentationScope(name="pointsman")
_HEX_FIELDS = frozenset({"traceId", "spanId", "parentSpanId"})


def add_span(spans: Any, noted: Noted) -> None:
    """Put a span to others, with the attributes that are on the list."""
    span = spans.add(
        trace_id=bytes.fromhex(noted.traceparent[3:35]),
        span_id=bytes.fromhex(noted.span_id),
        flags=1,
        name=noted.name,
        kind=noted.kind.value,
        start_time_unix_nano=noted.begin_ns,
        end_time_unix_nano=max(noted.begin_ns, noted.end_ns),
    )
    if not noted.is_root:
        span.parent_span_id = bytes.fromhex(noted.traceparent[36:52])
    if noted.failed:
        span.status.code = Status.STATUS_CODE_ERROR
    for link in noted.links:
        span.links.add(trace_id=bytes.fromhex(link[3:35]), span_id=bytes.fromhex(link[36:52]))
    span.MergeFromString(b"".join([encoded(*pair) for pair in noted.attributes.items()]))


@lru_cache(maxsize=16384)
def encoded(name: str, value: Value) -> bytes:
    """An attribute as a span holds it, bounded, with secrets masked, or nothing; most come again and again."""
    if name not in ATTRIBUTES or value == "":
        return b""
    if isinstance(value, str):
        shown = AnyValue(string_value=redact(value)[:MAX_VALUE_LETTERS])
    else:
        shown = AnyValue(int_value=value)
    return Span(attributes=[KeyValue(key=name, value=shown)]).SerializeToString()


def request_of(spans: Iterable[Noted], resource: Resource) -> ExportTraceServiceRequest:
    """Spans of one sender as one request."""
    request = ExportTraceServiceRequest()
    sent = request.resource_spans.add(resource=resource).scope_spans.add(scope=SCOPE)
    for noted in spans:
        add_span(sent.spans, noted)
    return request


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
