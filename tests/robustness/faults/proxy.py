"""A wire that loses, doubles, delays and reorders calls, between any caller and any service; it knows bytes, no messages."""

import asyncio
import contextlib
import random  # noqa: TID251 - a campaign is repeated from its seed
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from pointsman.api.orchestrator.v1 import agent_pb2, artifact_pb2, landing_pb2, mock_pb2, orchestrator_pb2, schedule_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.router.v1 import router_pb2
from pointsman.api.workflow.v1 import workflow_pb2
from tests.helpers.limits import scaled

OPTIONS = [
    ("grpc.max_receive_message_length", 8 * 1024 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.so_reuseport", 0),
]
MODULES = (
    agent_pb2, artifact_pb2, landing_pb2, mock_pb2, orchestrator_pb2, pipeline_pb2, router_pb2, schedule_pb2,
    workflow_pb2,
)  # fmt: skip
PASSED_ON = ("pointsman-", "traceparent", "authorization")
SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service for module in MODULES for service in module.DESCRIPTOR.services_by_name.values()
)
STREAMS = frozenset(
    f"/{service.full_name}/{method.name}"
    for service in SERVICES
    for method in service.methods
    if method.server_streaming
)


@dataclass(slots=True)
class Weather:
    """How bad the wire is now: the share of calls to which each thing happens."""

    lose_request: float = 0.0
    lose_answer: float = 0.0
    double: float = 0.0
    delay: float = 0.0
    max_delay_seconds: float = 0.0
    unreachable: bool = False
    done: Counter[str] = field(default_factory=Counter)

    def calm(self) -> None:
        """Everything passes."""
        self.lose_request = self.lose_answer = self.double = self.delay = 0.0
        self.unreachable = False


STORMY = {"lose_request": 0.05, "lose_answer": 0.1, "double": 0.1, "delay": 0.2, "max_delay_seconds": 0.5}


class Wire:
    """One service as its callers see it."""

    def __init__(self, target: str, weather: Weather, chance: random.Random) -> None:
        self._channel = grpc.aio.insecure_channel(target, options=OPTIONS)
        self._weather = weather
        self._chance = chance
        self._server = grpc.aio.server(options=OPTIONS)
        self._server.add_generic_rpc_handlers((_Handlers(self),))
        self._repeats: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> None:
        """Take calls."""
        self._server.add_insecure_port(f"127.0.0.1:{port}")
        await self._server.start()

    async def stop(self) -> None:
        """Let everything go."""
        for task in self._repeats:
            task.cancel()
        await self._server.stop(0)
        await self._channel.close()

    def _happens(self, what: str) -> bool:
        happens = bool(self._chance.random() < getattr(self._weather, what))
        self._weather.done[what] += happens
        return happens

    async def unary(self, method: str, request: bytes, context: Any) -> bytes:
        """Pass one call on, as the weather allows."""
        await self._require_reachable(context)
        if self._happens("lose_request"):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the wire lost the request")
        if self._happens("delay"):
            await asyncio.sleep(self._chance.random() * self._weather.max_delay_seconds)
        if self._happens("double"):
            self._repeat_later(method, request, _metadata(context))
        try:
            answer: bytes = await self._call(method)(request, metadata=_metadata(context), timeout=_left(context))
        except grpc.aio.AioRpcError as error:
            await _pass_on(error, context)
            raise
        if self._happens("lose_answer"):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the wire lost the answer")
        return answer

    async def stream(self, method: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Pass a stream on."""
        await self._require_reachable(context)
        call: Any = self._streams(method)(request, metadata=_metadata(context))
        try:
            async for item in call:
                if self._weather.unreachable:
                    break
                yield item
        except grpc.aio.AioRpcError as error:
            await _pass_on(error, context)
        finally:
            call.cancel()
        await self._require_reachable(context)

    async def _require_reachable(self, context: Any) -> None:
        if self._weather.unreachable:
            self._weather.done["unreachable"] += 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the wire is cut")

    def _call(self, method: str) -> Callable[..., Any]:
        call: Callable[..., Any] = self._channel.unary_unary(method)
        return call

    def _streams(self, method: str) -> Callable[..., Any]:
        call: Callable[..., Any] = self._channel.unary_stream(method)
        return call

    def _repeat_later(self, method: str, request: bytes, metadata: tuple[tuple[str, str], ...]) -> None:
        """The same bytes once more, some time later, whatever comes of it."""
        wait_seconds = self._chance.random() * self._weather.max_delay_seconds

        async def repeat() -> None:
            await asyncio.sleep(wait_seconds)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await self._call(method)(request, metadata=metadata, timeout=scaled(10))

        task = asyncio.create_task(repeat())
        self._repeats.add(task)
        task.add_done_callback(self._repeats.discard)


class _Handlers(grpc.GenericRpcHandler):
    """Every method there is, as bytes."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def service(self, handler_call_details: Any) -> Any:
        """The handler of one call."""
        method = handler_call_details.method
        wire = self._wire

        async def stream_on(request: bytes, context: Any) -> AsyncIterator[bytes]:
            async for item in wire.stream(method, request, context):
                yield item

        if method in STREAMS:
            return grpc.unary_stream_rpc_method_handler(stream_on)

        async def pass_on(request: bytes, context: Any) -> bytes:
            return await wire.unary(method, request, context)

        return grpc.unary_unary_rpc_method_handler(pass_on)


def _metadata(context: Any) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in context.invocation_metadata() if key.startswith(PASSED_ON))


def _left(context: Any) -> float | None:
    seconds = context.time_remaining()
    return None if seconds is None else max(0.001, seconds)


async def _pass_on(error: grpc.aio.AioRpcError, context: Any) -> None:
    """The service's own words, details included."""
    await context.abort(error.code(), error.details() or "", tuple(error.trailing_metadata() or ()))
