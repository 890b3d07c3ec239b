"""What the span of a transition is: told from the journal alone, so that it is the same whoever asks, and when."""

from functools import lru_cache
from typing import NamedTuple

from pointsman.otlp.noted import Kind, Sort, span_id_in, trace_id_in
from pointsman.otlp.span import common, encoded, link, parent, trace, written
from pointsman.services.chassis.telemetry import new_traceparent, transition_id
from pointsman.services.chassis.traced import Kinds, Step

FAILED_STATES = frozenset({"FAILED", "failed", "ABORTED"})


Told = tuple[str, bytes]
"""A context of a span's trace, by which it is sampled, and the span as it is sent."""


def spans_of(step: Step, kinds: Kinds) -> list[Told]:
    """A transition's span and, where its entity ends or passes into a run, the span of the entity as a whole."""
    terminal = kinds.terminal.get(step.kind)
    if not terminal:
        return [_transition(step, _stand_of_endless(step), step.at_us)]
    on_its_own = step.run_id in ("", step.entity_id) or not step.owner
    stand = _own_stand(step, 0) if on_its_own else _stand(step.owner, step.run_id, 0, step.entity_id, step.run_id)
    spans = [_transition(step, stand, step.at_us if step.before_us is None else step.before_us)]
    ends = step.source != step.target and step.target in terminal
    joins_a_run = step.run_before == ""
    if ends if on_its_own else joins_a_run:
        spans.append(_whole(step))
    return spans


class _Stand(NamedTuple):
    """Where transitions stand, and what their spans share: written once as long as their entity stays there."""

    traceparent: str
    parent_id: bytes
    shared: bytes


@lru_cache(4096)
def _stand(traceparent: str, above_id: str, above_seq: int, entity_id: str, run_id: str) -> _Stand:
    """Below the span of an entity, or of one of its transitions."""
    return _new_stand(traceparent, transition_id(traceparent, above_id, above_seq), entity_id, run_id)


def _new_stand(traceparent: str, parent_id: bytes, entity_id: str, run_id: str) -> _Stand:
    names = encoded("pointsman.entity.id", entity_id) + encoded("pointsman.run.id", run_id)
    return _Stand(traceparent, parent_id, trace(traceparent) + names)


def _own_stand(step: Step, seq: int) -> _Stand:
    """In the entity's own trace: where it belongs to no run, or nobody has named the trace of its run."""
    traceparent = step.outer or _own_trace(step.entity_id, step.created_at_us)
    return _stand(traceparent, step.entity_id, seq, step.entity_id, step.run_id)


_own_trace = lru_cache(4096)(new_traceparent)


def _stand_of_endless(step: Step) -> _Stand:
    """What never ends (a policy, a decision) is in the trace of whoever caused it: a run finds there what it asked."""
    if step.cause:
        return _new_stand(step.cause, span_id_in(step.cause), step.entity_id, step.run_id)
    return _own_stand(step, 1)


def _transition(step: Step, stand: _Stand, begin_us: int) -> Told:
    own_id = transition_id(stand.traceparent, step.entity_id, step.seq)
    sort = _transition_sort(step.kind, step.event, step.source, step.target, step.project, step.actor)
    parts = [stand.shared, sort, encoded("pointsman.seq", step.seq)]
    if own_id != stand.parent_id:
        parts += parent(stand.parent_id)
    if step.cause and (cause_id := span_id_in(step.cause)) != stand.parent_id:
        parts += link(trace_id_in(step.cause), cause_id)
    return stand.traceparent, written(own_id, begin_us * 1000, step.at_us * 1000, parts)


@lru_cache(4096)
def _transition_sort(*told: str) -> bytes:
    kind, event, source, target, project, actor = told
    attributes = (
        ("pointsman.entity.kind", kind),
        ("pointsman.event", event),
        ("pointsman.state.from", source),
        ("pointsman.state.to", target),
        ("pointsman.project", project),
        ("pointsman.actor", actor),
    )
    return common(Sort("", f"{kind} {event}", Kind.INTERNAL, attributes, target in FAILED_STATES and source != target))


def _whole(step: Step) -> Told:
    outer = step.outer or new_traceparent(step.entity_id, step.created_at_us)
    own_id, parent_id = transition_id(outer, step.entity_id, 0), span_id_in(outer)
    attributes = (
        ("pointsman.entity.id", step.entity_id),
        ("pointsman.entity.kind", step.kind),
        ("pointsman.state.to", step.target),
        ("pointsman.project", step.project),
        ("pointsman.run.id", step.run_id),
    )
    sort = Sort("", step.kind, Kind.SERVER, attributes, step.target in FAILED_STATES)
    parts = [trace(outer), common(sort)]
    if own_id != parent_id:
        parts += parent(parent_id)
    return outer, written(own_id, step.created_at_us * 1000, step.at_us * 1000, parts)
