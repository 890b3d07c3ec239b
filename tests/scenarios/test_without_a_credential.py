"""A contained agent has the network, and the control plane on loopback answers it UNAUTHENTICATED."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pointsman.sandbox import Level, SandboxSpec, clean_environment, run
from tests.helpers.levels import levels_here
from tests.scenarios.commands import running

ATTACK = """
import json, ssl, sys, urllib.error, urllib.request
import grpc

address, console, method = sys.argv[1:]
host, _, port = address.rpartition(":")
answers = {}
seen = ssl.get_server_certificate((host, int(port))).encode()
channels = {
    "plain": grpc.insecure_channel(address),
    "seen certificate": grpc.secure_channel(
        address, grpc.ssl_channel_credentials(seen), options=[("grpc.ssl_target_name_override", "localhost")]
    ),
}
for name, channel in channels.items():
    for token in ("", "Bearer guessed"):
        try:
            metadata = [("authorization", token)] if token else []
            channel.unary_unary(method)(b"", metadata=metadata)
            answers[f"{name} {token}"] = "OK"
        except grpc.RpcError as error:
            answers[f"{name} {token}"] = error.code().name
try:
    urllib.request.urlopen(console + "/api/v1/orchestrator.OrchestratorService/ListRuns")
    answers["http"] = "200"
except urllib.error.HTTPError as error:
    answers["http"] = str(error.code)
print(json.dumps(answers))
"""
METHOD = "/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns"
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def plane() -> Iterator[tuple[str, str]]:
    """The addresses of a control plane, of gRPC and of the console."""
    with tempfile.TemporaryDirectory() as data, running("up", "--port", "0", "--json", POINTSMAN_DATA=data) as started:
        served = json.loads(started.line_with('"address"'))
        yield served["address"], served["console"]


@pytest.mark.parametrize("level", [level for level in levels_here() if level < Level.CONTAINER])
async def test_loopback_answers_a_contained_agent_that_it_is_not_known(
    level: Level, plane: tuple[str, str], tmp_path: Path
) -> None:
    command = (sys.executable, "-I", "-c", ATTACK, *plane, METHOD)
    environment = clean_environment({"HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    prefixes = (Path(sys.prefix), Path(sys.base_prefix))
    spec = SandboxSpec(command, tmp_path, environment, (tmp_path,), prefixes, network=True, level=level)
    ended = await run(spec)
    assert ended.ok, ended.output
    answers = json.loads(ended.output.splitlines()[-1])
    assert answers["http"] == "401"
    assert {answers["seen certificate "], answers["seen certificate Bearer guessed"]} == {"UNAUTHENTICATED"}
    assert {answers["plain "], answers["plain Bearer guessed"]} == {"UNAVAILABLE"}
