"""Trace context in and out, span ids that can be derived again, and logs that name their trace."""

import hashlib
import logging
import re
import secrets
import sys
from contextvars import ContextVar

import structlog

TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

current_traceparent: ContextVar[str] = ContextVar("current_traceparent", default="")


def new_traceparent(entity_id: str) -> str:
    """A trace of an entity's own, whose root is the entity's span."""
    return f"00-{secrets.token_hex(16)}-{transition_span_id(entity_id, 0)}-01"


def valid_traceparent(text: str) -> str:
    """The W3C trace context if it is one, else nothing."""
    return text if TRACEPARENT.fullmatch(text) else ""


def transition_span_id(entity_id: str, seq: int) -> str:
    """The span id of a transition: the same however often it is exported."""
    return hashlib.sha256(f"{entity_id}#{seq}".encode()).hexdigest()[:16]


def step_traceparent(traceparent: str, entity_id: str, seq: int) -> str:
    """The context of one transition in its entity's trace."""
    return f"00-{traceparent[3:35]}-{transition_span_id(entity_id, seq)}-{traceparent[53:55]}"


def configure_logs(*, as_json: bool, level: str = "INFO") -> None:
    """Structured logs on standard error, each line with the trace it belongs to."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_trace,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _add_trace(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    traceparent = current_traceparent.get()
    if traceparent:
        entry["trace_id"] = traceparent[3:35]
    return entry
