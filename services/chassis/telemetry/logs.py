"""Logs: one line per event on standard error, JSON or for people, with its trace and its run, without secrets."""

import logging
import sys
from typing import Any

import structlog

from pointsman._shared.redaction import redact
from pointsman.services.chassis.telemetry.context import current_context, current_request

OTHERS = ("asyncio", "grpc", "opentelemetry", "pointsman._shared.otlp", "psycopg", "sqlalchemy", "urllib3")
"""Libraries that log by themselves what an operator has to see, and whose lines would pass unmasked by themselves."""
MAX_TEXT = 500
MAX_STORY = 20_000
"""Letters of a value in a line, and of the story of an exception."""


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


def logs_are_json() -> bool:
    """In which form this process logs, for one that it starts."""
    if not structlog.is_configured():
        return not sys.stderr.isatty()
    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)


def add_context(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Say in which trace and for which run this happens."""
    traceparent = current_context()
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
    return {
        redact(name): _hidden(value, MAX_STORY if name == "exception" else MAX_TEXT) for name, value in entry.items()
    }


def _hidden(value: Any, limit: int) -> Any:
    """Masked, then cut: a secret of which a part was cut off does not look like one any more."""
    if isinstance(value, dict):
        return {redact(str(name)): _hidden(item, limit) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_hidden(item, limit) for item in value]
    return value if isinstance(value, bool | int | float | None) else redact(str(value))[:limit]


class _Forward(logging.Handler):
    """Passes a library's lines on, in our form."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        log = structlog.get_logger()
        told = {"library": record.name, "message": record.getMessage(), "exc_info": record.exc_info}
        log.log(record.levelno, "library", **told)
