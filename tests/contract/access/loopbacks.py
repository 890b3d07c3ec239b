"""The whole control plane with the credentials of its data directory, and callers of every role."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest

from pointsman.credentials.folder import CredentialFolder
from pointsman.services.chassis.core.config import PeerSettings, ServerSettings
from pointsman.services.chassis.runtime.service import Running, Service, start
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from tests.helpers.loopback import INSECURE, open_as
from tests.scenarios.planes import NOBODY, Plane, builder, clients


@dataclass(slots=True)
class Loopback:
    """A running control plane that asks everybody for a token of its data directory."""

    running: Running
    gateway: GatewayServer
    data: Path
    channels: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def folder(self) -> CredentialFolder:
        """Its credentials."""
        return CredentialFolder.of(self.data)

    async def channel(self, name: str = "operator", *, tcp: bool = False) -> grpc.aio.Channel:
        """A channel that shows a token: `coder`, or `coder/box-1`."""
        address = self.running.address if tcp else self.running.local_address
        return await self.channels.enter_async_context(open_as(self.data, address, name))

    async def acting_as(self, name: str = "operator") -> Plane:
        """Clients that show a token."""
        return clients(await self.channel(name))

    async def bare(self, *, tcp: bool = False) -> grpc.aio.Channel:
        """A channel that shows nothing: over the socket, or over TLS to the pinned certificate."""
        if not tcp:
            channel = grpc.aio.insecure_channel(self.running.local_address)
        else:
            pinned = grpc.ssl_channel_credentials(self.folder.authority.read_bytes())
            channel = grpc.aio.secure_channel(self.running.address, pinned)
        return await self.channels.enter_async_context(channel)


@asynccontextmanager
async def loopback(
    data: Path, monkeypatch: pytest.MonkeyPatch, mocks: MockSettings = NOBODY, port: int = 0
) -> AsyncIterator[Loopback]:
    """Four services and the gateway in this process, as `pointsman up` starts them."""
    for name in INSECURE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POINTSMAN_DATA", str(data))
    folder = CredentialFolder.of(data)
    folder.make()
    gateway = GatewayServer(GatewaySettings(port=0), folder)

    def build(address: str) -> Sequence[Service]:
        services = builder(data, mocks, OrchestratorSettings())(address)
        return [*services, gateway.service(PeerSettings().all_at(address))]

    running = await start(build, ServerSettings(port=port, drain_seconds=0.2), data)
    there = Loopback(running, gateway, data)
    try:
        async with there.channels:
            yield there
    finally:
        await running.stop()
