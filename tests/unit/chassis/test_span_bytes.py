"""Spans are written as bytes by hand: what protobuf reads from them is what was noted."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from pointsman._shared.otlp.span import encode_record, request_of, resource_of
from pointsman._shared.otlp.span_record import Kind, SpanRecord, SpanTemplate

TRACE, PARENT, OWN = bytes.fromhex("0af7651916cd43dd8448eb211c80319c"), bytes.fromhex("b7ad6b7169203331"), b"own span"
WITHIN = f"00-{TRACE.hex()}-2222222222222222-01"
OTHER = (b"\x11" * 16, b"\x22" * 8)
TEMPLATE = SpanTemplate(
    "", "run ENDED", Kind.SERVER, (("pointsman.event", "ENDED"), ("pointsman.state.from", "")), is_error=True
)
LAST_NS = 2**63 - 1


def text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def read(*noted: SpanRecord) -> ExportTraceServiceRequest:
    request = request_of([encode_record(one) for one in noted], resource_of({"service.name": "x"}))
    assert request.spans == len(noted)
    return ExportTraceServiceRequest.FromString(request.data)


def test_every_field_of_a_span_is_read_as_it_was_noted() -> None:
    own = (
        ("pointsman.entity.id", "é" * 300),
        ("pointsman.seq", 2**40),
        ("pointsman.content", "never"),
        ("pointsman.assignment.tokens", -1),
    )
    failed = SpanRecord(TEMPLATE, WITHIN, PARENT, OWN, 5, LAST_NS, own, (OTHER, (TRACE, PARENT)))
    wanted = Span(
        trace_id=TRACE,
        span_id=OWN,
        parent_span_id=PARENT,
        flags=1,
        name="run ENDED",
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=5,
        end_time_unix_nano=LAST_NS,
        attributes=[
            text("pointsman.event", "ENDED"),
            text("pointsman.entity.id", "é" * 256),
            KeyValue(key="pointsman.seq", value=AnyValue(int_value=2**40)),
            KeyValue(key="pointsman.assignment.tokens", value=AnyValue(int_value=-1)),
        ],
        links=[
            Span.Link(trace_id=OTHER[0], span_id=OTHER[1]),
            Span.Link(trace_id=TRACE, span_id=PARENT),
        ],
        status=Status(code=Status.STATUS_CODE_ERROR),
    )
    scope = ScopeSpans(scope=InstrumentationScope(name="pointsman"), spans=[wanted])
    sender = resource_of({"service.name": "x"})
    assert read(failed) == ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=sender, scope_spans=[scope])]
    )


def test_a_root_has_no_parent_and_no_span_ends_before_it_begins() -> None:
    calm = SpanTemplate("", "run", Kind.INTERNAL, ())
    (sent,) = read(SpanRecord(calm, WITHIN, b"", OWN, 9, 8)).resource_spans[0].scope_spans[0].spans
    assert (sent.parent_span_id, sent.start_time_unix_nano, sent.end_time_unix_nano) == (b"", 9, 9)
    assert sent.status == Status()


def test_requests_of_any_length_are_read_whole() -> None:
    noted = [SpanRecord(TEMPLATE, WITHIN, PARENT, number.to_bytes(8, "big"), 1, 2) for number in range(1, 3000)]
    for count in (0, 1, 2, 40, 2999):
        spans = read(*noted[:count]).resource_spans[0].scope_spans[0].spans
        assert [span.span_id for span in spans] == [one.span_id for one in noted[:count]]
