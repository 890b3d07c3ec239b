"""Who is turned away first when there is too much: new work before agents, and each kind of call beside its own kind."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pointsman.api.orchestrator.v1 import agent_pb2, artifact_pb2, orchestrator_pb2
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.rpc.server import Server
from tests.helpers.counter import counter_pb2
from tests.helpers.counter_server import an_add, failure_of, serving
from tests.helpers.eventually import eventually
from tests.helpers.limits import within

SETTINGS = ServerSettings(port=0, max_in_flight=10, max_streams=7, max_uploads=3)


@pytest.mark.parametrize(
    ("module", "service", "method", "limit"),
    [
        (orchestrator_pb2, "OrchestratorService", "Submit", 10),
        (agent_pb2, "AgentService", "Heartbeat", 20),
        (agent_pb2, "AgentService", "Fail", 20),
        (agent_pb2, "AgentService", "Complete", 7),
        (agent_pb2, "AgentService", "Poll", 7),
        (orchestrator_pb2, "OrchestratorService", "WatchRun", 7),
        (artifact_pb2, "ArtifactService", "Put", 3),
    ],
)
async def test_each_kind_of_call_has_room_of_its_own(module: object, service: str, method: str, limit: int) -> None:
    server = Server(SETTINGS)
    descriptor = module.DESCRIPTOR.services_by_name[service].methods_by_name[method]  # type: ignore[attr-defined]
    beside, allowed = server._limit_of(descriptor)
    assert allowed == limit
    assert (beside is server._calls) == (limit in (10, 20))
    await server._server.stop(0)


async def test_watchers_of_health_without_a_token_are_counted_beside_the_other_streams(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path / 'store.db'}", max_streams=1, max_health_watchers=2) as served:
        stub: Any = health_pb2_grpc.HealthStub(served.channel)
        watchers = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(2)]
        for watcher in watchers:
            async with within(30):
                assert (await watcher.read()).status == health_pb2.HealthCheckResponse.SERVING
        failure = await failure_of(stub.Watch(health_pb2.HealthCheckRequest()).read())
        assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert failure.metadata == {"limit": "2"}
        long = await failure_of(stub.Watch(health_pb2.HealthCheckRequest(service="x" * 100_000)).read())
        assert (long.reason, long.fields) == ("INVALID_FIELD", ["service"])
        await served.stub.Add(an_add())
        other = served.stub.Watch(counter_pb2.WatchRequest(counter_id=an_add().counter_id))
        async with within(30):
            assert await other.read() is not grpc.aio.EOF
        watchers[0].cancel()

        async def has_room() -> bool:
            try:
                return bool((await stub.Watch(health_pb2.HealthCheckRequest()).read()).status)
            except grpc.aio.AioRpcError:
                return False

        await eventually(has_room)


async def test_a_stream_too_many_is_turned_away_with_a_time_and_costs_the_others_nothing(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path / 'store.db'}", max_streams=1) as served:
        await served.stub.Add(an_add())
        first = served.stub.Watch(counter_pb2.WatchRequest(counter_id=an_add().counter_id))
        async with within(30):
            await first.read()
        second = served.stub.Watch(counter_pb2.WatchRequest(counter_id=an_add().counter_id))
        failure = await failure_of(second.read())
        assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert failure.metadata == {"limit": "1"}
        assert (await served.stub.Add(an_add(request_id="r2"))).value == 2
        first.cancel()
