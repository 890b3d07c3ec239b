"""The spans of transitions, derived from the journal alone: the same journal gives the same spans."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pointsman._shared.otlp.span import (
    encode_attribute,
    encode_link,
    encode_parent,
    encode_span,
    encode_template,
    encode_trace_id,
)
from pointsman._shared.otlp.span_record import Attributes, Kind, SpanTemplate, span_id_in, trace_id_in
from pointsman.services.chassis.spans.transitions import JournaledTransition, KindStates
from pointsman.services.chassis.telemetry.context import new_traceparent, transition_id

NO_STATES = KindStates()

EncodedSpan = tuple[str, bytes]
"""A context of the span's trace, for the sampler, and the encoded span."""


def spans_of(transition: JournaledTransition, kinds: Mapping[str, KindStates]) -> list[EncodedSpan]:
    """The span of a transition and, if its entity ends or joins a run with it, the span of the entity."""
    terminal, failed, genai_operation = kinds.get(transition.kind, NO_STATES)
    has_failed = transition.target in failed
    if not terminal:
        parent = _parent_of_endless_entity(transition)
        return [_transition_span(transition, parent, transition.at_us, has_failed=has_failed)]
    on_its_own = transition.run_id in ("", transition.entity_id) or not transition.owner
    parent = (
        _parent_in_own_trace(transition, 0)
        if on_its_own
        else _parent(transition.owner, transition.run_id, 0, transition.entity_id, transition.run_id)
    )
    begin_us = transition.at_us if transition.before_us is None else transition.before_us
    spans = [_transition_span(transition, parent, begin_us, has_failed=has_failed)]
    ends = transition.source != transition.target and transition.target in terminal
    joins_a_run = transition.run_before == ""
    if ends if on_its_own else joins_a_run:
        spans.append(_entity_span(transition, genai_operation, has_failed=has_failed))
    return spans


class _Parent(NamedTuple):
    """The parent of transition spans, with the encoded fields that they share; cached for each entity."""

    traceparent: str
    parent_id: bytes
    shared: bytes


@lru_cache(4096)
def _parent(traceparent: str, above_id: str, above_seq: int, entity_id: str, run_id: str) -> _Parent:
    """A parent that is the span of an entity (seq 0) or of one of its transitions."""
    return _new_parent(traceparent, transition_id(traceparent, above_id, above_seq), entity_id, run_id)


def _new_parent(traceparent: str, parent_id: bytes, entity_id: str, run_id: str) -> _Parent:
    names = encode_attribute("pointsman.entity.id", entity_id) + encode_attribute("pointsman.run.id", run_id)
    return _Parent(traceparent, parent_id, encode_trace_id(traceparent) + names)


def _parent_in_own_trace(transition: JournaledTransition, seq: int) -> _Parent:
    """A parent in the trace of the entity itself, which has no run or whose run has no known trace."""
    traceparent = transition.outer or _own_traceparent(transition.entity_id, transition.created_at_us)
    return _parent(traceparent, transition.entity_id, seq, transition.entity_id, transition.run_id)


_own_traceparent = lru_cache(4096)(new_traceparent)


def _parent_of_endless_entity(transition: JournaledTransition) -> _Parent:
    """Entities without an end (a policy, a decision) are in the trace of the call that caused the transition."""
    if transition.cause:
        return _new_parent(transition.cause, span_id_in(transition.cause), transition.entity_id, transition.run_id)
    return _parent_in_own_trace(transition, 1)


def _transition_span(
    transition: JournaledTransition, parent: _Parent, begin_us: int, *, has_failed: bool
) -> EncodedSpan:
    own_id = transition_id(parent.traceparent, transition.entity_id, transition.seq)
    names = (
        transition.kind,
        transition.event,
        transition.source,
        transition.target,
        transition.project,
        transition.actor,
    )
    template = _transition_template(*names, is_error=has_failed and transition.source != transition.target)
    parts = [parent.shared, template, encode_attribute("pointsman.seq", transition.seq)]
    if own_id != parent.parent_id:
        parts += encode_parent(parent.parent_id)
    if transition.cause and (cause_id := span_id_in(transition.cause)) != parent.parent_id:
        parts += encode_link(trace_id_in(transition.cause), cause_id)
    return parent.traceparent, encode_span(own_id, begin_us * 1000, transition.at_us * 1000, parts)


@lru_cache(4096)
def _transition_template(*names: str, is_error: bool) -> bytes:
    kind, event, source, target, project, actor = names
    attributes = (
        ("pointsman.entity.kind", kind),
        ("pointsman.event", event),
        ("pointsman.state.from", source),
        ("pointsman.state.to", target),
        ("pointsman.project", project),
        ("pointsman.actor", actor),
    )
    return encode_template(SpanTemplate("", f"{kind} {event}", Kind.INTERNAL, attributes, is_error))


def _entity_span(transition: JournaledTransition, genai_operation: str, *, has_failed: bool) -> EncodedSpan:
    outer = transition.outer or new_traceparent(transition.entity_id, transition.created_at_us)
    own_id, parent_id = transition_id(outer, transition.entity_id, 0), span_id_in(outer)
    attributes = (
        ("pointsman.entity.id", transition.entity_id),
        ("pointsman.entity.kind", transition.kind),
        ("pointsman.state.to", transition.target),
        ("pointsman.project", transition.project),
        ("pointsman.run.id", transition.run_id),
        *_genai_attributes(transition, genai_operation),
    )
    name = f"{genai_operation} {transition.kind}".lstrip()
    parts = [
        encode_trace_id(outer),
        encode_template(SpanTemplate("", name, Kind.SERVER, attributes, has_failed)),
    ]
    if own_id != parent_id:
        parts += encode_parent(parent_id)
    return outer, encode_span(own_id, transition.created_at_us * 1000, transition.at_us * 1000, parts)


def _genai_attributes(transition: JournaledTransition, operation: str) -> Attributes:
    if not operation:
        return ()
    return (
        ("gen_ai.operation.name", operation),
        ("gen_ai.provider.name", "pointsman"),
        ("gen_ai.workflow.name", transition.kind),
        ("gen_ai.conversation.id", transition.run_id or transition.entity_id),
    )
