"""The gateway in a test: the whole control plane behind it, and a client that speaks HTTP word by word."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointsman.services.chassis.core.config import PeerSettings, ServerSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import Service, start
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from tests.helpers.limits import scaled
from tests.scenarios.planes import MOCKED, Plane, builder, clients

ORCHESTRATOR = "/api/v1/orchestrator.OrchestratorService"
WORKFLOW = "/api/v1/workflow.WorkflowService"
PIPELINE = "/api/v1/pipeline.PipelineService"
ARTIFACTS = "/api/v1/orchestrator.ArtifactService"
JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """Why it was refused."""
        return str(self.json["error"]["reason"])

    @property
    def fields(self) -> list[str]:
        """The fields at fault."""
        return [violation["field"] for violation in self.json["error"]["violations"]]


@dataclass(frozen=True, slots=True)
class Web:
    """A client of the gateway, and one of the services behind it."""

    port: int
    plane: Plane

    async def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request, one answer."""
        return await asyncio.to_thread(self._send, method, path, body, headers or {})

    async def post(self, path: str, value: Any, **headers: str) -> Answer:
        """A value as JSON."""
        return await self.send("POST", path, json.dumps(value).encode(), JSON | headers)

    async def get(self, path: str, **headers: str) -> Answer:
        """A read."""
        return await self.send("GET", path, None, headers)

    async def events(self, path: str, count: int, **headers: str) -> list[dict[str, str]]:
        """The first events of a stream; fewer when it ends before."""
        return await asyncio.to_thread(self._events, path, count, headers)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=scaled(30))
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def _events(self, path: str, count: int, headers: dict[str, str]) -> list[dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=scaled(30))
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
            return [event for event, _ in zip(_parsed(answer), range(count), strict=False)]
        finally:
            connection.close()


def _parsed(answer: http.client.HTTPResponse) -> Iterator[dict[str, str]]:
    event: dict[str, str] = {}
    for raw in answer:
        name, _, value = raw.decode().rstrip("\n").partition(": ")
        if name in ("id", "event", "data"):
            event[name] = value
        elif not raw.strip() and event:
            yield event
            event = {}


@contextmanager
def free_gateway(**settings: Any) -> Iterator[GatewayServer]:
    """A gateway on a port of its own."""
    yield GatewayServer(GatewaySettings(port=0, **settings))


@asynccontextmanager
async def gateway(data: Path, mocks: MockSettings = MOCKED, **settings: Any) -> AsyncIterator[Web]:
    """The four services and the gateway in this process."""
    with free_gateway(**settings) as server:

        def build(address: str) -> Sequence[Service]:
            services = builder(data, mocks, OrchestratorSettings())(address)
            return [*services, server.service(PeerSettings().all_at(address))]

        running = await start(build, ServerSettings(port=0, drain_seconds=0.2))
        channel = open_channel(running.address)
        try:
            here = clients(channel)
            await here.are_there(mocks)
            yield Web(int(server.address.rpartition(":")[2]), here)
        finally:
            await channel.close()
            await running.stop()
