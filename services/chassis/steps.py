"""What the span of a transition is: told from the journal alone, so that it is the same whoever asks, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from pointsman.otlp.noted import Kind, Noted, Sort
from pointsman.services.chassis.machine import Machine
from pointsman.services.chassis.telemetry import new_traceparent, step_traceparent, transition_span_id

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

    def ends(self, kind: str) -> bool:
        """Whether entities of the kind come to an end."""
        return bool(self.terminal.get(kind))


def noted_of(step: Step, kinds: Kinds) -> list[Noted]:
    """A transition's span and, where its entity ends or passes into a run, the span of the entity as a whole."""
    spans = [_transition(step, kinds)]
    terminal = kinds.terminal.get(step.kind)
    if terminal:
        ended = step.source != step.target and step.target in terminal
        if _joins_a_run(step) or (ended and _is_on_its_own(step)):
            spans.append(_whole(step))
    return spans


def trace_of(step: Step, kinds: Kinds) -> str:
    """The trace that a transition is in, as the context of its parent.

    The run's, where its entity belongs to one; else the entity's own; for what never ends (a policy, a decision) the
    trace of whoever caused it, so that a run finds there what it has asked.
    """
    ends = kinds.ends(step.kind)
    if not ends and step.cause:
        return step.cause
    if ends and not _is_on_its_own(step):
        return _place(step.owner, step.run_id, 0)
    return _place(step.outer or _own_trace(step.entity_id, step.created_at_us), step.entity_id, 0 if ends else 1)


_own_trace = lru_cache(4096)(new_traceparent)
_place = lru_cache(4096)(step_traceparent)


def _is_on_its_own(step: Step) -> bool:
    """Whether its entity is its own root; an entity whose run's trace nobody has named stays on its own."""
    return step.run_id in ("", step.entity_id) or not step.owner


def _joins_a_run(step: Step) -> bool:
    """Whether the entity stood on its own up to this step and belongs to a run from now on."""
    return step.run_before == "" and not _is_on_its_own(step)


def _transition(step: Step, kinds: Kinds) -> Noted:
    parent = trace_of(step, kinds)
    own_id = transition_span_id(parent[3:35], step.entity_id, step.seq)
    begin_us = step.before_us if step.before_us is not None and kinds.ends(step.kind) else step.at_us
    return Noted(
        _transition_sort(step.kind, step.event, step.source, step.target, step.project, step.actor),
        parent,
        own_id,
        begin_us * 1000,
        step.at_us * 1000,
        (("pointsman.entity.id", step.entity_id), ("pointsman.seq", step.seq), ("pointsman.run.id", step.run_id)),
        (step.cause,) if step.cause and step.cause[36:52] != parent[36:52] else (),
        is_root=parent[36:52] == own_id,
    )


@lru_cache(4096)
def _transition_sort(*told: str) -> Sort:
    kind, event, source, target, project, actor = told
    attributes = (
        ("pointsman.entity.kind", kind),
        ("pointsman.event", event),
        ("pointsman.state.from", source),
        ("pointsman.state.to", target),
        ("pointsman.project", project),
        ("pointsman.actor", actor),
    )
    return Sort("", f"{kind} {event}", Kind.INTERNAL, attributes, target in FAILED_STATES and source != target)


def _whole(step: Step) -> Noted:
    outer = step.outer or _own_trace(step.entity_id, step.created_at_us)
    own_id = transition_span_id(outer[3:35], step.entity_id, 0)
    attributes = (
        ("pointsman.entity.id", step.entity_id),
        ("pointsman.entity.kind", step.kind),
        ("pointsman.state.to", step.target),
        ("pointsman.project", step.project),
        ("pointsman.run.id", step.run_id),
    )
    return Noted(
        Sort("", step.kind, Kind.SERVER, attributes, step.target in FAILED_STATES),
        outer,
        own_id,
        step.created_at_us * 1000,
        step.at_us * 1000,
        is_root=outer[36:52] == own_id,
    )
