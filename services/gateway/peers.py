"""The services behind the gateway: one channel each, every RPC called by its name."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import grpc
from google.protobuf.message import Message

from pointsman.services.chassis.config import PeerSettings
from pointsman.services.chassis.errors import refusal_from
from pointsman.services.chassis.peer import open_channel
from pointsman.services.gateway.contract import Method

Metadata = tuple[tuple[str, str], ...]
DEADLINE_SECONDS = 60.0


class Peers:
    """Channels to the services, by context."""

    def __init__(self, addresses: PeerSettings) -> None:
        unique = {name: str(getattr(addresses, name)) for name in type(addresses).model_fields}
        by_address = {address: open_channel(address) for address in set(unique.values())}
        self._channels: Mapping[str, grpc.aio.Channel] = {name: by_address[unique[name]] for name in unique}

    async def call(self, method: Method, request: Message, metadata: Metadata) -> Any:
        """One request, one answer."""
        invoke = self._channels[method.context].unary_unary(method.full_name, _write, method.response.FromString)
        try:
            return await invoke(request, timeout=DEADLINE_SECONDS, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise refusal_from(error) from None

    async def upload(self, method: Method, requests: AsyncIterator[Message], metadata: Metadata) -> Any:
        """Many requests, one answer."""
        invoke = self._channels[method.context].stream_unary(method.full_name, _write, method.response.FromString)
        try:
            return await invoke(requests, timeout=DEADLINE_SECONDS, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise refusal_from(error) from None

    def watch(self, method: Method, request: Message, metadata: Metadata) -> grpc.aio.UnaryStreamCall[Any, Any]:
        """One request, a stream of answers; cancel it when nobody reads on."""
        invoke = self._channels[method.context].unary_stream(method.full_name, _write, method.response.FromString)
        return invoke(request, metadata=metadata)

    async def close(self) -> None:
        """Let go of all services."""
        for channel in set(_values(self._channels)):
            await channel.close()


def _values(channels: Mapping[str, grpc.aio.Channel]) -> Iterable[grpc.aio.Channel]:
    return channels.values()


def _write(message: Message) -> bytes:
    return message.SerializeToString()
