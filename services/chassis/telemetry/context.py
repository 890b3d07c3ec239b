"""W3C trace context, derived span ids, and the context variables of the current call."""

import hashlib
import re
from contextvars import ContextVar
from typing import Any

from pointsman._shared.otlp import derived_span_id

TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

current_traceparent: ContextVar[str] = ContextVar("current_traceparent", default="")
Transition = tuple[str, str, int]
"""A transition: a context of its trace, its entity id, its seq."""
current_transition: ContextVar[Transition | None] = ContextVar("current_transition", default=None)
"""The transition that the current call has led to; set only while spans are exported."""
current_request: ContextVar[Any] = ContextVar("current_request", default=None)
"""The request, effect or timer that is handled now; log lines take the run id from it."""


def new_traceparent(entity_id: str, created_at_us: int = 0) -> str:
    """The derived trace of an entity; its root is the entity's span."""
    trace_id = hashlib.sha256(f"trace#{entity_id}#{created_at_us}".encode()).hexdigest()[:32]
    return f"00-{trace_id}-{transition_span_id(trace_id, entity_id, 0)}-01"


def valid_traceparent(text: str) -> str:
    """The text if it is a valid W3C traceparent, else an empty string."""
    return text if TRACEPARENT.fullmatch(text) else ""


def transition_span_id(trace_id: str, entity_id: str, seq: int) -> str:
    """The derived span id of a transition, hexadecimal; seq 0 is the span of the entity as a whole.

    The trace id is part of it: many stores have a policy of project `local`, and some back ends need unique span ids.
    """
    return transition_id(f"00-{trace_id}", entity_id, seq).hex()


def transition_id(traceparent: str, entity_id: str, seq: int) -> bytes:
    """The derived span id of a transition in the trace of a context."""
    return derived_span_id(f"{traceparent[3:35]}#{entity_id}#{seq}")


def transition_traceparent(traceparent: str, entity_id: str, seq: int) -> str:
    """The trace context of one transition."""
    return f"00-{traceparent[3:35]}-{transition_id(traceparent, entity_id, seq).hex()}-{traceparent[53:55]}"


def current_parent() -> str | Transition | None:
    """The parent of the current call's span: the caller's span, or the transition that the call has led to."""
    return current_traceparent.get() or current_transition.get()


def current_context() -> str:
    """The trace context of the current call; empty without one."""
    parent = current_parent()
    return transition_traceparent(*parent) if isinstance(parent, tuple) else parent or ""
