"""What the span of a transition is: told from the journal alone, so that it is the same whoever asks, and when."""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pointsman._shared.otlp.span import common, encoded, link, parent, trace, written
from pointsman._shared.otlp.span_record import Kind, SpanTemplate, span_id_in, trace_id_in
from pointsman.services.chassis.spans.transitions import JournaledTransition, KindStates
from pointsman.services.chassis.telemetry.context import new_traceparent, transition_id

NO_STATES = KindStates()

EncodedSpan = tuple[str, bytes]
"""A context of a span's trace, by which it is sampled, and the span as it is sent."""


def spans_of(step: JournaledTransition, kinds: Mapping[str, KindStates]) -> list[EncodedSpan]:
    """A transition's span and, where its entity ends or passes into a run, the span of the entity as a whole."""
    terminal, failed = kinds.get(step.kind, NO_STATES)
    has_failed = step.target in failed
    if not terminal:
        return [_transition(step, _parent_of_endless_entity(step), step.at_us, has_failed=has_failed)]
    on_its_own = step.run_id in ("", step.entity_id) or not step.owner
    stand = (
        _own_span_parent(step, 0)
        if on_its_own
        else _span_parent(step.owner, step.run_id, 0, step.entity_id, step.run_id)
    )
    begin_us = step.at_us if step.before_us is None else step.before_us
    spans = [_transition(step, stand, begin_us, has_failed=has_failed)]
    ends = step.source != step.target and step.target in terminal
    joins_a_run = step.run_before == ""
    if ends if on_its_own else joins_a_run:
        spans.append(_entity_span(step, has_failed=has_failed))
    return spans


class _SpanParent(NamedTuple):
    """Where transitions stand, and what their spans share: written once as long as their entity stays there."""

    traceparent: str
    parent_id: bytes
    shared: bytes


@lru_cache(4096)
def _span_parent(traceparent: str, above_id: str, above_seq: int, entity_id: str, run_id: str) -> _SpanParent:
    """Below the span of an entity, or of one of its transitions."""
    return _new_span_parent(traceparent, transition_id(traceparent, above_id, above_seq), entity_id, run_id)


def _new_span_parent(traceparent: str, parent_id: bytes, entity_id: str, run_id: str) -> _SpanParent:
    names = encoded("pointsman.entity.id", entity_id) + encoded("pointsman.run.id", run_id)
    return _SpanParent(traceparent, parent_id, trace(traceparent) + names)


def _own_span_parent(step: JournaledTransition, seq: int) -> _SpanParent:
    """In the entity's own trace: where it belongs to no run, or nobody has named the trace of its run."""
    traceparent = step.outer or _own_traceparent(step.entity_id, step.created_at_us)
    return _span_parent(traceparent, step.entity_id, seq, step.entity_id, step.run_id)


_own_traceparent = lru_cache(4096)(new_traceparent)


def _parent_of_endless_entity(step: JournaledTransition) -> _SpanParent:
    """What never ends (a policy, a decision) is in the trace of whoever caused it: a run finds there what it asked."""
    if step.cause:
        return _new_span_parent(step.cause, span_id_in(step.cause), step.entity_id, step.run_id)
    return _own_span_parent(step, 1)


def _transition(step: JournaledTransition, stand: _SpanParent, begin_us: int, *, has_failed: bool) -> EncodedSpan:
    own_id = transition_id(stand.traceparent, step.entity_id, step.seq)
    names = (step.kind, step.event, step.source, step.target, step.project, step.actor)
    template = _transition_template(*names, is_error=has_failed and step.source != step.target)
    parts = [stand.shared, template, encoded("pointsman.seq", step.seq)]
    if own_id != stand.parent_id:
        parts += parent(stand.parent_id)
    if step.cause and (cause_id := span_id_in(step.cause)) != stand.parent_id:
        parts += link(trace_id_in(step.cause), cause_id)
    return stand.traceparent, written(own_id, begin_us * 1000, step.at_us * 1000, parts)


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
    return common(SpanTemplate("", f"{kind} {event}", Kind.INTERNAL, attributes, is_error))


def _entity_span(step: JournaledTransition, *, has_failed: bool) -> EncodedSpan:
    outer = step.outer or new_traceparent(step.entity_id, step.created_at_us)
    own_id, parent_id = transition_id(outer, step.entity_id, 0), span_id_in(outer)
    attributes = (
        ("pointsman.entity.id", step.entity_id),
        ("pointsman.entity.kind", step.kind),
        ("pointsman.state.to", step.target),
        ("pointsman.project", step.project),
        ("pointsman.run.id", step.run_id),
    )
    parts = [trace(outer), common(SpanTemplate("", step.kind, Kind.SERVER, attributes, has_failed))]
    if own_id != parent_id:
        parts += parent(parent_id)
    return outer, written(own_id, step.created_at_us * 1000, step.at_us * 1000, parts)
