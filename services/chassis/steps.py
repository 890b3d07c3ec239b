"""What the span of a transition is: told from the journal alone, so that it is the same whoever asks, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from pointsman.otlp.noted import Kind, Sort, span_id_in, trace_id_in
from pointsman.otlp.span import common, encoded, link, place, written
from pointsman.services.chassis.machine import Machine
from pointsman.services.chassis.telemetry import new_traceparent, transition_id

FAILED_STATES = frozenset({"FAILED", "failed", "ABORTED"})


class Step(NamedTuple):
    """One transition with what its span needs; all of it is in the journal, so that it is the same at any time."""

    entity_id: str
    seq: int
    position: int
    kind: str
    project: str
    run_id: str
    event: str
    source: str
    target: str
    actor: str
    at_us: int
    cause: str
    """The context of the call that led to it."""
    before_us: int | None
    """When its entity moved before."""
    run_before: str | None
    """To which run its entity belonged before."""
    created_at_us: int
    outer: str
    """The context of the call that created its entity."""
    owner: str
    """The context of the call that gave its entity to its run."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of entities of a store, as far as spans differ by them."""

    terminal: Mapping[str, frozenset[str]]
    """The states in which each kind ends; a kind that never ends has no span as a whole."""

    @staticmethod
    def of(machines: Sequence[Machine[Any]]) -> "Kinds":
        """From how each kind decides."""
        return Kinds({machine.kind: machine.terminal for machine in machines})


Told = tuple[str, bytes]
"""A context of a span's trace, by which it is sampled, and the span as it is sent."""


def spans_of(step: Step, kinds: Kinds) -> list[Told]:
    """A transition's span and, where its entity ends or passes into a run, the span of the entity as a whole."""
    terminal = kinds.terminal.get(step.kind)
    if not terminal:
        return [_endless(step)]
    on_its_own = step.run_id in ("", step.entity_id) or not step.owner
    context = step.outer if on_its_own else step.owner
    stand = _stand(context, step.entity_id, step.created_at_us, step.run_id, on_its_own)
    own_id = transition_id(stand.traceparent, step.entity_id, step.seq)
    spans = [_transition(step, stand, own_id, step.at_us if step.before_us is None else step.before_us)]
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


def _new_stand(traceparent: str, parent_id: bytes, entity_id: str, run_id: str, *, is_root: bool = False) -> _Stand:
    above = place(traceparent, b"" if is_root else parent_id)
    names = encoded("pointsman.entity.id", entity_id) + encoded("pointsman.run.id", run_id)
    return _Stand(traceparent, parent_id, above + names)


@lru_cache(4096)
def _stand(context: str, entity_id: str, born_us: int, run_id: str, on_its_own: bool) -> _Stand:
    """Below the run, where the entity belongs to one whose trace somebody has named; else below the entity's own span."""
    traceparent = context or new_traceparent(entity_id, born_us)
    parent_id = transition_id(traceparent, entity_id if on_its_own else run_id, 0)
    return _new_stand(traceparent, parent_id, entity_id, run_id)


def _endless(step: Step) -> Told:
    """What never ends (a policy, a decision) is in the trace of whoever caused it: a run finds there what it asked."""
    traceparent = step.cause or step.outer or new_traceparent(step.entity_id, step.created_at_us)
    own_id = transition_id(traceparent, step.entity_id, step.seq)
    parent_id = span_id_in(step.cause) if step.cause else transition_id(traceparent, step.entity_id, 1)
    stand = _new_stand(traceparent, parent_id, step.entity_id, step.run_id, is_root=parent_id == own_id)
    return _transition(step, stand, own_id, step.at_us)


def _transition(step: Step, stand: _Stand, own_id: bytes, begin_us: int) -> Told:
    sort = _transition_sort(step.kind, step.event, step.source, step.target, step.project, step.actor)
    parts = [stand.shared, sort, encoded("pointsman.seq", step.seq)]
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
    parts = (place(outer, b"" if parent_id == own_id else parent_id), common(sort))
    return outer, written(own_id, step.created_at_us * 1000, step.at_us * 1000, parts)
