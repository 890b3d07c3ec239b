"""The words of the domain and the enums of the wire: the same names, the wire's with a prefix."""

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

Word = TypeVar("Word", bound=StrEnum)

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
    words: {word: enum.Value(f"{prefix}_{word.name}") for word in words} for words, (prefix, enum) in ENUMS.items()
}
_FROM_WIRE: dict[type[StrEnum], dict[int, StrEnum]] = {
    words: {_TO_WIRE[words][word]: word for word in words} for words in ENUMS
}


def to_wire(word: StrEnum | None) -> Any:
    """The wire's number of a word; nothing is UNSPECIFIED."""
    return 0 if word is None else _TO_WIRE[type(word)][word]


def from_wire(words: type[Word], number: int) -> Word | None:
    """The word of a number; UNSPECIFIED is nothing."""
    return cast("Word | None", _FROM_WIRE[words].get(number))
