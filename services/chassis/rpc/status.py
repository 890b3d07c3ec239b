"""Refusals and internal errors as google.rpc.Status with a reason, never with the text of an exception."""

from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from pointsman._shared.redaction import redact
from pointsman.services.chassis.core.errors import Code, Reason, Refusal, Violation
from pointsman.services.chassis.core.ids import new_nonce

DOMAIN = "pointsman"
DROPPED_RETRY_SECONDS = 1.0
"""The retry time of a call that gRPC dropped at the server because its queue was full: such a status has none."""
MAX_STATUS_TEXT = 1000
MAX_METADATA_TEXT = 256
MAX_VIOLATIONS = 50
MAX_STATUS_BYTES = 3 * 1024
"""The whole status: it is in the trailers twice, and clients accept 8 KiB of trailers."""
DETAILS_KEY = "grpc-status-details-bin"

GRPC_CODES = {code: grpc.StatusCode[code.value] for code in Code}


def status_of(refusal: Refusal) -> status_pb2.Status:
    """A refusal as a status: code, text, ErrorInfo, BadRequest and RetryInfo."""
    status = status_pb2.Status(
        code=GRPC_CODES[refusal.code].value[0], message=_truncate(refusal.message, MAX_STATUS_TEXT)
    )
    metadata = {key: _truncate(value, MAX_METADATA_TEXT) for key, value in refusal.metadata.items()}
    info = error_details_pb2.ErrorInfo(reason=refusal.reason.value, domain=DOMAIN, metadata=metadata)
    _attach(status, info)
    if refusal.violations:
        _attach(status, _bad_request(refusal.violations, MAX_STATUS_BYTES - status.ByteSize()))
    if refusal.retry_after_seconds is not None:
        delay = duration_pb2.Duration(nanos=int(refusal.retry_after_seconds * 1e9) % 1_000_000_000)
        delay.seconds = int(refusal.retry_after_seconds)
        _attach(status, error_details_pb2.RetryInfo(retry_delay=delay))
    return status


async def abort(context: grpc.aio.ServicerContext[Any, Any], refusal: Refusal) -> None:
    """End a call with a refusal; one that cannot be encoded becomes an internal error."""
    try:
        status = status_of(refusal)
    except Exception as error:  # noqa: BLE001 - a caller gets neither the exception nor no answer
        refusal = internal_error(error, new_nonce())
        status = status_of(refusal)
    metadata = ((DETAILS_KEY, status.SerializeToString()),)
    await context.abort(GRPC_CODES[refusal.code], status.message, metadata)


def _bad_request(violations: tuple[Violation, ...], limit_bytes: int) -> error_details_pb2.BadRequest:
    """As many violations as fit."""
    request = error_details_pb2.BadRequest()
    for violation in violations[:MAX_VIOLATIONS]:
        request.field_violations.add(
            field=_truncate(violation.field, MAX_METADATA_TEXT),
            description=_truncate(violation.description, MAX_METADATA_TEXT),
        )
        if request.ByteSize() > limit_bytes:
            del request.field_violations[-1]
            break
    return request


def _truncate(text: str, limit_bytes: int) -> str:
    """The text with secrets masked, truncated to so many bytes."""
    return redact(text).encode()[:limit_bytes].decode(errors="ignore")


def refusal_from(error: grpc.aio.AioRpcError) -> Refusal:
    """The refusal that a peer sent; an outage without details becomes UNAVAILABLE.

    The text of the transport is only logged: it contains internal addresses.
    """
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            status.ParseFromString(value)
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    present = {kind.DESCRIPTOR.name for detail in status.details for kind in (info, bad, retry) if detail.Unpack(kind)}
    reason = Reason(info.reason) if info.reason in Reason.__members__ else _reason_of_code(error.code())
    message = redact(error.details() or "")[:MAX_STATUS_TEXT]
    retry_after_seconds = retry.retry_delay.ToTimedelta().total_seconds() if "RetryInfo" in present else None
    if not info.reason and error.code() is grpc.StatusCode.CANCELLED:
        retry_after_seconds = DROPPED_RETRY_SECONDS
    if not info.reason and reason is Reason.UNAVAILABLE:
        _logger().warning("peer_out_of_reach", code=error.code().name, details=message)
        message = "a service that this one needs is out of reach; try again"
    return Refusal(
        reason,
        message,
        metadata=dict(info.metadata),
        violations=tuple(Violation(one.field, one.description) for one in bad.field_violations),
        retry_after_seconds=retry_after_seconds,
    )


def as_received(refusal: Refusal) -> Refusal:
    """A refusal as its status on the wire would carry it: texts masked and truncated."""
    violations = (
        Violation(_truncate(one.field, MAX_METADATA_TEXT), _truncate(one.description, MAX_METADATA_TEXT))
        for one in refusal.violations[:MAX_VIOLATIONS]
    )
    return Refusal(
        refusal.reason,
        _truncate(refusal.message, MAX_STATUS_TEXT),
        metadata={key: _truncate(value, MAX_METADATA_TEXT) for key, value in refusal.metadata.items()},
        violations=tuple(violations),
        retry_after_seconds=refusal.retry_after_seconds,
    )


def internal_error(error: BaseException, error_id: str) -> Refusal:
    """The refusal for an unexpected exception: the caller gets an id, the log has the stack trace under it."""
    _logger().error("internal_error", error_id=error_id, error=type(error).__name__, exc_info=error)
    return Refusal(
        Reason.INTERNAL, f"internal error {error_id}; the server's log explains it", metadata={"error_id": error_id}
    )


def _logger() -> Any:
    """The logger, imported when something is logged: short commands only need what is above."""
    import structlog  # noqa: PLC0415

    return structlog.get_logger()


def _reason_of_code(code: grpc.StatusCode) -> Reason:
    by_code = {
        grpc.StatusCode.INVALID_ARGUMENT: Reason.INVALID_FIELD,
        grpc.StatusCode.NOT_FOUND: Reason.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS: Reason.ALREADY_EXISTS,
        grpc.StatusCode.ABORTED: Reason.LOST_RACE,
        grpc.StatusCode.RESOURCE_EXHAUSTED: Reason.OVERLOADED,
        grpc.StatusCode.FAILED_PRECONDITION: Reason.STATE_FORBIDS,
        grpc.StatusCode.UNIMPLEMENTED: Reason.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED: Reason.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED: Reason.PERMISSION_DENIED,
        grpc.StatusCode.DEADLINE_EXCEEDED: Reason.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL: Reason.INTERNAL,
    }
    return by_code.get(code, Reason.UNAVAILABLE)


def _attach(status: status_pb2.Status, detail: object) -> None:
    packed = any_pb2.Any()
    packed.Pack(detail)  # type: ignore[arg-type]
    status.details.append(packed)
