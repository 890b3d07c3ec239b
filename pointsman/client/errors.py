"""What a call can fail with; the type says whether trying again can help.

CallFailed
├── TerminalError         the same request fails again
│   ├── InvalidRequest    a field breaks its constraint
│   ├── NotFound          no such thing in this project
│   ├── AlreadyExists     the id, or the request_id with another body, is taken
│   ├── StateForbids      the state does not allow it; metadata says which state and what it allows
│   ├── NotAllowed        credentials are missing, or their roles are too few
│   ├── ServerFault       a bug in the server; metadata has the id under which its log explains it
│   └── WrongContent      a fetched artifact is not the one that was named
└── RetryableError        the same request, with the same request_id, may succeed later; the client has tried already
    ├── LostRace          another writer was faster
    ├── Overloaded        over a limit; `retry_after_seconds` says when to come again
    └── Unavailable       out of reach, or the deadline passed
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc
from google.rpc import error_details_pb2, status_pb2

DETAILS_KEY = "grpc-status-details-bin"


@dataclass(frozen=True, slots=True)
class Violation:
    """A field at fault, and why."""

    field: str
    description: str


@dataclass(eq=False)
class CallFailed(Exception):
    """A call that was refused, or whose outcome is unknown."""

    reason: str
    """Name of an ErrorReason without its prefix; empty when the server did not say."""
    code: grpc.StatusCode
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    retry_after_seconds: float | None = None

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"


class TerminalError(CallFailed):
    """The same request fails again."""


class RetryableError(CallFailed):
    """The same request may succeed later."""


class InvalidRequest(TerminalError):
    """The request can never succeed."""


class NotFound(TerminalError):
    """No such thing in this project."""


class AlreadyExists(TerminalError):
    """The id is taken, or the request_id was used with another body."""


class StateForbids(TerminalError):
    """The state does not allow it."""


class NotAllowed(TerminalError):
    """The caller may not do this."""


class ServerFault(TerminalError):
    """A bug in the server."""


class WrongContent(TerminalError):
    """A fetched artifact is not the one that was named."""

    def __init__(self, message: str) -> None:
        super().__init__("", grpc.StatusCode.DATA_LOSS, message)


class LostRace(RetryableError):
    """Another writer was faster."""


class Overloaded(RetryableError):
    """The server is over a limit."""


class Unavailable(RetryableError):
    """The server is out of reach, or did not answer in time."""


_BY_CODE: Mapping[grpc.StatusCode, type[CallFailed]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: StateForbids,
    grpc.StatusCode.ABORTED: LostRace,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: Unavailable,
    grpc.StatusCode.CANCELLED: Unavailable,
    grpc.StatusCode.UNAUTHENTICATED: NotAllowed,
    grpc.StatusCode.PERMISSION_DENIED: NotAllowed,
}


def failure_from(error: grpc.aio.AioRpcError) -> CallFailed:
    """The exception that a failed call raises, with the details that the server attached."""
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            status.ParseFromString(value)
    return failure_of(status, error.code(), error.details() or "")


def class_of(code: grpc.StatusCode) -> type[CallFailed]:
    """The kind of exception for a code."""
    return _BY_CODE.get(code, ServerFault)


def failure_of(status: status_pb2.Status, code: grpc.StatusCode, message: str) -> CallFailed:
    """The exception for a code, with the details of a status."""
    info, request, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    for detail in status.details:
        for known in (info, request, retry):
            detail.Unpack(known)
    return class_of(code)(
        reason=info.reason,
        code=code,
        message=message,
        metadata=dict(info.metadata),
        violations=tuple(Violation(item.field, item.description) for item in request.field_violations),
        retry_after_seconds=retry.retry_delay.ToTimedelta().total_seconds() if retry.HasField("retry_delay") else None,
    )
