"""The edges that the manifests put before each service: who is let in, to what, and where calls go."""

import asyncio
import shutil
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import grpc
import pytest

from pointsman.services.chassis.config import PeerSettings, ServerSettings
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.service import Running, start
from pointsman.services.orchestrator.__main__ import build_on as build_orchestrator
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from pointsman.services.workflow.__main__ import build_on
from pointsman.services.workflow.config import WorkflowSettings
from tests.helpers.eventually import eventually
from tests.unit.deploy.edge import Certificates, code_of, free_port, healthy, running_edge

WORKFLOW = "pointsman.api.workflow.v1.WorkflowService"
LIST = f"/{WORKFLOW}/ListWorkflows"
POLL = "/pointsman.api.orchestrator.v1.AgentService/Poll"
SUBMIT = "/pointsman.api.orchestrator.v1.OrchestratorService/Submit"

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="NOT CHECKED: openssl is not on this machine, so the edges were not tried"
)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Certificates for every role."""
    made = Certificates(tmp_path / "certificates")
    made.issue("router", "workflow", "pipeline", "orchestrator", "agent", "operator")
    return made


@asynccontextmanager
async def workflow_service(file: Path, metrics_port: int = 0) -> AsyncIterator[Running]:
    """The workflow service as in a pod: on loopback only."""
    settings = ServerSettings(port=0, drain_seconds=0.2, metrics_port=metrics_port)
    running = await start(lambda _: [build_on(Database(f"sqlite:///{file}", "workflow"), WorkflowSettings())], settings)
    try:
        yield running
    finally:
        await running.stop()


def own(running: Running) -> dict[str, str]:
    """Where the edge finds its service; what it offers the service to dial is put elsewhere."""
    dialled = {f"port_value: {port}": f"port_value: {free_port()}" for port in (7471, 7472, 7473)}
    return {**dialled, "port_value: 7460": f"port_value: {running.address.rpartition(':')[2]}"}


async def test_an_edge_lets_in_by_certificate_and_only_to_what_the_role_needs(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with workflow_service(tmp_path / "store.db") as running:
        folder = certificates.folder
        with running_edge("service", folder / "workflow", tmp_path / "envoy", own(running)) as edge:
            expected = {
                "orchestrator": grpc.StatusCode.OK,
                "operator": grpc.StatusCode.OK,
                "agent": grpc.StatusCode.PERMISSION_DENIED,
                "router": grpc.StatusCode.PERMISSION_DENIED,
                None: grpc.StatusCode.UNAVAILABLE,
            }
            for role, code in expected.items():
                async with certificates.channel(edge.port, role) as channel:
                    assert await code_of(channel, LIST) == code, role


async def test_an_agent_reaches_the_agents_services_of_the_orchestrator_and_nothing_else(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with workflow_service(tmp_path / "store.db") as running:
        folder = certificates.folder
        with running_edge("orchestrator", folder / "orchestrator", tmp_path / "envoy", own(running)) as edge:
            async with certificates.channel(edge.port, "agent") as channel:
                assert await code_of(channel, SUBMIT) == grpc.StatusCode.PERMISSION_DENIED
                assert await code_of(channel, POLL) == grpc.StatusCode.UNIMPLEMENTED, "passed on to what stands behind"
            async with certificates.channel(edge.port, "operator") as channel:
                assert await code_of(channel, SUBMIT) == grpc.StatusCode.UNIMPLEMENTED


async def test_the_health_port_answers_health_and_nothing_else(certificates: Certificates, tmp_path: Path) -> None:
    async with workflow_service(tmp_path / "store.db") as running:
        folder = certificates.folder
        with running_edge("service", folder / "workflow", tmp_path / "envoy", own(running)) as edge:
            assert await healthy(edge.health_port, WORKFLOW)
            assert await healthy(edge.health_port, "")
            async with grpc.aio.insecure_channel(f"127.0.0.1:{edge.health_port}") as channel:
                assert await code_of(channel, LIST) == grpc.StatusCode.UNIMPLEMENTED


async def test_the_metrics_port_answers_scrapes_and_nothing_else(certificates: Certificates, tmp_path: Path) -> None:
    counting = free_port()
    async with workflow_service(tmp_path / "store.db", counting) as running:
        addresses = {**own(running), "port_value: 9464": f"port_value: {counting}"}
        with running_edge("service", certificates.folder / "workflow", tmp_path / "envoy", addresses) as edge:
            url = f"http://127.0.0.1:{edge.metrics_port}"
            assert b"pointsman_transitions" in await asyncio.to_thread(fetch, f"{url}/metrics")
            with pytest.raises(urllib.error.HTTPError):
                await asyncio.to_thread(fetch, f"{url}/other")


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=5) as answer:
        body: bytes = answer.read()
    return body


async def test_an_agent_dials_its_own_edge_and_reaches_the_orchestrator(
    certificates: Certificates, tmp_path: Path
) -> None:
    folder = certificates.folder
    async with lone_orchestrator(tmp_path / "store.db") as running:
        with running_edge("orchestrator", folder / "orchestrator", tmp_path / "there", own(running)) as there:
            dialled = free_port()
            addresses = {
                "address: pointsman-orchestrator, port_value: 7443": f"address: 127.0.0.1, port_value: {there.port}",
                "port_value: 7470": f"port_value: {dialled}",
            }
            with running_edge("agent", folder / "agent", tmp_path / "here", addresses, dialled):
                async with grpc.aio.insecure_channel(f"127.0.0.1:{dialled}") as channel:

                    async def reached() -> bool:
                        return await code_of(channel, POLL) == grpc.StatusCode.INVALID_ARGUMENT

                    await eventually(reached)
                    assert await code_of(channel, SUBMIT) == grpc.StatusCode.PERMISSION_DENIED


@asynccontextmanager
async def lone_orchestrator(file: Path) -> AsyncIterator[Running]:
    """The orchestrator itself, with nobody behind it."""
    nobody = PeerSettings().all_at("127.0.0.1:1")
    database = Database(f"sqlite:///{file}", "orchestrator")
    running = await start(
        lambda _: [build_orchestrator(database, OrchestratorSettings(), nobody, MockSettings())],
        ServerSettings(port=0, drain_seconds=0.2),
    )
    try:
        yield running
    finally:
        await running.stop()


async def test_a_renewed_certificate_is_used_without_a_restart(certificates: Certificates, tmp_path: Path) -> None:
    async with workflow_service(tmp_path / "store.db") as running:
        mounted = tmp_path / "mounted"
        first = tmp_path / "certificates" / "workflow"
        _mount(first, mounted)
        with running_edge("service", mounted, tmp_path / "envoy", own(running)) as edge:
            other = Certificates(tmp_path / "other")
            other.issue("workflow", "operator")

            async def accepted() -> bool:
                async with other.channel(edge.port, "operator") as channel:
                    return await code_of(channel, LIST) == grpc.StatusCode.OK

            assert not await accepted()
            _mount(other.folder / "workflow", mounted)
            await eventually(accepted, 10)


def _mount(source: Path, mounted: Path) -> None:
    """Put files in place as the kubelet does: a new folder, and one rename of the link to it."""
    mounted.mkdir(exist_ok=True)
    new = mounted / f"..{source.parent.name}"
    shutil.copytree(source, new)
    (mounted / "..new").symlink_to(new.name)
    (mounted / "..new").rename(mounted / "..data")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        if not (mounted / name).is_symlink():
            (mounted / name).symlink_to(f"..data/{name}")


async def test_the_orchestrators_edge_spreads_calls_over_replicas_and_leaves_out_one_that_stops(
    certificates: Certificates, tmp_path: Path
) -> None:
    folder = certificates.folder
    with ExitStack() as edges:
        async with workflow_service(tmp_path / "first.db") as first, workflow_service(tmp_path / "second.db") as second:
            ports = [
                edges.enter_context(
                    running_edge("service", folder / "workflow", tmp_path / f"envoy{number}", own(running))
                ).port
                for number, running in enumerate((first, second))
            ]
            outbound = free_port()
            addresses = {"port_value: 7472": f"port_value: {outbound}", **_two_replicas(ports)}
            edges.enter_context(running_edge("orchestrator", folder / "orchestrator", tmp_path / "envoy", addresses))
            async with grpc.aio.insecure_channel(f"127.0.0.1:{outbound}") as channel:

                async def reached() -> bool:
                    return await code_of(channel, LIST) == grpc.StatusCode.OK

                await eventually(reached)
                await first.server.drain()

                async def left_out() -> bool:
                    return {await code_of(channel, LIST) for _ in range(20)} == {grpc.StatusCode.OK}

                await eventually(left_out)


def _two_replicas(ports: list[int]) -> dict[str, str]:
    """The name of the headless service as its two addresses, which is what DNS would answer."""
    old = "{endpoint: {address: {socket_address: {address: pointsman-workflow, port_value: 7443}}}}"
    new = ", ".join(
        f"{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}}}}}" for port in ports
    )
    others = {f"port_value: {port}": f"port_value: {free_port()}" for port in (7460, 7471, 7473)}
    return {old: new, "pointsman-router": "localhost", "pointsman-pipeline": "localhost", **others}
