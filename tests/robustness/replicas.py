"""Two replicas of every service on one PostgreSQL, as real processes that can be stopped and started one by one."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import MetaData, select

from pointsman.client import Client, Terms
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.journal import Journal, broken_links
from pointsman.services.chassis.peer import open_channel
from pointsman.services.chassis.store import Store
from tests.helpers.eventually import eventually

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
START_SECONDS = 100.0


@dataclass(slots=True)
class Replica:
    """One process of one service, at a port that it keeps over restarts."""

    service: str
    port: int
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start it and wait until it says that it serves."""
        command = [sys.executable, "-m", "pointsman.cli", "serve", self.service, "--port", str(self.port)]
        self.process = await asyncio.to_thread(self._launch, command)
        await eventually(self._serves, START_SECONDS)

    def _launch(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    async def stop(self) -> int:
        """Ask it to stop, and wait until it has; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait)

    async def restart(self) -> None:
        """What a rolling update does with one pod."""
        assert await self.stop() == 0, self.log.read_text()
        await self.start()

    async def _serves(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        service = f"pointsman.api.{self.service}.v1.{self.service.capitalize()}Service"
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            try:
                answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
            except grpc.aio.AioRpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


@dataclass(slots=True)
class Replicas:
    """All of them, and a client that spreads its calls over the orchestrators."""

    database_url: str
    members: list[Replica]
    client: Client

    def of(self, service: str) -> list[Replica]:
        """The replicas of one service."""
        return [member for member in self.members if member.service == service]

    async def transitions(self, context: str) -> int:
        """How many transitions a context's store holds, after proof that each entity's chain is whole."""
        database = Database(self.database_url, context)
        store = Store(database, MetaData())
        journal = Journal(store)
        try:
            table = store.tables.journal
            ids = await database.read(lambda c: [row[0] for row in c.execute(select(table.c.entity_id).distinct())])
            total = 0
            for entity_id in ids:
                rows = await database.read(lambda c, i=entity_id: journal.rows(c, i, 0, 100_000))  # type: ignore[misc]
                assert broken_links(rows) == [], (context, entity_id)
                total += len(rows)
            return total
        finally:
            database.close()


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def environment_for(database_url: str, ports: dict[str, list[int]]) -> dict[str, str]:
    """The settings that every replica gets: one store, every peer by all its addresses, mock agents."""
    peers = {
        f"POINTSMAN_PEERS_{name.upper()}": "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports[name])
        for name in CONTEXTS
    }
    own = {
        "POINTSMAN_DATABASE_URL": database_url,
        "POINTSMAN_FULL_MOCK_MODE": "1",
        "POINTSMAN_SERVER_DRAIN_SECONDS": "2",
        "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": "5",
    }
    return {**os.environ, **peers, **own}


def _migrate(environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "pointsman.cli", "migrate"], env=environment, check=True, capture_output=True)


@asynccontextmanager
async def two_of_each(database_url: str, folder: Path) -> AsyncIterator[Replicas]:
    """Two replicas of every service, stopped at the end."""
    numbers = iter(_free_ports(2 * len(CONTEXTS)))
    ports = {name: [next(numbers), next(numbers)] for name in CONTEXTS}
    environment = environment_for(database_url, ports)
    members = [
        Replica(name, port, environment, folder / f"{name}-{port}.log") for name in CONTEXTS for port in ports[name]
    ]
    async with _running(members, environment), open_channel(environment["POINTSMAN_PEERS_ORCHESTRATOR"]) as channel:
        yield Replicas(database_url, members, Client(channel, Terms(patience_seconds=60.0)))


@asynccontextmanager
async def replicas_of(
    service: str, number: int, database_url: str, folder: Path
) -> AsyncIterator[tuple[list[Replica], str]]:
    """Some replicas of one service that needs no other, and the address of them all."""
    ports = {name: _free_ports(number) for name in CONTEXTS}
    environment = environment_for(database_url, ports)
    members = [Replica(service, port, environment, folder / f"{service}-{port}.log") for port in ports[service]]
    async with _running(members, environment):
        yield members, environment[f"POINTSMAN_PEERS_{service.upper()}"]


@asynccontextmanager
async def _running(members: list[Replica], environment: dict[str, str]) -> AsyncIterator[None]:
    await asyncio.to_thread(_migrate, environment)
    try:
        await asyncio.gather(*(member.start() for member in members))
        yield
    finally:
        for member in members:
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()
