"""The counter behind a real gRPC server, and its errors as a client sees them."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.rpc.status import DETAILS_KEY
from pointsman.services.chassis.runtime.service import Running, Service, start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store
from tests.helpers.counter import SERVICE, build, counter_pb2, counter_pb2_grpc

PATH = f"/{SERVICE.full_name}/"


@dataclass(frozen=True, slots=True)
class Served:
    """A running server with a channel to it."""

    running: Running
    channel: grpc.aio.Channel
    stub: Any

    @property
    def store(self) -> Store:
        """The store of its first service."""
        store = self.running.services[0].store
        assert store is not None
        return store

    async def raw(self, method: str, data: bytes) -> bytes:
        """Send bytes as they are to a method and get bytes back; a stream's first message, if it is one."""
        channel: Any = self.channel
        if method in ("Watch", "MissingWatch"):
            async for answer in channel.unary_stream(PATH + method)(data):
                return bytes(answer)
            return b""
        if method == "Collect":
            return bytes(await channel.stream_unary(PATH + method)(iter([data])))
        return bytes(await channel.unary_unary(PATH + method)(data))


@asynccontextmanager
async def serving(url: str, services: Sequence[Service] = (), **settings: Any) -> AsyncIterator[Served]:
    """The counter, or the services given, served on a port of the system's choice."""
    chosen = list(services) or [build(Database(url, "counter"))]
    running = await start(lambda _address: chosen, ServerSettings(port=0, **settings))
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield Served(running, channel, counter_pb2_grpc.CounterServiceStub(channel))
    finally:
        await running.stop()


def an_add(request_id: str = "r1", counter_id: str = "c1", amount: int = 1, **more: Any) -> Any:
    """A request that is valid unless the test makes it otherwise."""
    return counter_pb2.AddRequest(request_id=request_id, counter_id=counter_id, amount=amount, **more)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed, with what its status holds."""

    code: grpc.StatusCode
    text: str
    details: Sequence[Any]

    @property
    def reason(self) -> str:
        """ErrorInfo's reason; empty where the library itself has answered."""
        return str(self.find(error_details_pb2.ErrorInfo).reason)

    @property
    def metadata(self) -> dict[str, str]:
        """ErrorInfo's metadata."""
        return dict(self.find(error_details_pb2.ErrorInfo).metadata)

    @property
    def fields(self) -> list[str]:
        """The fields that BadRequest names."""
        return [violation.field for violation in self.find(error_details_pb2.BadRequest).field_violations]

    def find(self, kind: type[Message]) -> Any:
        """The detail of a kind; an empty one where it is missing."""
        found = kind()
        for detail in self.details:
            if detail.Unpack(found):
                break
        return found

    def has(self, kind: type[Message]) -> bool:
        """Whether a detail of the kind is there."""
        return any(detail.Is(kind.DESCRIPTOR) for detail in self.details)


async def failure_of(call: Awaitable[Any]) -> Failure:
    """How a call fails; that it does is what the test expects."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return _failure(error)
    raise AssertionError(f"answered {answer!r}")


def _failure(error: grpc.aio.AioRpcError) -> Failure:
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            status.ParseFromString(value)
    return Failure(error.code(), error.details() or "", list(status.details))
