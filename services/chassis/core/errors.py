"""How a command is refused: one exception, a closed list of reasons, one gRPC code for each. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """The gRPC status codes that a refusal may carry."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    ABORTED = "ABORTED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    UNAVAILABLE = "UNAVAILABLE"
    INTERNAL = "INTERNAL"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"


class Reason(StrEnum):
    """The names of common.proto's ErrorReason, without their prefix."""

    MALFORMED_MESSAGE = "MALFORMED_MESSAGE"
    INVALID_FIELD = "INVALID_FIELD"
    NOT_FOUND = "NOT_FOUND"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    LOST_RACE = "LOST_RACE"
    OVERLOADED = "OVERLOADED"
    UNAVAILABLE = "UNAVAILABLE"
    INTERNAL = "INTERNAL"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    INVALID_PAGE_TOKEN = "INVALID_PAGE_TOKEN"
    WATCHER_TOO_SLOW = "WATCHER_TOO_SLOW"
    STATE_FORBIDS = "STATE_FORBIDS"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    UNKNOWN_VERSION = "UNKNOWN_VERSION"
    OVERRIDE_REFUSED = "OVERRIDE_REFUSED"
    INVALID_RULE = "INVALID_RULE"
    LEASE_LOST = "LEASE_LOST"
    WORKFLOW_OWNED = "WORKFLOW_OWNED"
    AUDIT_NOT_PASSED = "AUDIT_NOT_PASSED"
    RETRIES_EXHAUSTED = "RETRIES_EXHAUSTED"
    INVALID_DAG = "INVALID_DAG"
    NOT_YOUR_DELEGATION = "NOT_YOUR_DELEGATION"
    RETURN_PENDING = "RETURN_PENDING"
    NOT_ADDRESSED = "NOT_ADDRESSED"


CODE_OF: Mapping[Reason, Code] = {
    Reason.MALFORMED_MESSAGE: Code.INVALID_ARGUMENT,
    Reason.INVALID_FIELD: Code.INVALID_ARGUMENT,
    Reason.NOT_FOUND: Code.NOT_FOUND,
    Reason.REQUEST_ID_REUSED: Code.ALREADY_EXISTS,
    Reason.LOST_RACE: Code.ABORTED,
    Reason.OVERLOADED: Code.RESOURCE_EXHAUSTED,
    Reason.UNAVAILABLE: Code.UNAVAILABLE,
    Reason.INTERNAL: Code.INTERNAL,
    Reason.UNIMPLEMENTED: Code.UNIMPLEMENTED,
    Reason.UNAUTHENTICATED: Code.UNAUTHENTICATED,
    Reason.PERMISSION_DENIED: Code.PERMISSION_DENIED,
    Reason.DEADLINE_EXCEEDED: Code.DEADLINE_EXCEEDED,
    Reason.INVALID_PAGE_TOKEN: Code.INVALID_ARGUMENT,
    Reason.WATCHER_TOO_SLOW: Code.ABORTED,
    Reason.STATE_FORBIDS: Code.FAILED_PRECONDITION,
    Reason.ALREADY_EXISTS: Code.ALREADY_EXISTS,
    Reason.UNKNOWN_VERSION: Code.FAILED_PRECONDITION,
    Reason.OVERRIDE_REFUSED: Code.FAILED_PRECONDITION,
    Reason.INVALID_RULE: Code.INVALID_ARGUMENT,
    Reason.LEASE_LOST: Code.FAILED_PRECONDITION,
    Reason.WORKFLOW_OWNED: Code.FAILED_PRECONDITION,
    Reason.AUDIT_NOT_PASSED: Code.FAILED_PRECONDITION,
    Reason.RETRIES_EXHAUSTED: Code.FAILED_PRECONDITION,
    Reason.INVALID_DAG: Code.INVALID_ARGUMENT,
    Reason.NOT_YOUR_DELEGATION: Code.FAILED_PRECONDITION,
    Reason.RETURN_PENDING: Code.FAILED_PRECONDITION,
    Reason.NOT_ADDRESSED: Code.PERMISSION_DENIED,
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One invalid field: where it is, as a path of proto field names, and what to do about it."""

    field: str
    description: str


class Refusal(Exception):
    """A command is refused: nothing was changed, and the caller learns why."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: tuple[Violation, ...] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        """Say why, for people (message) and for programs (reason, metadata, violations)."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})
        self.violations = violations
        self.retry_after_seconds = retry_after_seconds

    @property
    def code(self) -> Code:
        """The gRPC status code of the reason."""
        return CODE_OF[self.reason]


def not_found(kind: str, entity_id: str) -> Refusal:
    """The one answer for a missing entity and for one of another project."""
    return Refusal(
        Reason.NOT_FOUND, f"no {kind} '{entity_id}' in this project", metadata={"kind": kind, "id": entity_id}
    )


def state_forbids(kind: str, entity_id: str, state: str, allowed: tuple[str, ...], message: str) -> Refusal:
    """The state does not allow the command; the caller learns the state and what it allows."""
    metadata = {"kind": kind, "id": entity_id, "state": state, "allowed": ",".join(allowed)}
    return Refusal(Reason.STATE_FORBIDS, message, metadata=metadata)


def invalid_field(field: str, description: str) -> Refusal:
    """One field of the request cannot be taken; the description says the way out."""
    return invalid_fields((Violation(field, description),))


def invalid_fields(violations: tuple[Violation, ...]) -> Refusal:
    """Every field that cannot be taken, all at once."""
    text = "; ".join(f"{violation.field}: {violation.description}" for violation in violations[:5])
    return Refusal(Reason.INVALID_FIELD, text, metadata={"field": violations[0].field}, violations=violations)
