"""Wires the orchestrator together; `python -m pointsman.services.orchestrator` serves it alone."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from google.protobuf.descriptor import ServiceDescriptor

from pointsman.api.orchestrator.v1 import agent_pb2, artifact_pb2, landing_pb2, mock_pb2, orchestrator_pb2, schedule_pb2
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.tokens import Identity
from pointsman.services.chassis.core.config import PeerSettings, StoreSettings, load
from pointsman.services.chassis.rpc.client import open_channel, open_peer, own_identity
from pointsman.services.chassis.runtime.service import Service, serve_alone
from pointsman.services.chassis.storage.database import Database
from pointsman.services.mock_agents.agents import MockAgents
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from pointsman.services.orchestrator.loops import Engine
from pointsman.services.orchestrator.peers import Channels, Peers
from pointsman.services.orchestrator.servicer import (
    AgentServicer,
    ArtifactServicer,
    LandingServicer,
    MockServicer,
    OrchestratorServicer,
    ScheduleServicer,
)
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.artifacts import Quota
from pointsman.services.orchestrator.store.polling import Limits
from pointsman.services.orchestrator.submit import SubmitMessage

NAME = "orchestrator"
MIGRATIONS = Path(__file__).parent / "migrations"
Servicers = Sequence[tuple[ServiceDescriptor, object]]
LoopList = Sequence[tuple[str, Callable[[], Awaitable[None]]]]


def build(stores: StoreSettings, settings: OrchestratorSettings, peers: PeerSettings) -> Service:
    """The orchestrator on its own store."""
    identity = Identity(CredentialFolder.of(stores.directory), CredentialRole.SERVICE)
    return build_on(Database(stores.url_for(NAME), NAME), settings, peers, identity=identity)


def build_on(
    database: Database,
    settings: OrchestratorSettings,
    peers: PeerSettings,
    mocks: MockSettings | None = None,
    identity: Identity | None = None,
) -> Service:
    """The orchestrator on a given database; with mock agents where they are switched on."""
    own = identity or own_identity(CredentialRole.SERVICE)
    quota = Quota(settings.max_project_artifact_bytes, settings.max_principal_artifact_bytes)
    limits = Limits(settings.max_project_leases, settings.max_leases, settings.max_principal_leases)
    store = OrchestratorStore(database, settings.lease_seconds, settings.present_seconds, limits)
    channels = Channels(*(open_peer(one, own) for one in (peers.router, peers.workflow, peers.pipeline)))
    clients = Peers(channels)
    engine = Engine(store, clients, settings)
    mock_settings = mocks or MockSettings()
    policy = mock_settings.policy()
    agents = MockAgents(
        lambda agent_id: open_channel(peers.orchestrator, identity=replace(own, agent_id=agent_id)),
        policy,
        slow_seconds=settings.lease_seconds / 2,
    )

    async def close() -> None:
        await engine.effects.close()
        for channel in (channels.router, channels.workflow, channels.pipeline):
            await channel.close()
        await agents.close()

    servicers: list[tuple[ServiceDescriptor, object]] = [
        (_service(orchestrator_pb2, "OrchestratorService"), OrchestratorServicer(store, clients, settings)),
        (_service(agent_pb2, "AgentService"), AgentServicer(store)),
        (
            _service(artifact_pb2, "ArtifactService"),
            ArtifactServicer(store, settings.max_artifact_bytes, quota),
        ),
        (_service(landing_pb2, "LandingService"), LandingServicer(store)),
        (
            _service(schedule_pb2, "ScheduleService"),
            ScheduleServicer(store, SubmitMessage(store, clients, settings), settings),
        ),
        (_service(mock_pb2, "MockService"), MockServicer(policy) if mock_settings.offers_policy else object()),
    ]
    return Service(NAME, store.store, MIGRATIONS, servicers, (*engine.loops, *agents.loops), close)


def _service(module: object, name: str) -> ServiceDescriptor:
    found: ServiceDescriptor = module.DESCRIPTOR.services_by_name[name]  # type: ignore[attr-defined]
    return found


def main() -> None:
    """Serves until the process receives a stop signal."""
    serve_alone(
        lambda address: [build(load(StoreSettings), load(OrchestratorSettings), load(PeerSettings).all_at(address))]
    )


if __name__ == "__main__":
    main()
