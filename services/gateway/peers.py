"""Calls of the gateway to the services, by the full name of the RPC."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.message import Message

from pointsman.credentials.tokens import Identity
from pointsman.services.chassis.core.config import ClientSettings, PeerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.rpc.status import DETAILS_KEY, refusal_from
from pointsman.services.gateway.contract import Method

Metadata = tuple[tuple[str, str], ...]
DEADLINE_SECONDS = 60.0
RETRY_SECONDS = 1.0


class Peers:
    """Channels to the services, by context."""

    def __init__(self, addresses: PeerSettings, credentials: ClientSettings, identity: Identity | None = None) -> None:
        """Connect to each address once; the identity is shown for callers who have shown no token themselves."""
        unique = {name: str(getattr(addresses, name)) for name in addresses.fields}
        by_address = {
            address: open_channel(address, credentials=credentials, identity=identity)
            for address in set(unique.values())
        }
        self._channels: Mapping[str, grpc.aio.Channel] = {name: by_address[unique[name]] for name in unique}

    async def call(self, method: Method, request: Message, metadata: Metadata) -> Any:
        """One request, one answer."""
        invoke = self._channels[method.context].unary_unary(method.full_name, _write, method.response.FromString)
        try:
            return await invoke(request, timeout=DEADLINE_SECONDS, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise refused(error, method) from None

    async def upload(self, method: Method, requests: AsyncIterator[Message], metadata: Metadata) -> Any:
        """Many requests, one answer; an invalid request ends the call."""
        invoke = self._channels[method.context].stream_unary(method.full_name, _write, method.response.FromString)
        call = invoke(timeout=DEADLINE_SECONDS, metadata=metadata)
        try:
            async for request in requests:
                if call.done():
                    break
                await call.write(request)
            await call.done_writing()
            return await call
        except grpc.aio.AioRpcError as error:
            raise refused(error, method) from None
        except (asyncio.InvalidStateError, grpc.aio.UsageError):
            raise await _early_refusal(call, method) from None
        finally:
            call.cancel()

    def channel(self, method: Method) -> grpc.aio.Channel:
        """The channel to the service of the RPC."""
        return self._channels[method.context]

    def watch(self, method: Method, request: Message, metadata: Metadata) -> grpc.aio.UnaryStreamCall[Any, Any]:
        """One request, a stream of answers; the reader cancels it."""
        invoke = self._channels[method.context].unary_stream(method.full_name, _write, method.response.FromString)
        return invoke(request, metadata=metadata)

    async def close(self) -> None:
        """Close all channels."""
        for channel in set(_values(self._channels)):
            await channel.close()


def refused(error: grpc.aio.AioRpcError, method: Method) -> Refusal:
    """The refusal of a service; without details, a text of our own, because the transport's contains addresses."""
    refusal = refusal_from(error)
    if any(key == DETAILS_KEY for key, _ in error.trailing_metadata() or ()):
        return refusal
    if refusal.reason is Reason.UNIMPLEMENTED:
        return Refusal(refusal.reason, f"{method.full_name} is not offered", metadata={"method": method.full_name})
    text = f"the {method.context} service is out of reach, or what was sent is not for it"
    return Refusal(refusal.reason, text, retry_after_seconds=RETRY_SECONDS)


async def _early_refusal(call: grpc.aio.StreamUnaryCall[Any, Any], method: Method) -> Refusal:
    """Why a service answered before everything was sent."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return refused(error, method)
    return Refusal(Reason.INVALID_FIELD, "the service answered before everything was sent")


def _values(channels: Mapping[str, grpc.aio.Channel]) -> Iterable[grpc.aio.Channel]:
    return channels.values()


def _write(message: Message) -> bytes:
    return message.SerializeToString()
