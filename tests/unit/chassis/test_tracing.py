"""Calls and commits are noted with what is at hand, and told when they are sent: below which span, linked with which."""

from collections.abc import Callable, Iterator
from contextvars import copy_context
from itertools import pairwise
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pointsman._shared.otlp.sender import is_sampled, new_sampler
from pointsman._shared.otlp.span import Request
from pointsman.services.chassis.spans.export_process import RecordSender
from pointsman.services.chassis.spans.export_protocol import Records, decode_request, encode
from pointsman.services.chassis.telemetry.context import current_traceparent, current_transition, transition_span_id
from pointsman.services.chassis.telemetry.recording import MAX_LINKS, CallRecorder, ClientCall, Commit
from tests.helpers.collector import values_of

NAMED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STEP = ("00-11111111111111111111111111111111-2222222222222222-01", "plan_1", 7)
ADD = "/pointsman.api.counter.v1.CounterService/Add"


class Sent:
    """A collector that takes everything, in this process."""

    def __init__(self) -> None:
        self.by_service: dict[str, list[Span]] = {}

    def send(self, request: Request) -> bool:
        """Keep it."""
        for sent in ExportTraceServiceRequest.FromString(request.data).resource_spans:
            kept = self.by_service.setdefault(values_of(sent.resource)["service.name"], [])
            kept += [span for scope in sent.scope_spans for span in scope.spans]
        return True

    def shutdown(self) -> None:
        """Nothing to do."""


@pytest.fixture(autouse=True)
def _nothing_is_done() -> Iterator[None]:
    named, step = current_traceparent.set(""), current_transition.set(None)
    yield
    current_traceparent.reset(named)
    current_transition.reset(step)


def spans_of(service: str, note: Callable[[CallRecorder], Any]) -> list[Span]:
    """What arrives of that service, after the way to the process that sends."""
    sent, tracing = Sent(), CallRecorder()
    noted = tracing.start()
    copy_context().run(note, tracing)
    notes, _ = noted.take(noted.limit)
    asked = decode_request(encode(Records(notes)))
    assert isinstance(asked, Records)
    answer = RecordSender(sent).send(asked)
    assert (answer.spans, answer.lost) == (len(notes), 0)
    return sent.by_service.pop(f"pointsman-{service}", [])


def served(tracing: CallRecorder, named: str = "", step: tuple[str, str, int] | None = None, code: str = "OK") -> None:
    current_traceparent.set(named)
    current_transition.set(step)
    tracing.call_served(ADD, code, 0.5)


def committed(tracing: CallRecorder, steps: list[tuple[str, str, int]]) -> None:
    tracing.committed(Commit("counter", "sqlite", 3, 4, 1_000, 2_000), steps)


def test_a_call_stands_below_what_its_caller_named() -> None:
    (span,) = spans_of("counter", lambda tracing: served(tracing, NAMED, STEP))
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (NAMED[3:35], NAMED[36:52])
    assert (span.name, span.kind, span.status) == (ADD[1:], Span.SPAN_KIND_SERVER, Status())
    assert span.end_time_unix_nano - span.start_time_unix_nano == 500_000_000
    assert values_of(span) == {
        "rpc.system.name": "grpc", "rpc.method": ADD[1:], "rpc.response.status_code": "OK",
    }  # fmt: skip


def test_a_call_without_a_trace_stands_below_the_transition_that_it_led_to() -> None:
    (span,) = spans_of("counter", lambda tracing: served(tracing, "", STEP, "INTERNAL"))
    trace_id = STEP[0][3:35]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (trace_id, transition_span_id(trace_id, "plan_1", 7))
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert values_of(span)["error.type"] == "INTERNAL"


def test_a_call_that_belongs_to_no_trace_has_no_span() -> None:
    assert spans_of("counter", served) == []


def test_a_call_from_here_stands_below_what_asked_for_it_and_counts_as_its_callers() -> None:
    (span,) = spans_of("router", lambda tracing: tracing.call_made(NAMED, "router", ADD, ("NOT_FOUND", 0.25)))
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (NAMED[3:35], NAMED[36:52])
    assert (span.kind, span.status.code) == (Span.SPAN_KIND_CLIENT, Status.STATUS_CODE_ERROR)
    assert spans_of("router", lambda tracing: tracing.call_made("", "router", ADD, ("OK", 0.25))) == []


