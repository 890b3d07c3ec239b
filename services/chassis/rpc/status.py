"""Refusals and bugs as the wire shows them: google.rpc.Status with a reason, never an exception's text."""

from typing import Any

import grpc
import structlog
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from pointsman._shared.redaction import redact
from pointsman.services.chassis.core.errors import Code, Reason, Refusal, Violation
from pointsman.services.chassis.core.ids import new_nonce

DOMAIN = "pointsman"
DROPPED_RETRY_SECONDS = 1.0
"""When to come back after a call that gRPC dropped at the other end because too many waited: it says no time itself."""
MAX_STATUS_TEXT = 1000
MAX_METADATA_TEXT = 256
MAX_VIOLATIONS = 50
MAX_STATUS_BYTES = 3 * 1024
"""All of a status: encoded twice in the trailers, it has to stay below the 8 KiB that clients take."""
DETAILS_KEY = "grpc-status-details-bin"

log = structlog.get_logger()

GRPC_CODES = {code: grpc.StatusCode[code.value] for code in Code}


def status_of(refusal: Refusal) -> status_pb2.Status:
    """A refusal as a status: code, short text, ErrorInfo, and what helps the caller to do better."""
    status = status_pb2.Status(code=GRPC_CODES[refusal.code].value[0], message=_cut(refusal.message, MAX_STATUS_TEXT))
    metadata = {key: _cut(value, MAX_METADATA_TEXT) for key, value in refusal.metadata.items()}
    info = error_details_pb2.ErrorInfo(reason=refusal.reason.value, domain=DOMAIN, metadata=metadata)
    _attach(status, info)
    if refusal.violations:
        _attach(status, _bad_request(refusal.violations, MAX_STATUS_BYTES - status.ByteSize()))
    if refusal.retry_after_seconds is not None:
        delay = duration_pb2.Duration(nanos=int(refusal.retry_after_seconds * 1e9) % 1_000_000_000)
        delay.seconds = int(refusal.retry_after_seconds)
        _attach(status, error_details_pb2.RetryInfo(retry_delay=delay))
    return status


def to_status(refusal: Refusal) -> tuple[Refusal, status_pb2.Status]:
    """What is told of a refusal, and its status; one that cannot be written is told as the bug that it is."""
    try:
        return refusal, status_of(refusal)
    except Exception as error:  # noqa: BLE001 - it must not reach the caller as it is, nor leave him without an answer
        refusal = internal_error(error, new_nonce())
        return refusal, status_of(refusal)


async def abort(context: grpc.aio.ServicerContext[Any, Any], refusal: Refusal) -> None:
    """End a call with a refusal."""
    refusal, status = to_status(refusal)
    metadata = ((DETAILS_KEY, status.SerializeToString()),)
    await context.abort(GRPC_CODES[refusal.code], status.message, metadata)


def _bad_request(violations: tuple[Violation, ...], room_bytes: int) -> error_details_pb2.BadRequest:
    """As many of the violations as there is room for."""
    request = error_details_pb2.BadRequest()
    for violation in violations[:MAX_VIOLATIONS]:
        request.field_violations.add(
            field=_cut(violation.field, MAX_METADATA_TEXT), description=_cut(violation.description, MAX_METADATA_TEXT)
        )
        if request.ByteSize() > room_bytes:
            del request.field_violations[-1]
            break
    return request


def _cut(text: str, limit_bytes: int) -> str:
    """The text without secrets, or as much of it as fits into so many bytes."""
    return redact(text).encode()[:limit_bytes].decode(errors="ignore")


def refusal_from(error: grpc.aio.AioRpcError) -> Refusal:
    """What a peer answered, as the refusal it was there; an outage without details becomes UNAVAILABLE.

    What the transport says of an outage stays here: it names addresses that are nobody else's business.
    """
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            status.ParseFromString(value)
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    told = {kind.DESCRIPTOR.name for detail in status.details for kind in (info, bad, retry) if detail.Unpack(kind)}
    reason = Reason(info.reason) if info.reason in Reason.__members__ else _reason_of_code(error.code())
    said = redact(error.details() or "")[:MAX_STATUS_TEXT]
    retry_after_seconds = retry.retry_delay.ToTimedelta().total_seconds() if "RetryInfo" in told else None
    if not info.reason and error.code() is grpc.StatusCode.CANCELLED:
        retry_after_seconds = DROPPED_RETRY_SECONDS
    if not info.reason and reason is Reason.UNAVAILABLE:
        log.warning("peer_out_of_reach", code=error.code().name, details=said)
        said = "a service that this one needs is out of reach; try again"
    return Refusal(
        reason,
        said,
        metadata=dict(info.metadata),
        violations=tuple(Violation(one.field, one.description) for one in bad.field_violations),
        retry_after_seconds=retry_after_seconds,
    )


def internal_error(error: BaseException, error_id: str) -> Refusal:
    """A bug: the log has the whole story under the id, the caller has the id."""
    log.error("bug", error_id=error_id, error=type(error).__name__, exc_info=error)
    return Refusal(
        Reason.INTERNAL, f"internal error {error_id}; the server's log explains it", metadata={"error_id": error_id}
    )


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
