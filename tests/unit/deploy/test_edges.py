"""Services as the manifests set them up: TLS, the access file, and the Envoy beside each; who gets in, and where calls go."""

import asyncio
import shutil
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from pointsman.services.chassis.core.config import PeerSettings, ServerSettings
from pointsman.services.chassis.runtime.service import Running, Service, start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.orchestrator.__main__ import build_on as build_orchestrator
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from pointsman.services.workflow.__main__ import build_on as build_workflow
from pointsman.services.workflow.config import WorkflowSettings
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.ports import free_port
from tests.unit.deploy.cluster import KUBERNETES
from tests.unit.deploy.edge import Certificates, code_of, healthy, running_edge

WORKFLOW = "pointsman.api.workflow.v1.WorkflowService"
LIST = f"/{WORKFLOW}/ListWorkflows"
FORGET = f"/{WORKFLOW}/ForgetRun"
POLL = "/pointsman.api.orchestrator.v1.AgentService/Poll"
SUBMIT = "/pointsman.api.orchestrator.v1.OrchestratorService/Submit"
ALLOWED = grpc.StatusCode.INVALID_ARGUMENT
"""How an empty request ends for somebody who may make it."""

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="NOT CHECKED: openssl is not on this machine, so TLS was not tried"
)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Certificates for every role."""
    made = Certificates(tmp_path / "certificates")
    made.issue("router", "workflow", "pipeline", "orchestrator", "agent", "operator")
    return made


@asynccontextmanager
async def served(service: Service, mounted: Path, metrics_port: int = 0) -> AsyncIterator[Running]:
    """A service with the settings of its pod, but on loopback."""
    settings = ServerSettings(
        port=0,
        drain_seconds=0.2,
        metrics_port=metrics_port,
        tls_certificate=mounted / "tls.crt",
        tls_key=mounted / "tls.key",
        client_authority=mounted / "ca.crt",
        access=KUBERNETES / "base" / "access.json",
    )
    running = await start(lambda _address: [service], settings)
    try:
        yield running
    finally:
        await running.stop()


def workflow(file: Path) -> Service:
    return build_workflow(Database(f"sqlite:///{file}", "workflow"), WorkflowSettings())


def orchestrator(file: Path) -> Service:
    nobody = PeerSettings().all_at("127.0.0.1:1")
    return build_orchestrator(
        Database(f"sqlite:///{file}", "orchestrator"), OrchestratorSettings(), nobody, MockSettings()
    )


def port_of(running: Running) -> int:
    return int(running.address.rpartition(":")[2])


def beside(running: Running) -> dict[str, str]:
    """Where an Envoy finds its service; what it offers the service to dial is put elsewhere."""
    dialled = {f"port_value: {port}": f"port_value: {free_port()}" for port in (7471, 7472, 7473)}
    own = "address: 127.0.0.1, port_value: 7443"
    return {**dialled, own: f"address: 127.0.0.1, port_value: {port_of(running)}"}


async def test_the_access_file_gives_each_role_what_it_needs_of_the_workflow(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with served(workflow(tmp_path / "store.db"), certificates.folder / "workflow") as running:
        expected = {
            "orchestrator": ALLOWED,
            "operator": grpc.StatusCode.PERMISSION_DENIED,
            "agent": grpc.StatusCode.PERMISSION_DENIED,
            "router": grpc.StatusCode.UNAUTHENTICATED,
            None: grpc.StatusCode.UNAVAILABLE,
        }
        for role, code in expected.items():
            async with certificates.channel(port_of(running), role) as channel:
                assert await code_of(channel, FORGET) == code, role


async def test_the_access_file_lets_agents_work_and_operators_submit(
    certificates: Certificates, tmp_path: Path
) -> None:
    async with served(orchestrator(tmp_path / "store.db"), certificates.folder / "orchestrator") as running:
        async with certificates.channel(port_of(running), "agent") as channel:
            assert await code_of(channel, POLL) == ALLOWED
            assert await code_of(channel, SUBMIT) == grpc.StatusCode.PERMISSION_DENIED
        async with certificates.channel(port_of(running), "operator") as channel:
            assert await code_of(channel, SUBMIT) == ALLOWED
            assert await code_of(channel, POLL) == grpc.StatusCode.PERMISSION_DENIED


async def test_the_health_port_answers_health_and_nothing_else(certificates: Certificates, tmp_path: Path) -> None:
    mounted = certificates.folder / "workflow"
    async with served(workflow(tmp_path / "store.db"), mounted) as running:
        with running_edge("service", mounted, tmp_path / "envoy", beside(running)) as edge:
            assert await healthy(edge.health_port, WORKFLOW)
            assert await healthy(edge.health_port, "")
            async with grpc.aio.insecure_channel(f"127.0.0.1:{edge.health_port}") as channel:
                assert await code_of(channel, LIST) == grpc.StatusCode.UNIMPLEMENTED


async def test_the_metrics_port_answers_scrapes(certificates: Certificates, tmp_path: Path) -> None:
    port = free_port()
    async with served(workflow(tmp_path / "store.db"), certificates.folder / "workflow", port):
        assert b"pointsman_transitions" in await asyncio.to_thread(_fetch, f"http://127.0.0.1:{port}/metrics")


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=scaled(5)) as answer:
        body: bytes = answer.read()
    return body


async def test_an_agent_dials_its_own_envoy_and_reaches_the_orchestrator(
    certificates: Certificates, tmp_path: Path
) -> None:
    folder = certificates.folder
    async with served(orchestrator(tmp_path / "store.db"), folder / "orchestrator") as running:
        dialled = free_port()
        addresses = {
            "address: pointsman-orchestrator, port_value: 7443": f"address: 127.0.0.1, port_value: {port_of(running)}",
            "port_value: 7470": f"port_value: {dialled}",
        }
        with running_edge("agent", folder / "agent", tmp_path / "envoy", addresses, dialled):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{dialled}") as channel:

                async def reached() -> bool:
                    return await code_of(channel, POLL) == ALLOWED

                await eventually(reached)
                assert await code_of(channel, SUBMIT) == grpc.StatusCode.PERMISSION_DENIED


async def test_a_renewed_certificate_is_used_without_a_restart(certificates: Certificates, tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    _mount(certificates.folder / "workflow", mounted)
    async with served(workflow(tmp_path / "store.db"), mounted) as running:
        with running_edge("service", mounted, tmp_path / "envoy", beside(running)) as edge:
            assert await healthy(edge.health_port, WORKFLOW)
            other = Certificates(tmp_path / "other")
            other.issue("workflow", "operator")

            async def accepted() -> bool:
                async with other.channel(port_of(running), "operator") as channel:
                    return await code_of(channel, LIST) == grpc.StatusCode.OK

            assert not await accepted()
            _mount(other.folder / "workflow", mounted)
            await eventually(accepted)

            async def still_healthy() -> bool:
                try:
                    return await healthy(edge.health_port, WORKFLOW)
                except grpc.aio.AioRpcError:
                    return False

            await eventually(still_healthy)


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


async def test_the_orchestrators_envoy_spreads_calls_over_replicas_and_leaves_out_one_that_stops(
    certificates: Certificates, tmp_path: Path
) -> None:
    folder = certificates.folder
    async with (
        served(workflow(tmp_path / "first.db"), folder / "workflow") as first,
        served(workflow(tmp_path / "second.db"), folder / "workflow") as second,
    ):
        dialled = free_port()
        addresses = {"port_value: 7472": f"port_value: {dialled}", **_two_replicas(first, second)}
        with running_edge("orchestrator", folder / "orchestrator", tmp_path / "envoy", addresses):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{dialled}") as channel:

                async def all_answer() -> bool:
                    return {await code_of(channel, LIST) for _ in range(20)} == {grpc.StatusCode.OK}

                await eventually(all_answer)
                await first.server.drain()
                await eventually(all_answer)


def _two_replicas(*replicas: Running) -> dict[str, str]:
    """The name of the headless service as its two addresses, which is what DNS would answer."""
    old = "{endpoint: {address: {socket_address: {address: pointsman-workflow, port_value: 7443}}}}"
    new = ", ".join(
        f"{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {port_of(replica)}}}}}}}}}"
        for replica in replicas
    )
    others = {f"port_value: {port}": f"port_value: {free_port()}" for port in (7471, 7473)}
    return {old: new, "pointsman-router": "localhost", "pointsman-pipeline": "localhost", **others}
