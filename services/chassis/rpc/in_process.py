"""Calls between services of one process, without gRPC between them.

A call is admitted, authenticated, validated and answered as one that comes over the wire, from its bytes on: only the
connection is left out, which costs more than most commands. Streams and calls from outside go over the wire.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, NoReturn, Protocol

import grpc

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.status import as_received

Metadata = Iterable[tuple[str, str]]


class CallableServer(Protocol):
    """A server of this process."""

    async def call(self, name: str, request: bytes, metadata: Metadata) -> bytes:
        """Answer a unary call, or raise a Refusal."""


SERVERS: dict[str, CallableServer] = {}
"""The servers of this process by the address at which they serve it; a stopped one is taken out."""


class InProcessContext:
    """What a handler reads of a call: its metadata; there is no connection with a certificate."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = tuple(metadata)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata of the call."""
        return self._metadata

    def auth_context(self) -> dict[str, Iterable[bytes]]:
        """The properties of the connection: none."""
        return {}


class InProcessChannel(grpc.aio.Channel):
    """A channel to a server of this process, for the stubs of unary RPCs."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __aenter__(self) -> "InProcessChannel":
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""

    async def close(self, grace: float | None = None) -> None:
        """Nothing is open."""

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:  # noqa: ARG002
        """Ready while the server is there."""
        ready = self._address in SERVERS
        return grpc.ChannelConnectivity.READY if ready else grpc.ChannelConnectivity.TRANSIENT_FAILURE

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:  # noqa: ARG002
        """Its state is never waited for."""
        _only_unary()

    async def channel_ready(self) -> None:
        """It is ready from the start."""

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, *_: Any, **__: Any
    ) -> Any:
        """One request, one answer."""
        return _Method(self._address, method, request_serializer, response_deserializer)

    def unary_stream(self, *_: Any, **__: Any) -> Any:
        """Streams go over the wire; a stub may name them, and not call them."""
        return _only_unary

    def stream_unary(self, *_: Any, **__: Any) -> Any:
        """As for `unary_stream`."""
        return _only_unary

    def stream_stream(self, *_: Any, **__: Any) -> Any:
        """As for `unary_stream`."""
        return _only_unary


class _Method:
    """A multicallable of a stub."""

    def __init__(self, address: str, method: str, write: Any, read: Any) -> None:
        self._address = address
        self._name = method
        self._method = method.encode()
        """The name of the attribute in grpc's own multicallables; spans of calls read it."""
        self._write = write
        self._read = read

    async def __call__(self, request: Any, *, timeout: float | None = None, metadata: Metadata = ()) -> Any:  # noqa: ASYNC109 - gRPC's own signature
        """Call it; a failure is a Refusal, as `Peer` makes of gRPC's errors."""
        server = SERVERS.get(self._address)
        if server is None:
            raise Refusal(Reason.UNAVAILABLE, "the service is stopping; try again", retry_after_seconds=0.5)
        try:
            async with asyncio.timeout(timeout):
                return self._read(await server.call(self._name, self._write(request), metadata))
        except TimeoutError:
            raise Refusal(Reason.DEADLINE_EXCEEDED, "the call took too long; try again") from None
        except Refusal as refusal:
            raise as_received(refusal) from None


def _only_unary(*_: Any, **__: Any) -> NoReturn:
    raise NotImplementedError("a channel inside a process is for unary calls")
