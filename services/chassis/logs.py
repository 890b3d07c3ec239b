"""Logs: one line per event on standard error, JSON or for people, with its trace and its run, without secrets."""

import logging
import sys
from typing import Any

import structlog

from pointsman.redaction import redact
from pointsman.services.chassis.telemetry import current_request, place_now

OTHERS = ("opentelemetry", "pointsman.otlp")
"""Libraries that log by themselves what an operator has to see."""


def configure_logs(*, as_json: bool, level: str = "INFO") -> None:
    """Structured logs on standard error, each line with the trace and the run it belongs to."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_context,
            structlog.processors.format_exc_info,
            hide_secrets,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    for name in OTHERS:
        library = logging.getLogger(name)
        library.handlers = [_Forward()]
        library.propagate = False


def add_context(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Say in which trace and for which run this happens."""
    traceparent = place_now()
    if traceparent:
        entry.setdefault("trace_id", traceparent[3:35])
        entry.setdefault("span_id", traceparent[36:52])
    run_id = run_of(current_request.get())
    if run_id:
        entry.setdefault("run_id", run_id)
    return entry


def run_of(subject: Any) -> str:
    """The run that a request names, or that an effect or a timer belongs to; empty where there is none."""
    named = getattr(subject, "run_id", "") or getattr(subject, "entity_id", "")
    if named:
        return str(named)
    for held in (*getattr(subject, "completions", ()), *getattr(subject, "failures", ())):
        return str(held.lease.assignment_id).rpartition(".")[0]
    return ""


def hide_secrets(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Mask whatever has the shape of a secret, wherever in the line it stands."""
    return {name: _hidden(value) for name, value in entry.items()}


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {name: _hidden(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_hidden(item) for item in value]
    return value if isinstance(value, bool | int | float | None) else redact(str(value))


class _Forward(logging.Handler):
    """Passes a library's lines on, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        log = structlog.get_logger()
        log.log(record.levelno, "library", library=record.name, message=record.getMessage()[:500])
