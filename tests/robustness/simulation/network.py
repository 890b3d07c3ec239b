"""Calls between processes, and from the actors: real messages, real checks, and a network that does not keep its word."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from pointsman.services.chassis.core.caller import EVERY_CAPABILITY, Caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.status import DETAILS_KEY, GRPC_CODES, status_of
from pointsman.services.chassis.rpc.validation import deserializer, read_metadata, validate
from tests.robustness.simulation.world import Chance

Handler = Callable[[Any, Caller], Awaitable[Any]]
PATIENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC as its server has it."""

    name: str
    behaviour: Handler
    shape: "Shape"


@dataclass(frozen=True, slots=True)
class Shape:
    """What its descriptor says of an RPC."""

    name: str
    behaviour: str
    read: Callable[[bytes], Any]
    has_request_id: bool


class Door:
    """Where a process takes calls; closed while it is dead."""

    def __init__(self, context: Context, bugs: list[str]) -> None:
        self._context = context
        self._bugs = bugs
        self._methods: dict[str, Method] = {}
        self.open = False

    def offer(self, service: ServiceDescriptor, servicer: object) -> None:
        """Serve every unary RPC of a service."""
        for shape in _shapes(service):
            self._methods[shape.name] = Method(shape.name, getattr(servicer, shape.behaviour), shape)

    def answer(self, name: str, data: bytes, metadata: Any) -> "asyncio.Task[bytes]":
        """Start to serve a call in the process's own context."""
        served = self._serve(self._methods.get(name), data, metadata)
        return asyncio.get_running_loop().create_task(served, context=self._context.copy())

    async def _serve(self, method: Method | None, data: bytes, metadata: Any) -> bytes:
        if not self.open or method is None:
            raise _refused(Refusal(Reason.UNAVAILABLE, "the process is dead"))
        try:
            answer = await method.behaviour(*_admitted(method, data, metadata))
        except Refusal as refusal:
            raise _refused(refusal) from None
        except Exception as error:
            self._bugs.append(f"{method.name}: {error!r}")
            raise
        sent: bytes = answer.SerializeToString()
        return sent


@cache
def _shapes(service: ServiceDescriptor) -> tuple[Shape, ...]:
    """The unary RPCs of a service."""
    return tuple(
        Shape(
            f"/{service.full_name}/{method.name}",
            method.name,
            deserializer(GetMessageClass(method.input_type)),
            "request_id" in method.input_type.fields_by_name,
        )
        for method in service.methods
        if not method.server_streaming and not method.client_streaming
    )


def _admitted(method: Method, data: bytes, metadata: Any) -> tuple[Any, Caller]:
    """The valid request and its caller, as the chassis' server makes them."""
    request = validate(method.shape.read(data), method.name)
    project, traceparent = read_metadata(metadata)
    caller = Caller("local", project, traceparent=traceparent, capabilities=frozenset({EVERY_CAPABILITY}))
    if not method.shape.has_request_id:
        return request, caller
    body = method.name.encode() + request.SerializeToString(deterministic=True)
    fingerprint = hashlib.blake2b(body, digest_size=16).hexdigest()
    return request, replace(caller, request_id=request.request_id, fingerprint=fingerprint)


class Wire:
    """Stands in for a gRPC channel to one door."""

    def __init__(self, door: Callable[[], Door], chance: Chance) -> None:
        self._door = door
        self._chance = chance

    def unary_unary(self, name: str, request_serializer: Any, response_deserializer: Any, **_: Any) -> Any:
        """A function that calls one RPC."""

        async def call(request: Any, **terms: Any) -> Any:
            data = request_serializer(request)
            patience_seconds = terms.get("timeout", PATIENCE_SECONDS)
            return response_deserializer(await self._carry(name, data, patience_seconds, terms.get("metadata", ())))

        return call

    unary_stream = stream_unary = unary_unary

    async def _carry(self, name: str, data: bytes, patience_seconds: float, metadata: Any) -> bytes:
        fate = self._chance.fate()
        await asyncio.sleep(fate.there_seconds)
        if fate.lost_there:
            raise _broken(grpc.StatusCode.UNAVAILABLE)
        if fate.again_after_seconds:
            loop = asyncio.get_running_loop()
            loop.call_later(fate.again_after_seconds, lambda: _forget(self._door().answer(name, data, metadata)))
        serving = self._door().answer(name, data, metadata)
        done, _ = await asyncio.wait((serving,), timeout=patience_seconds)
        await asyncio.sleep(fate.back_seconds)
        if not done:
            _forget(serving)
            raise _broken(grpc.StatusCode.DEADLINE_EXCEEDED)
        return _result(serving, lost=fate.lost_back)


def _result(serving: "asyncio.Task[bytes]", *, lost: bool) -> bytes:
    failure = None if serving.cancelled() else serving.exception()
    if serving.cancelled() or lost:
        raise _broken(grpc.StatusCode.UNAVAILABLE)
    if failure is None:
        return serving.result()
    raise failure if isinstance(failure, grpc.aio.AioRpcError) else _broken(grpc.StatusCode.INTERNAL)


def _forget(serving: "asyncio.Task[bytes]") -> None:
    """Nobody is there any more to take the answer."""
    serving.add_done_callback(lambda task: task.cancelled() or task.exception())


def _refused(refusal: Refusal) -> grpc.aio.AioRpcError:
    status = status_of(refusal)
    trailers = grpc.aio.Metadata((DETAILS_KEY, status.SerializeToString()))
    return grpc.aio.AioRpcError(GRPC_CODES[refusal.code], grpc.aio.Metadata(), trailers, status.message)


def _broken(code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "the network")
