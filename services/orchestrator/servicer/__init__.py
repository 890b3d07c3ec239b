"""The orchestrator's services: decode, one call of the store, encode."""

from pointsman.services.orchestrator.servicer.agents import AgentServicer
from pointsman.services.orchestrator.servicer.artifacts import ArtifactServicer
from pointsman.services.orchestrator.servicer.landing import LandingServicer
from pointsman.services.orchestrator.servicer.mocks import MockServicer
from pointsman.services.orchestrator.servicer.runs import OrchestratorServicer
from pointsman.services.orchestrator.servicer.schedules import ScheduleServicer

__all__ = [
    "AgentServicer",
    "ArtifactServicer",
    "LandingServicer",
    "MockServicer",
    "OrchestratorServicer",
    "ScheduleServicer",
]
