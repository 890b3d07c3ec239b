"""The server around every RPC: limits, deadlines, masked bugs, health, reflection, and an orderly end."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.server import Server
from pointsman.services.chassis.runtime.service import Service
from pointsman.services.chassis.storage.database import Database
from tests.helpers.counter import SERVICE, build, counter_pb2
from tests.helpers.counter_server import PATH, Served, an_add, failure_of, serving
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A file for the counter."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
async def served(url: str) -> AsyncIterator[Served]:
    """A counter with the settings that it has by default."""
    async with serving(url) as started:
        yield started


async def test_a_bug_is_masked(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    failure = await failure_of(served.stub.Fail(an_add()))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    error_id = failure.metadata["error_id"]
    assert error_id in failure.text
    assert "secret" not in repr(failure)
    assert error_id in "".join(capfd.readouterr())


async def test_an_answer_that_cannot_be_written_is_masked(url: str) -> None:
    async with serving(url, [_with(url, _Wrong())]) as served:
        for call in (served.stub.Add(an_add()), _first(served.stub.Watch(counter_pb2.WatchRequest(counter_id="c1")))):
            failure = await failure_of(call)
            assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
            assert "secret" not in repr(failure)


async def test_a_refusal_that_cannot_be_written_is_masked(url: str) -> None:
    async with serving(url, [_with(url, _Mute())]) as served:
        failure = await failure_of(served.stub.Add(an_add()))
        assert (failure.code, failure.reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        assert "secret" not in repr(failure)


async def test_what_is_not_offered_is_unimplemented(served: Served) -> None:
    watch = counter_pb2.WatchRequest(counter_id="c1")
    for call in (served.stub.Missing(an_add()), _first(served.stub.MissingWatch(watch))):
        failure = await failure_of(call)
        assert (failure.code, failure.reason) == (grpc.StatusCode.UNIMPLEMENTED, "UNIMPLEMENTED")
        assert failure.metadata["method"].startswith(PATH + "Missing")
    for path in (f"{PATH}Nothing", "/nobody.Service/Add"):
        channel: Any = served.channel
        failure = await failure_of(channel.unary_unary(path)(b""))
        assert failure.code is grpc.StatusCode.UNIMPLEMENTED


async def test_a_call_longer_than_the_cap_is_ended(url: str) -> None:
    async with serving(url, deadline_cap_seconds=0.1) as served:
        failure = await failure_of(served.stub.Wait(an_add(amount=1000)))
        assert (failure.code, failure.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")
        assert (await served.stub.Wait(an_add(amount=1))).value == 1


async def test_an_upload_longer_than_the_cap_is_ended(url: str) -> None:
    async def for_ever() -> AsyncIterator[Any]:
        yield an_add()
        await asyncio.Event().wait()

    async with serving(url, deadline_cap_seconds=0.1) as served:
        failure = await failure_of(served.stub.Collect(for_ever()))
        assert (failure.code, failure.reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")


async def test_more_calls_than_allowed_are_turned_away_with_a_time(url: str) -> None:
    async with serving(url, max_in_flight=2) as served:
        waiting = [asyncio.ensure_future(served.stub.Wait(an_add(amount=1000))) for _ in range(2)]
        await eventually(lambda: _in_flight(served, 2))
        failure = await failure_of(served.stub.Add(an_add()))
        assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert failure.metadata == {"limit": "2"}
        assert failure.find(error_details_pb2.RetryInfo).retry_delay.ToMilliseconds() == 500
        for call in waiting:
            call.cancel()
        await eventually(lambda: _in_flight(served, 0))
        assert (await served.stub.Add(an_add())).value == 1


async def test_long_violations_do_not_turn_into_another_code(served: Served) -> None:
    labels = {f"{number:02}{'長' * 300}": "" for number in range(60)}
    failure = await failure_of(served.stub.Add(an_add(labels=labels)))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert failure.fields[0].startswith("labels[")


async def test_health_tells_of_the_server_and_of_each_service(served: Served) -> None:
    health = health_pb2_grpc.HealthStub(served.channel)
    for name in ("", SERVICE.full_name):
        assert (await health.Check(health_pb2.HealthCheckRequest(service=name))).status == SERVING
    failure = await failure_of(health.Check(health_pb2.HealthCheckRequest(service="nobody")))
    assert failure.code is grpc.StatusCode.NOT_FOUND


async def test_reflection_is_off_unless_it_is_asked_for(url: str, served: Served) -> None:
    failure = await failure_of(_services(served))
    assert failure.code is grpc.StatusCode.UNIMPLEMENTED
    async with serving(url + "2", reflection=True) as open_one:
        assert SERVICE.full_name in await _services(open_one)


async def test_a_drain_finishes_what_runs_and_refuses_what_comes(url: str) -> None:
    async with serving(url, drain_seconds=scaled(5)) as served:
        health = health_pb2_grpc.HealthStub(served.channel)
        await served.stub.Add(an_add())
        watch = served.stub.Watch(counter_pb2.WatchRequest(counter_id="c1"))
        assert (await watch.read()).seq == 1
        slow = asyncio.ensure_future(served.stub.Wait(an_add(amount=300)))
        await eventually(lambda: _in_flight(served, 1))
        served.running.server._draining = True
        refused = await failure_of(served.stub.Add(an_add("r2")))
        assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        assert refused.has(error_details_pb2.RetryInfo)
        health_watch = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE.full_name))
        assert (await health_watch.read()).status == SERVING
        draining = asyncio.create_task(served.running.server.drain())
        assert (await health_watch.read()).status == NOT_SERVING
        ended = await failure_of(watch.read())
        assert (ended.code, ended.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        health_watch.cancel()
        assert (await slow).value == 300
        await draining
        late = await failure_of(served.stub.Add(an_add("r3")))
        assert late.code is grpc.StatusCode.UNAVAILABLE


async def test_a_port_in_use_is_named(served: Served) -> None:
    host, _, port = served.running.address.rpartition(":")
    with pytest.raises(OSError, match=f"{host}:{port}"):
        Server(ServerSettings(port=int(port))).listen()


async def test_an_ipv6_address_can_be_called_back(url: str) -> None:
    try:
        async with serving(url, host="::1") as served:
            assert served.running.address.startswith("[::1]:")
            assert (await served.stub.Add(an_add())).value == 1
    except OSError:
        pytest.skip("no IPv6 here")


class _Wrong:
    """A servicer whose answers are not what the proto says."""

    async def Add(self, _request: Any, _caller: Any) -> Any:
        return "secret answer"

    async def Watch(self, _request: Any, _caller: Any) -> AsyncIterator[Any]:
        yield "secret answer"


class _Mute:
    """A servicer whose refusal holds what is no violation."""

    async def Add(self, _request: Any, _caller: Any) -> Any:
        secret: Any = ("secret",)
        raise Refusal(Reason.INVALID_FIELD, "no", violations=secret)


def _with(url: str, servicer: object) -> Service:
    return dataclasses.replace(build(Database(url, "counter")), servicers=[(SERVICE, servicer)])


async def _first(stream: Any) -> Any:
    async for answer in stream:
        return answer
    return None


async def _in_flight(served: Served, count: int) -> bool:
    return len(served.running.server._calls) == count


async def _services(served: Served) -> list[str]:
    stub = reflection_pb2_grpc.ServerReflectionStub(served.channel)
    asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    answer = await _first(stub.ServerReflectionInfo(asked))
    return [service.name for service in answer.list_services_response.service]
