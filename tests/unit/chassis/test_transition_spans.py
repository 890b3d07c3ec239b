"""Where the span of a transition stands, and with what it is linked: every case of it, told from the journal alone."""

from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pointsman._shared.otlp.span import request_of, resource_of
from pointsman.services.chassis.spans.transition_spans import spans_of
from pointsman.services.chassis.spans.transitions import JournaledTransition, KindStates, states_by_kind
from pointsman.services.chassis.telemetry.context import new_traceparent, transition_span_id
from pointsman.services.orchestrator.domain.machine import MACHINE as RUNS
from tests.helpers.collector import values_of

KINDS = {"plan": KindStates(frozenset({"DONE", "FAILED"}), frozenset({"FAILED"})), "choice": KindStates()}
CREATED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
GIVEN = "00-11111111111111111111111111111111-2222222222222222-01"
CALLED = "00-33333333333333333333333333333333-4444444444444444-00"
BORN_US, BEFORE_US, AT_US = 1_000, 2_000, 3_000
OWN_TRACE = new_traceparent("plan_1", BORN_US)
STEP = JournaledTransition(
    entity_id="plan_1", seq=7, position=70, kind="plan", project="blue", run_id="", event="MOVED", source="OPEN",
    target="BUSY", actor="engine", at_us=AT_US, cause=CALLED, before_us=BEFORE_US, run_before="", created_at_us=BORN_US,
    outer=CREATED, owner=CREATED,
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A trace, and the span of an entity (or of one of its transitions) in it."""

    context: str
    entity_id: str
    seq: int

    @property
    def trace_id(self) -> str:
        """The trace's id."""
        return self.context[3:35]

    @property
    def span_id(self) -> str:
        """The span's id."""
        return transition_span_id(self.trace_id, self.entity_id, self.seq)


def told(**changed: Any) -> list[Span]:
    spans = [span for _, span in spans_of(STEP._replace(**changed), KINDS)]
    request = ExportTraceServiceRequest.FromString(request_of(spans, resource_of({})).data)
    return list(request.resource_spans[0].scope_spans[0].spans)


def ids(span: Span) -> tuple[str, str, str]:
    return span.trace_id.hex(), span.parent_span_id.hex(), span.span_id.hex()


@pytest.mark.parametrize(
    ("changed", "parent"),
    [
        ({}, Place(CREATED, "plan_1", 0)),
        ({"run_id": "plan_1"}, Place(CREATED, "plan_1", 0)),
        ({"outer": "", "owner": ""}, Place(OWN_TRACE, "plan_1", 0)),
        ({"run_id": "run_1", "owner": ""}, Place(CREATED, "plan_1", 0)),
        ({"run_id": "run_1", "run_before": "run_1", "owner": GIVEN}, Place(GIVEN, "run_1", 0)),
        ({"kind": "choice", "cause": ""}, Place(CREATED, "plan_1", 1)),
        ({"kind": "choice", "cause": "", "outer": ""}, Place(OWN_TRACE, "plan_1", 1)),
    ],
)
def test_a_transition_stands_below_its_run_or_its_entity(changed: dict[str, Any], parent: Place) -> None:
    (span,) = told(**changed)
    assert ids(span) == (parent.trace_id, parent.span_id, Place(parent.context, "plan_1", 7).span_id)


def test_what_never_ends_stands_below_what_caused_it_and_is_not_linked_with_it() -> None:
    (span,) = told(kind="choice", run_id="run_1", owner=GIVEN)
    assert ids(span) == (CALLED[3:35], CALLED[36:52], transition_span_id(CALLED[3:35], "plan_1", 7))
    assert list(span.links) == []
    assert span.start_time_unix_nano == span.end_time_unix_nano == AT_US * 1000


def test_the_first_transition_of_what_never_ends_is_a_root_where_nobody_named_a_trace() -> None:
    (span,) = told(kind="choice", cause="", outer="", seq=1)
    assert ids(span) == (OWN_TRACE[3:35], "", transition_span_id(OWN_TRACE[3:35], "plan_1", 1))


def test_a_transition_is_linked_with_what_caused_it_unless_that_is_its_parent() -> None:
    (span,) = told()
    linked = Span.Link(trace_id=bytes.fromhex(CALLED[3:35]), span_id=bytes.fromhex(CALLED[36:52]))
    assert list(span.links) == [linked]
    parent = transition_span_id(CREATED[3:35], "plan_1", 0)
    for cause in ("", f"{CREATED[:36]}{parent}-01"):
        (span,) = told(cause=cause)
        assert (list(span.links), span.parent_span_id.hex()) == ([], parent)


def test_a_transition_says_what_happened_and_lasts_from_the_one_before() -> None:
    (span,) = told(run_id="run_1", run_before="run_1")
    assert (span.name, span.kind, span.flags, span.status) == ("plan MOVED", Span.SPAN_KIND_INTERNAL, 1, Status())
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (BEFORE_US * 1000, AT_US * 1000)
    assert values_of(span) == {
        "pointsman.entity.kind": "plan", "pointsman.event": "MOVED", "pointsman.state.from": "OPEN",
        "pointsman.state.to": "BUSY", "pointsman.project": "blue", "pointsman.actor": "engine",
        "pointsman.entity.id": "plan_1", "pointsman.seq": "7", "pointsman.run.id": "run_1",
    }  # fmt: skip
    (first,) = told(before_us=None)
    assert first.start_time_unix_nano == AT_US * 1000


@pytest.mark.parametrize(
    ("changed", "has_whole"),
    [
        ({"target": "DONE"}, True),
        ({"target": "DONE", "source": "DONE"}, False),
        ({"target": "DONE", "run_id": "run_1", "run_before": "run_1"}, False),
        ({"run_id": "run_1", "owner": GIVEN}, True),
        ({"run_id": "run_1", "run_before": None}, False),
        ({"run_id": "run_1", "owner": ""}, False),
        ({"kind": "choice", "target": "DONE"}, False),
    ],
)
def test_an_entity_has_a_span_as_a_whole_when_it_ends_or_passes_into_a_run(
    changed: dict[str, Any], has_whole: bool
) -> None:
    _, *wholes = told(**changed)
    assert bool(wholes) is has_whole
    for whole in wholes:
        assert ids(whole) == (CREATED[3:35], CREATED[36:52], transition_span_id(CREATED[3:35], "plan_1", 0))
        assert (whole.start_time_unix_nano, whole.end_time_unix_nano) == (BORN_US * 1000, AT_US * 1000)


def test_an_entity_that_failed_in_a_trace_of_its_own_is_a_failed_root() -> None:
    step, whole = told(outer="", owner="", target="FAILED")
    assert ids(whole) == (OWN_TRACE[3:35], "", OWN_TRACE[36:52])
    assert step.parent_span_id == whole.span_id
    assert step.status.code == whole.status.code == Status.STATUS_CODE_ERROR
    assert (whole.name, whole.kind) == ("plan", Span.SPAN_KIND_SERVER)
    assert values_of(whole) == {
        "pointsman.entity.id": "plan_1", "pointsman.entity.kind": "plan", "pointsman.state.to": "FAILED",
        "pointsman.project": "blue",
    }  # fmt: skip


def test_spans_that_differ_in_one_word_share_nothing_that_differs() -> None:
    seen = [told(**changed)[0] for changed in ({}, {"entity_id": "plan_2"}, {"created_at_us": 5}, {"outer": GIVEN})]
    assert len({ids(span)[2] for span in seen}) == 3, "when it was created matters only where nobody named a trace"
    born = [told(outer="", owner="", created_at_us=at_us)[0] for at_us in (5, 6)]
    assert ids(born[0])[0] != ids(born[1])[0]
    told_of = ("kind", "event", "source", "target", "project", "actor", "run_id")
    assert len({str(sorted(values_of(told(**{name: "other"})[0]).items())) for name in told_of}) == len(told_of)


def test_an_entity_that_is_a_genai_workflow_says_so_on_its_own_span() -> None:
    kinds = {"plan": KINDS["plan"]._replace(genai_operation="invoke_workflow")}
    spans = [span for _, span in spans_of(STEP._replace(target="DONE"), kinds)]
    request = ExportTraceServiceRequest.FromString(request_of(spans, resource_of({})).data)
    moved, whole = request.resource_spans[0].scope_spans[0].spans
    assert (moved.name, whole.name) == ("plan MOVED", "invoke_workflow plan")
    shown = values_of(whole)
    assert (shown["gen_ai.operation.name"], shown["gen_ai.conversation.id"]) == ("invoke_workflow", "plan_1")
    assert "gen_ai.operation.name" not in values_of(moved)


def test_the_operation_is_exported_only_with_the_usual_opt_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SEMCONV_STABILITY_OPT_IN", raising=False)
    assert states_by_kind([RUNS])["run"].genai_operation == ""
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http/dup, gen_ai_latest_experimental")
    assert states_by_kind([RUNS])["run"].genai_operation == "invoke_workflow"
