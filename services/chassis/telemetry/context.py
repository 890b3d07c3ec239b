"""Trace context in and out, span ids that can be derived again, and what is being done just now."""

import hashlib
import re
from contextvars import ContextVar
from typing import Any

from pointsman._shared.otlp import derived_span_id

TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

current_traceparent: ContextVar[str] = ContextVar("current_traceparent", default="")
Transition = tuple[str, str, int]
"""A context of its trace, its entity, its seq."""
current_transition: ContextVar[Transition | None] = ContextVar("current_step", default=None)
"""The transition that what is done now has led to, where spans are exported."""
current_request: ContextVar[Any] = ContextVar("current_request", default=None)
"""What is being done: a request, an effect or a timer; a log line names the run that it is about."""


def new_traceparent(entity_id: str, born_us: int = 0) -> str:
    """The trace of an entity's own, whose root is the entity's span; the same whenever it is asked for."""
    trace_id = hashlib.sha256(f"trace#{entity_id}#{born_us}".encode()).hexdigest()[:32]
    return f"00-{trace_id}-{transition_span_id(trace_id, entity_id, 0)}-01"


def valid_traceparent(text: str) -> str:
    """The W3C trace context if it is one, else nothing."""
    return text if TRACEPARENT.fullmatch(text) else ""


def transition_span_id(trace_id: str, entity_id: str, seq: int) -> str:
    """The span id of a transition: the same however often it is exported; 0 is the entity as a whole.

    The trace is part of it: many stores have a policy of project `local`, and some back ends want ids that differ.
    """
    return transition_id(f"00-{trace_id}", entity_id, seq).hex()


def transition_id(traceparent: str, entity_id: str, seq: int) -> bytes:
    """The span id of a transition in the trace of a context, as spans hold it."""
    return derived_span_id(f"{traceparent[3:35]}#{entity_id}#{seq}")


def transition_traceparent(traceparent: str, entity_id: str, seq: int) -> str:
    """The context of one transition in its entity's trace."""
    return f"00-{traceparent[3:35]}-{transition_id(traceparent, entity_id, seq).hex()}-{traceparent[53:55]}"


def current_parent() -> str | Transition | None:
    """Where what is done now stands: below what its caller named, else below the transition that it has led to."""
    return current_traceparent.get() or current_transition.get()


def current_context() -> str:
    """The context of what is done now, if it belongs to a trace."""
    place = current_parent()
    return transition_traceparent(*place) if isinstance(place, tuple) else place or ""
