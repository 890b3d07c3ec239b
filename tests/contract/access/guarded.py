"""The whole control plane behind TLS and tokens, and callers that each show one."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.services.chassis.core.config import ClientSettings, ServerSettings
from pointsman.services.chassis.rpc.client import channel_credentials
from pointsman.services.chassis.runtime.service import Service, start
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from tests.helpers.certificates import Authority
from tests.scenarios.planes import NOBODY, Plane, builder, clients


@dataclass(slots=True)
class Guarded:
    """A running control plane that asks everybody for a token."""

    address: str
    authority: Authority
    folder: Path
    services: Sequence[Service]
    channels: AsyncExitStack = field(default_factory=AsyncExitStack)
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def as_principal(
        self, name: str, *roles: str, project: str = "local", capabilities: Sequence[str] = ("*",)
    ) -> Plane:
        """Clients that show a token of this name."""
        token = self.folder / f"{next(self.numbers)}.token"
        granted = {"roles": list(roles), "projects": [project], "capabilities": list(capabilities)}
        token.write_text(self.authority.token({"sub": name, **granted}))
        credentials = channel_credentials(ClientSettings(authority=self.authority.certificate, token=token))
        assert credentials is not None
        channel = grpc.aio.secure_channel(self.address, credentials)
        return clients(await self.channels.enter_async_context(channel))


@asynccontextmanager
async def guarded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, database_url: str = "", mocks: MockSettings = NOBODY, **settings: Any
) -> AsyncIterator[Guarded]:
    """Four services on one server that takes tokens; they show each other one of the role service."""
    (folder / "guarded").mkdir()
    authority = Authority(folder / "guarded")
    pair, own = authority.issue("server"), folder / "guarded" / "own.token"
    own.write_text(authority.token({"sub": "own", "roles": ["service"], "projects": ["*"], "capabilities": ["*"]}))
    monkeypatch.setenv("POINTSMAN_CLIENT_AUTHORITY", str(authority.certificate))
    monkeypatch.setenv("POINTSMAN_CLIENT_TOKEN", str(own))
    server = ServerSettings(
        port=0, drain_seconds=0.2, tls_certificate=pair.certificate, tls_key=pair.key, token_keys=authority.public_key
    )
    running = await start(builder(folder, mocks, OrchestratorSettings(**settings), database_url), server)
    there = Guarded(running.address, authority, folder / "guarded", running.services)
    try:
        async with there.channels:
            yield there
    finally:
        await running.stop()
