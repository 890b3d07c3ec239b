"""A channel that is opened again when its credentials or its address change."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import grpc

Open = Callable[[Any], grpc.aio.Channel]


class Reloadable(Protocol):
    """A value that can change; a changed value is another object."""

    @property
    def value(self) -> Any:
        """The current value."""


class ReloadingChannel(grpc.aio.Channel):
    """Opens a new channel when the value changes; calls in flight end on the channel that they began on."""

    def __init__(self, source: Reloadable, open_with: Open) -> None:
        self._source = source
        self._open_with = open_with
        self._newest = _ChannelGeneration(source.value, open_with)
        self._retired: set[_ChannelGeneration] = set()

    def current(self) -> "_ChannelGeneration":
        """The channel for the current value."""
        value = self._source.value
        if value is not self._newest.value:
            before, self._newest = self._newest, _ChannelGeneration(value, self._open_with)
            self._retired = {old for old in self._retired if not old.is_closing} | {before}
            before.retire()
        return self._newest

    async def __aenter__(self) -> "ReloadingChannel":
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Close the newest channel and the retired ones."""
        for opened in (self._newest, *self._retired):
            await opened.channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The state of the newest channel."""
        return self.current().channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait for the newest channel."""
        await self.current().channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the newest channel is connected."""
        await self.current().channel.channel_ready()

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, one answer."""
        return _Method(self, "unary_unary", method, (args, kwargs))

    def unary_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """One request, many answers."""
        return _Method(self, "unary_stream", method, (args, kwargs))

    def stream_unary(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Many requests, one answer."""
        return _Method(self, "stream_unary", method, (args, kwargs))

    def stream_stream(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Many requests, many answers."""
        return _Method(self, "stream_stream", method, (args, kwargs))


class _ChannelGeneration:
    """One channel and the number of its calls in flight."""

    def __init__(self, value: Any, open_with: Open) -> None:
        self.value = value
        self.channel = open_with(value)
        self._calls = 0
        self._is_retired = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_closing(self) -> bool:
        """Whether it is retired and has no call left."""
        return self._closing is not None

    def begin(self, call: Any) -> Any:
        """Count a call as in flight until it is done."""
        self._calls += 1
        call.add_done_callback(self._end)
        return call

    def retire(self) -> None:
        """Close the channel after its last call."""
        self._is_retired = True
        self._close_if_idle()

    def _end(self, _call: object) -> None:
        self._calls -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._is_retired and not self._calls and self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.channel.close())


class _Method:
    """A multicallable of a stub, which outlives the channel that it was created on."""

    def __init__(self, owner: ReloadingChannel, kind: str, method: str, arguments: tuple[Any, Any]) -> None:
        self._owner = owner
        self._kind = kind
        self._path = method
        self._method = method.encode()
        """The name of the attribute in grpc's own multicallables; spans of calls read it."""
        self._arguments = arguments
        self._made: tuple[_ChannelGeneration | None, Any] = (None, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it on the newest channel."""
        opened = self._owner.current()
        if self._made[0] is not opened:
            positional, keywords = self._arguments
            self._made = (opened, getattr(opened.channel, self._kind)(self._path, *positional, **keywords))
        return opened.begin(self._made[1](*args, **kwargs))
