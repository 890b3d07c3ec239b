"""Structured logs on standard error, as JSON or text, with trace id and run id, secrets masked."""

import logging
import sys
from typing import Any

import structlog

from pointsman._shared.redaction import redact
from pointsman.services.chassis.telemetry.context import current_context, current_request

LIBRARY_LOGGERS = (
    "asyncio", "grpc", "opentelemetry", "pointsman._shared.otlp", "pointsman.worker", "psycopg", "sqlalchemy", "urllib3",
)  # fmt: skip
"""Loggers of libraries that operators need; their lines go through our processors, so that secrets are masked."""
MAX_VALUE_CHARACTERS = 500
MAX_EXCEPTION_CHARACTERS = 20_000


def configure_logs(*, as_json: bool, level: str = "INFO") -> None:
    """Configure structlog and the loggers of libraries."""
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
    for name in LIBRARY_LOGGERS:
        library = logging.getLogger(name)
        library.handlers = [_ForwardingHandler()]
        library.propagate = False


def logs_are_json() -> bool:
    """Whether this process logs JSON; a child process logs in the same form."""
    if not structlog.is_configured():
        return not sys.stderr.isatty()
    return isinstance(structlog.get_config()["processors"][-1], structlog.processors.JSONRenderer)


def add_context(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Add trace_id, span_id and run_id of the current call."""
    traceparent = current_context()
    if traceparent:
        entry.setdefault("trace_id", traceparent[3:35])
        entry.setdefault("span_id", traceparent[36:52])
    run_id = run_of(current_request.get())
    if run_id:
        entry.setdefault("run_id", run_id)
    return entry


def run_of(subject: Any) -> str:
    """The run id of a request, an effect or a timer; empty without one."""
    named = getattr(subject, "run_id", "") or getattr(subject, "entity_id", "")
    if named:
        return str(named)
    for held in (*getattr(subject, "completions", ()), *getattr(subject, "failures", ())):
        return str(held.lease.assignment_id).rpartition(".")[0]
    return ""


def hide_secrets(_logger: object, _method: str, entry: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Mask secrets in all names and values of a log line."""
    return {
        redact(name): _masked(value, MAX_EXCEPTION_CHARACTERS if name == "exception" else MAX_VALUE_CHARACTERS)
        for name, value in entry.items()
    }


def _masked(value: Any, limit: int) -> Any:
    """Mask, then truncate: a truncated secret would no longer be recognized."""
    if isinstance(value, dict):
        return {redact(str(name)): _masked(item, limit) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_masked(item, limit) for item in value]
    return value if isinstance(value, bool | int | float | None) else redact(str(value))[:limit]


class _ForwardingHandler(logging.Handler):
    """Forwards a library's log records to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Forward one record."""
        log = structlog.get_logger()
        fields = {"library": record.name, "message": record.getMessage(), "exc_info": record.exc_info}
        log.log(record.levelno, "library", **fields)
