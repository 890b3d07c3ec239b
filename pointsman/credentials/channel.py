"""Channels to a control plane of this machine, which show a token with every call."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

import grpc

from pointsman.credentials.tokens import Identity, Token, TokenSource

UNIX = "unix:"
AUTHORIZATION = "authorization"
Options = Sequence[tuple[str, str | int]]


def is_local(address: str) -> bool:
    """Whether only this machine serves the address."""
    if address.startswith(UNIX):
        return True
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_local(address: str, identity: Identity, options: Options) -> grpc.aio.Channel | None:
    """A channel that shows tokens of the identity; None for another machine, or where nobody has made credentials.

    A token leaves this process only over a Unix socket, or over TLS to the pinned certificate.
    """
    if not is_local(address) or not identity.folder.is_complete:
        return None
    given: Any = options
    if address.startswith(UNIX):
        channel = grpc.aio.insecure_channel(address, options=given)
    else:
        pinned = grpc.ssl_channel_credentials(identity.folder.authority.read_bytes())
        channel = grpc.aio.secure_channel(address, pinned, options=given)
    return AuthorizedChannel(channel, TokenSource(identity))


class AuthorizedChannel(grpc.aio.Channel):
    """Adds a bearer token to the metadata of every call that has none.

    A plugin of gRPC (`metadata_call_credentials`) would do the same on a thread of its own, at less than half the speed.
    """

    def __init__(self, channel: grpc.aio.Channel, token: Token) -> None:
        self._channel = channel
        self._token = token

    async def __aenter__(self) -> "AuthorizedChannel":
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Close the channel below."""
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The state of the channel below."""
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait for the channel below."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the channel below is connected."""
        await self._channel.channel_ready()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, one answer."""
        return _Method(self._channel.unary_unary(method, *args, **kwargs), self._token)

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, many answers."""
        return _Method(self._channel.unary_stream(method, *args, **kwargs), self._token)

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Many requests, one answer."""
        return _Method(self._channel.stream_unary(method, *args, **kwargs), self._token)

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Many requests, many answers."""
        return _Method(self._channel.stream_stream(method, *args, **kwargs), self._token)


class _Method:
    """A multicallable whose calls carry the token."""

    def __init__(self, callable_below: Callable[..., Any], token: Token) -> None:
        self._callable = callable_below
        self._token = token
        self._method = getattr(callable_below, "_method", b"")
        """The name of the attribute in grpc's own multicallables; spans of calls read it."""

    def __call__(self, *args: Any, metadata: Any = None, **kwargs: Any) -> Any:
        """Call it with the token."""
        given = tuple(metadata or ())
        if all(key != AUTHORIZATION for key, _ in given):
            given = (*given, (AUTHORIZATION, f"Bearer {self._token.value}"))
        return self._callable(*args, metadata=given, **kwargs)
