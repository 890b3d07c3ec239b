"""Builds the router's request from a snapshot of the thinking artifacts, without secrets."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pointsman.api.router.v1 import thinking_pb2 as pb
from pointsman.client.calls import new_request_id
from pointsman.services.router.domain.thinking import (
    Artifact,
    Envelope,
    Latch,
    Snapshot,
    Status,
    is_secret,
    is_secret_name,
)
from pointsman.services.router.wire import enums

MAX_CHECKS = 256
MAX_NAME_LETTERS = 256
SECRET = "://"
"""Stands for a name or a value that looks like a secret: it is judged alike, and reveals nothing."""
ODD_VALUE = "?"
"""Stands for any other value than SET and UNSET."""
_HARMLESS, _ODD, _SECRET = range(3)


def thinking_request(snapshot: Snapshot) -> pb.RouteThinkingRequest:
    """The request for the next step."""
    artifacts = {name.partition(".")[0]: _artifact(artifact) for name, artifact in snapshot.artifacts()}
    wire = pb.ThinkingSnapshot(latch=_latch(snapshot.latch), **artifacts)
    return pb.RouteThinkingRequest(request_id=new_request_id(), snapshot=wire)


def envelope_of(wire: pb.ThinkingEnvelope) -> Envelope:
    """The router's answer as the type that a decision in this process has."""
    return Envelope(
        command=wire.command,
        timestamp=wire.timestamp.ToDatetime(UTC),
        status=enums.ENVELOPE_STATUS.or_default(wire.status, Status.UNKNOWN),
        error_code=enums.THINKING_ERROR_CODE.to_domain(wire.error_code),
        warn=wire.warn,
        missing_inputs=tuple(wire.missing_inputs),
        artifacts_read=tuple(wire.artifacts_read),
        artifacts_written=tuple(wire.artifacts_written),
        routed_to=enums.THINKING_ROUTE.to_domain(wire.routed_to),
        next=wire.next,
        rule=wire.rule,
        reason=wire.reason,
    )


def _latch(latch: Latch) -> pb.Latch:
    wire = pb.Latch(state=enums.ARTIFACT_STATE.to_wire(latch.state), process_alive=latch.process_alive)
    _set_time(wire.created_at, latch.created_at)
    return wire


def _artifact(artifact: Artifact) -> pb.Artifact:
    wire = pb.Artifact(
        state=enums.ARTIFACT_STATE.to_wire(artifact.state),
        status=enums.ENVELOPE_STATUS.to_wire(artifact.status),
        needs=[enums.NEED.to_wire(need) for need in artifact.needs],
        finished=artifact.finished,
        env_check=_checks(artifact.env_check),
    )
    _set_time(wire.created_at, artifact.created_at)
    return wire


def _set_time(wire: Any, at: datetime | None) -> None:
    if at is not None:
        wire.FromDatetime(at)


def _checks(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Names with the verdicts on their values; of a duplicate name, the worse verdict."""
    found: dict[str, tuple[int, str]] = {}
    for name, value in pairs:
        key = SECRET if is_secret_name(name) else name[:MAX_NAME_LETTERS].replace("\0", "")
        weight, shown = _judged(value)
        found[key] = max(found.get(key, (_HARMLESS, "")), (_SECRET if key == SECRET else weight, shown))
    worst_first = sorted(found.items(), key=lambda item: -item[1][0])[:MAX_CHECKS]
    return {name: shown for name, (_, shown) in worst_first}


def _judged(value: str) -> tuple[int, str]:
    if is_secret(value):
        return _SECRET, SECRET
    return (_HARMLESS, value) if value in ("SET", "UNSET") else (_ODD, ODD_VALUE)
