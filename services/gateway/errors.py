"""Refusals as HTTP responses: a status and one JSON schema."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from pointsman._shared.redaction import redact
from pointsman.services.chassis.core.errors import Code, Reason, Refusal, Violation

JSON = "application/json"
CLOSE: Mapping[str, str] = {"Connection": "close"}
HTTP_STATUS: Mapping[Code, int] = {
    Code.INVALID_ARGUMENT: 400,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.ABORTED: 409,
    Code.FAILED_PRECONDITION: 409,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.INTERNAL: 500,
    Code.UNIMPLEMENTED: 501,
    Code.UNAVAILABLE: 503,
    Code.DEADLINE_EXCEEDED: 504,
}


class Rejected(Refusal):
    """A refusal with its own HTTP status: 403, 404, 405, 408, 413, 415, 429, 431."""

    def __init__(self, status: int, reason: Reason, message: str, headers: Mapping[str, str] | None = None) -> None:
        """A refusal with a status and headers."""
        violations = (Violation("body", message),) if reason is Reason.INVALID_FIELD else ()
        super().__init__(reason, message, violations=violations)
        self.status = status
        self.headers = dict(headers or {})


def head_too_long(limit_bytes: int) -> Rejected:
    """The refusal of a request whose URL and headers exceed the limit."""
    return Rejected(
        431,
        Reason.MALFORMED_MESSAGE,
        f"headers and URL take more than {limit_bytes} bytes; send less, or raise POINTSMAN_GATEWAY_MAX_HEADER_BYTES",
        CLOSE,
    )


def body_of(refusal: Refusal) -> dict[str, Any]:
    """The refusal as JSON."""
    error: dict[str, Any] = {
        "code": refusal.code.value,
        "reason": refusal.reason.value,
        "message": redact(refusal.message),
        "metadata": {name: redact(value) for name, value in refusal.metadata.items()},
        "violations": [
            {"field": redact(one.field), "description": redact(one.description)} for one in refusal.violations
        ],
    }
    if refusal.retry_after_seconds is not None:
        error["retry_after_seconds"] = refusal.retry_after_seconds
    return {"error": error}


def response_of(refusal: Refusal) -> Response:
    """The refusal as a response."""
    status = refusal.status if isinstance(refusal, Rejected) else HTTP_STATUS[refusal.code]
    headers = dict(refusal.headers) if isinstance(refusal, Rejected) else {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.retry_after_seconds is not None:
        headers["Retry-After"] = str(math.ceil(refusal.retry_after_seconds))
    return Response(msgspec.json.encode(body_of(refusal)), status, headers, JSON)
