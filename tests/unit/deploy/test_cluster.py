"""The cluster on one machine: four services with TLS and the access file, an Envoy beside each caller, one run through it all."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.api.orchestrator.v1.agent_pb2 import Completion
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.client import Client, Order
from pointsman.services.chassis.core.config import PeerSettings
from pointsman.services.chassis.storage.database import Database
from pointsman.services.mock_agents.agents import MockAgents
from pointsman.services.mock_agents.results import result_for
from pointsman.services.orchestrator.__main__ import build_on as build_orchestrator
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from pointsman.services.orchestrator.domain.mocking import MockOutcome
from pointsman.services.pipeline.__main__ import build_on as build_pipeline
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.router.__main__ import build_on as build_router
from pointsman.services.router.config import RouterSettings
from pointsman.worker import Job, Worker
from tests.helpers.ports import free_port
from tests.unit.deploy.edge import Certificates, running_edge
from tests.unit.deploy.test_edges import port_of, served, workflow

PEERS = {"router": 7471, "workflow": 7472, "pipeline": 7473}

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="NOT CHECKED: openssl is not on this machine, so TLS was not tried"
)


def at(name: str, port: int) -> dict[str, str]:
    """The name of a headless service as the address that DNS would answer."""
    return {f"address: pointsman-{name}, port_value: 7443": f"address: 127.0.0.1, port_value: {port}"}


@asynccontextmanager
async def agents(channel: grpc.aio.Channel, **loops: Any) -> AsyncIterator[None]:
    """The mock agents of every role that is not switched off, at the other end of a channel."""
    mocks = MockAgents(lambda _: channel, MockSettings(full_mock_mode=True, **loops).policy())
    tasks = [asyncio.ensure_future(work()) for _, work in mocks.loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def played(job: Job) -> Any:
    """The result that the mock agents hand in for a lease."""
    completion = result_for(job.lease, MockOutcome.SUCCESS)
    assert isinstance(completion, Completion)
    return getattr(completion, str(completion.WhichOneof("result")))


@asynccontextmanager
async def judges(reviewer: grpc.aio.Channel, verifier: grpc.aio.Channel) -> AsyncIterator[None]:
    """A reviewer and a verifier, each with a certificate of its own."""
    reviewing, verifying = Worker("ada"), Worker("eve")
    reviewing.reviewer(played)
    verifying.verifier(played)
    serving = [asyncio.ensure_future(reviewing.serve(Client(reviewer)))]
    serving.append(asyncio.ensure_future(verifying.serve(Client(verifier))))
    try:
        yield
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def test_a_run_goes_through_the_whole_cluster_to_its_end(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    certificates.issue(*PEERS, "orchestrator", "agent", "reviewer", "verifier", "operator")
    folder, dialled = certificates.folder, {name: free_port() for name in (*PEERS, "orchestrator")}

    def store(name: str) -> Database:
        return Database(f"sqlite:///{tmp_path / f'{name}.db'}", name)

    async with AsyncExitStack() as cluster:
        services = {
            "router": build_router(store("router"), RouterSettings()),
            "workflow": workflow(tmp_path / "workflow.db"),
            "pipeline": build_pipeline(store("pipeline"), PipelineSettings()),
        }
        addresses = {f"port_value: {PEERS[name]}": f"port_value: {dialled[name]}" for name in PEERS}
        for name, service in services.items():
            running = await cluster.enter_async_context(served(service, folder / name))
            addresses |= at(name, port_of(running))
        cluster.enter_context(running_edge("orchestrator", folder / "orchestrator", tmp_path / "out", addresses))
        peers = PeerSettings(**{name: f"127.0.0.1:{port}" for name, port in dialled.items()})
        service = build_orchestrator(store("orchestrator"), OrchestratorSettings(), peers, MockSettings())
        running = await cluster.enter_async_context(served(service, folder / "orchestrator"))
        there = {**at("orchestrator", port_of(running)), "port_value: 7470": f"port_value: {dialled['orchestrator']}"}
        port = dialled["orchestrator"]
        cluster.enter_context(running_edge("agent", folder / "agent", tmp_path / "agent", there, port))
        channel = await cluster.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
        await cluster.enter_async_context(agents(channel, reviewer_loop=False))
        reviewer = await cluster.enter_async_context(certificates.channel(port_of(running), "reviewer"))
        verifier = await cluster.enter_async_context(certificates.channel(port_of(running), "verifier"))
        await cluster.enter_async_context(judges(reviewer, verifier))
        operator = await cluster.enter_async_context(certificates.channel(port_of(running), "operator"))
        client = Client(operator)
        answer = await client.runs.submit(
            Order("Fix the failing test in src/parser.py and add a regression test", verify_commands=[["true"]])
        )
        actors = {transition.actor async for transition in client.runs.watch(answer.run.id)}
        assert (await client.runs.get(answer.run.id)).state == RUN_STATE_COMPLETE
        expected = {f"spiffe://pointsman/{name}" for name in ("operator", "agent", "reviewer", "verifier")}
        assert expected <= actors, "the journal says who did what"
