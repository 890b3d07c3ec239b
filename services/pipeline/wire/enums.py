"""Maps enums of the domain to the wire and back, by name; the wire adds a prefix."""

from pointsman.api.pipeline.v1 import pipeline_pb2, route_pb2, state_pb2
from pointsman.services.chassis.rpc.enum_map import EnumMap
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

VERDICT = EnumMap(route_pb2.Verdict, Verdict)
ROUTE_TARGET = EnumMap(route_pb2.RouteTarget, RouteTarget)
SEVERITY = EnumMap(route_pb2.Severity, Severity)
ROUTE_SOURCE = EnumMap(route_pb2.RouteSource, RouteSource)
STAGE_KIND = EnumMap(state_pb2.StageKind, StageKind)
PIPELINE_STATE = EnumMap(state_pb2.PipelineState, PipelineStatus)
PHASE = EnumMap(state_pb2.Phase, Phase)
STAGE_STATUS = EnumMap(state_pb2.StageStatus, StageStatus)
POLICY = EnumMap(state_pb2.Policy, Policy)
RISK_KIND = EnumMap(state_pb2.RiskKind, RiskKind)
DISPOSITION = EnumMap(pipeline_pb2.Disposition, Disposition)
