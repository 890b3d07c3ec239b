"""Two replicas of every service on one PostgreSQL, as real processes that can be stopped and started one by one."""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import MetaData, select

from pointsman.cli.__main__ import main
from pointsman.client import Client, Terms
from pointsman.services.chassis.engine.journal import Journal, broken_links
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.ports import free_port

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
START_SECONDS = 100.0
PATIENCE_SECONDS = 120.0
LEASE_SECONDS = 15
"""Mock agents of a stopped replica lose what they hold: long enough for a slow machine, short enough to wait for."""

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        "pytest",
        "pointsman.cli.commands.serve",
        "pointsman.cli.commands.migrate",
        *(f"pointsman.services.{name}.__main__" for name in CONTEXTS),
    ]
)


def _become(arguments: list[str], environment: dict[str, str], log: Path) -> None:
    """Be the command line with these arguments, in a process that has imported everything already."""
    with log.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["pointsman", *arguments]
    main()


def command(arguments: list[str], environment: dict[str, str], log: Path) -> ForkServerProcess:
    """A process of its own that runs a command."""
    process = processes.Process(target=_become, args=(arguments, environment, log), daemon=True)
    process.start()
    return process


@dataclass(slots=True)
class Replica:
    """One process of one service, at a port that it keeps over restarts."""

    service: str
    port: int
    environment: dict[str, str]
    log: Path
    process: ForkServerProcess | None = None

    async def start(self) -> None:
        """Start it and wait until it says that it serves."""
        arguments = ["serve", self.service, "--port", str(self.port)]
        self.process = await asyncio.to_thread(command, arguments, self.environment, self.log)
        await eventually(self._serves, START_SECONDS)

    async def stop(self) -> int | None:
        """Ask it to stop, and wait until it has; its exit code."""
        assert self.process is not None
        self.process.terminate()
        await asyncio.to_thread(self.process.join)
        return self.process.exitcode

    async def restart(self) -> None:
        """What a rolling update does with one pod."""
        assert await self.stop() == 0, self.log.read_text()
        await self.start()

    async def _serves(self) -> bool:
        assert self.process is not None
        assert self.process.exitcode is None, self.log.read_text()
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


def environment_for(database_url: str, ports: dict[str, list[int]]) -> dict[str, str]:
    """The settings that every replica gets: one store, every peer by all its addresses, mock agents."""
    peers = {
        f"POINTSMAN_PEERS_{name.upper()}": "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports[name])
        for name in CONTEXTS
    }
    own = {
        "POINTSMAN_DATABASE_URL": database_url,
        "POINTSMAN_FULL_MOCK_MODE": "1",
        "POINTSMAN_SERVER_DRAIN_SECONDS": str(scaled(2)),
        "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(LEASE_SECONDS)),
    }
    return {**os.environ, **peers, **own}


@asynccontextmanager
async def two_of_each(database_url: str, folder: Path) -> AsyncIterator[Replicas]:
    """Two replicas of every service on migrated stores, gone at the end."""
    numbers = iter([free_port() for _ in range(2 * len(CONTEXTS))])
    ports = {name: [next(numbers), next(numbers)] for name in CONTEXTS}
    environment = environment_for(database_url, ports)
    members = [
        Replica(name, port, environment, folder / f"{name}-{port}.log") for name in CONTEXTS for port in ports[name]
    ]
    migration = await asyncio.to_thread(command, ["migrate"], environment, folder / "migrate.log")
    await asyncio.to_thread(migration.join)
    assert migration.exitcode == 0, (folder / "migrate.log").read_text()
    try:
        await asyncio.gather(*(member.start() for member in members))
        async with open_channel(environment["POINTSMAN_PEERS_ORCHESTRATOR"]) as channel:
            yield Replicas(database_url, members, Client(channel, Terms(patience_seconds=scaled(PATIENCE_SECONDS))))
    finally:
        for member in members:
            if member.process is not None:
                member.process.kill()
                await asyncio.to_thread(member.process.join)