@pytest.mark.parametrize("moved", [1, 2, MAX_LINKS + 1, MAX_LINKS + 2])
def test_a_commit_stands_below_its_first_transition_and_is_linked_with_the_others(moved: int) -> None:
    steps = [(f"00-{number:032x}-2222222222222222-01", f"plan_{number}", number) for number in range(1, moved + 1)]
    (span,) = spans_of("counter", lambda tracing: committed(tracing, steps))
    wanted = [(trace[3:35], transition_span_id(trace[3:35], entity_id, seq)) for trace, entity_id, seq in steps]
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == wanted[0]
    assert [(link.trace_id.hex(), link.span_id.hex()) for link in span.links] == wanted[1 : MAX_LINKS + 1]
    assert (span.name, span.start_time_unix_nano, span.end_time_unix_nano) == ("COMMIT counter", 1_000_000, 2_000_000)
    assert values_of(span) == {
        "db.system.name": "sqlite", "db.namespace": "counter", "db.operation.name": "COMMIT",
        "db.operation.batch.size": "3", "pointsman.commit.transitions": "4",
    }  # fmt: skip
    assert spans_of("counter", lambda tracing: committed(tracing, [])) == []


def test_no_two_spans_have_the_same_id_in_a_process_or_in_two() -> None:
    def many(tracing: CallRecorder) -> None:
        for _ in range(300):
            served(tracing, NAMED)
            committed(tracing, [STEP])

    seen = [span.span_id for _ in range(2) for span in spans_of("counter", many)]
    assert len(set(seen)) == len(seen) == 1200
    assert {len(one) for one in seen} == {8}


def test_what_does_not_fit_is_dropped_and_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    tracing = CallRecorder()
    noted = tracing.start()
    for number in range(5):
        tracing.call_made(NAMED, "router", f"/{number}", ("OK", 0.1))
    assert not tracing.has_room()
    notes, dropped = noted.take(noted.limit)
    assert ([note.method for note in notes if isinstance(note, ClientCall)], dropped) == (["/0", "/1"], 4)
    assert tracing.has_room()
    assert noted.take(noted.limit) == ([], 0)


def test_all_services_of_a_process_note_into_one_queue_until_the_last_has_stopped() -> None:
    tracing = CallRecorder()
    first, second = tracing.start(), tracing.start()
    tracing.stop()
    tracing.call_made(NAMED, "router", ADD, ("OK", 0.1))
    tracing.stop()
    tracing.call_made(NAMED, "router", ADD, ("OK", 0.1))
    assert (tracing.is_on, tracing.has_room()) == (False, False)
    assert first is second
    assert len(first.take(10)[0]) == 1


def test_notes_that_the_collector_does_not_take_are_lost_and_counted() -> None:
    class Refusing(Sent):
        def send(self, request: Request) -> bool:
            return False

    tracing = CallRecorder()
    noted = tracing.start()
    tracing.call_made(NAMED, "router", ADD, ("OK", 0.1))
    committed(tracing, [STEP])
    answer = RecordSender(Refusing()).send(Records(noted.take(10)[0]))
    assert (answer.spans, answer.lost) == (2, 2)


@pytest.mark.parametrize("sampler", ["parentbased_always_on", "parentbased_always_off", "always_on", "always_off"])
def test_a_sampler_that_asks_for_flags_alone_answers_for_every_trace(
    monkeypatch: pytest.MonkeyPatch, sampler: str
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    chosen = new_sampler()
    recorded = [is_sampled(chosen, f"00-{number:032x}-2222222222222222-{flags}") for number in (1, 2**127)
                for flags in ("00", "01")]  # fmt: skip
    wanted = {"always_on": [True, True], "always_off": [False, False]}.get(sampler, [False, True])
    assert recorded == wanted * 2


def test_a_sampler_that_asks_for_the_trace_is_asked_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    chosen = new_sampler()
    kept = [is_sampled(chosen, f"00-{number << 60:032x}-2222222222222222-01") for number in range(1, 16)]
    assert sum(one != other for one, other in pairwise(kept)) == 1
