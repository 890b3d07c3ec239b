"""Spans as OTLP's own bytes, put together straight: the SDK's way from span to message costs thirty times as much."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from struct import Struct
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from pointsman._shared.otlp.names import ATTRIBUTES
from pointsman._shared.otlp.span_record import SpanRecord, SpanTemplate, Value, trace_id_in
from pointsman._shared.protobuf_bytes import held, tag, varint
from pointsman._shared.redaction import redact

MAX_VALUE_LETTERS = 256
_SCOPE_FIELD = ScopeSpans(scope=InstrumentationScope(name="pointsman")).SerializeToString()
_SPAN = b"\x12"
"""The tag of a span in its scope."""
_TRACE_ID, _SPAN_ID, _PARENT_ID = b"\x0a\x10", b"\x12\x08", b"\x22\x08"
"""The tags of the ids of a span, each with the length of what follows; the first two are a link's too."""
_LINK = b"\x6a\x1c" + _TRACE_ID
"""The tag of a link in a span, with its length, and of the trace in it."""
_INTEGER = b"\x18"
"""The tag of a whole number in an attribute."""
_BEGIN, _END = 7 << 3 | 1, 8 << 3 | 1
_TIMES = Struct("<BQBQ")
"""Begin and end, each behind its tag."""
_HEX_FIELDS = frozenset({"traceId", "spanId", "parentSpanId"})


class Request(NamedTuple):
    """Spans of one sender, ready to be sent."""

    spans: int
    data: bytes


def request_of(spans: Sequence[bytes], resource: Resource) -> Request:
    """Spans of one sender as one request."""
    scope = b"".join((_SCOPE_FIELD, *spans))
    return Request(len(spans), held(tag(1), ResourceSpans(resource=resource).SerializeToString() + held(tag(2), scope)))


def span_of(noted: SpanRecord) -> bytes:
    """A span, with the attributes that are on the list, as a scope holds it."""
    sort, traceparent, parent_id, span_id, begin_ns, end_ns, attributes, links = noted
    parts = [trace(traceparent), _common(sort)]
    if parent_id:
        parts += parent(parent_id)
    parts += [encoded(name, value) for name, value in attributes]
    parts += [part for one in links for part in link(*one)]
    return written(span_id, begin_ns, end_ns, parts)


def written(span_id: bytes, begin_ns: int, end_ns: int, parts: Iterable[bytes]) -> bytes:
    """A span as a scope holds it, from what was written of it before: what comes again and again is written once.

    Putting the message together with protobuf's own objects takes three times as long.
    """
    times = _TIMES.pack(_BEGIN, begin_ns, _END, max(begin_ns, end_ns))
    body = b"".join((_SPAN_ID, span_id, times, *parts))
    return held(_SPAN, body)


def trace(traceparent: str) -> bytes:
    """The trace of a span."""
    return _TRACE_ID + trace_id_in(traceparent)


def parent(parent_id: bytes) -> tuple[bytes, ...]:
    """What a span stands below, in parts; a root has none."""
    return _PARENT_ID, parent_id


def link(trace_id: bytes, span_id: bytes) -> tuple[bytes, ...]:
    """Something else that a span has to do with, in parts."""
    return _LINK, trace_id, _SPAN_ID, span_id


def common(sort: SpanTemplate) -> bytes:
    """What all spans of a sort have in common."""
    span = Span(name=sort.name, kind=sort.kind.value, flags=1)  # type: ignore[arg-type]
    if sort.failed:
        span.status.code = Status.STATUS_CODE_ERROR
    return span.SerializeToString() + b"".join([encoded(*pair) for pair in sort.attributes])


_common = lru_cache(maxsize=4096)(common)


@lru_cache(maxsize=16384)
def encoded(name: str, value: Value) -> bytes:
    """An attribute as a span holds it, bounded, with secrets masked, or nothing; most come again and again."""
    if name not in ATTRIBUTES or value == "":
        return b""
    if isinstance(value, str):
        shown = held(tag(1), redact(value)[:MAX_VALUE_LETTERS].encode())
    else:
        shown = _INTEGER + varint(value)
    return held(tag(9), _key(name) + held(tag(2), shown))


@cache
def _key(name: str) -> bytes:
    return KeyValue(key=name).SerializeToString()


def resource_of(attributes: Mapping[str, Any]) -> Resource:
    """Who sends, as a message."""
    pairs = [KeyValue(key=name, value=AnyValue(string_value=str(value))) for name, value in attributes.items()]
    return Resource(attributes=pairs)


def otlp_json(request: Request) -> dict[str, Any]:
    """A request as OTLP's JSON, which differs from protobuf's: ids are hexadecimal, enums are numbers."""
    message = ExportTraceServiceRequest.FromString(request.data)
    shown: dict[str, Any] = _hexadecimal(MessageToDict(message, use_integers_for_enums=True))
    return shown


def _hexadecimal(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in _HEX_FIELDS else _hexadecimal(item)
            for key, item in value.items()
        }
    return [_hexadecimal(item) for item in value] if isinstance(value, list) else value
