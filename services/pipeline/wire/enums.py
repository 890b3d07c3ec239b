"""Maps enums of the domain to the wire and back, by name; the wire adds a prefix."""

from enum import StrEnum
from typing import Any, TypeVar, cast

from pointsman.api.pipeline.v1 import pipeline_pb2, route_pb2, state_pb2
from pointsman.services.pipeline.domain.enums import (
    Disposition,
    Phase,
    PipelineStatus,
    Policy,
    RiskKind,
    RouteSource,
    RouteTarget,
    Severity,
    StageKind,
    StageStatus,
    Verdict,
)

Member = TypeVar("Member", bound=StrEnum)

ENUMS: dict[type[StrEnum], tuple[str, Any]] = {
    Verdict: ("VERDICT", route_pb2.Verdict),
    RouteTarget: ("ROUTE_TARGET", route_pb2.RouteTarget),
    Severity: ("SEVERITY", route_pb2.Severity),
    RouteSource: ("ROUTE_SOURCE", route_pb2.RouteSource),
    StageKind: ("STAGE_KIND", state_pb2.StageKind),
    PipelineStatus: ("PIPELINE_STATE", state_pb2.PipelineState),
    Phase: ("PHASE", state_pb2.Phase),
    StageStatus: ("STAGE_STATUS", state_pb2.StageStatus),
    Policy: ("POLICY", state_pb2.Policy),
    RiskKind: ("RISK_KIND", state_pb2.RiskKind),
    Disposition: ("DISPOSITION", pipeline_pb2.Disposition),
}
"""Each enum of the domain, with the prefix and the enum of the wire."""

_TO_WIRE: dict[type[StrEnum], dict[str, int]] = {
    domain: {member: wire.Value(f"{prefix}_{member.name}") for member in domain}
    for domain, (prefix, wire) in ENUMS.items()
}
_FROM_WIRE: dict[type[StrEnum], dict[int, StrEnum]] = {
    domain: {_TO_WIRE[domain][member]: member for member in domain} for domain in ENUMS
}


def to_wire(member: StrEnum | None) -> Any:
    """The wire's number of a member; UNSPECIFIED for None."""
    return 0 if member is None else _TO_WIRE[type(member)][member]


def from_wire(domain: type[Member], number: int) -> Member | None:
    """The member of a number; None for UNSPECIFIED."""
    return cast("Member | None", _FROM_WIRE[domain].get(number))
