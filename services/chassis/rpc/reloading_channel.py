"""A channel whose terms change, its credentials or its address: the next call is made on the terms of that moment."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import grpc

Open = Callable[[Any], grpc.aio.Channel]


class Renewed(Protocol):
    """What a channel is opened with; another object as soon as it has changed."""

    @property
    def value(self) -> Any:
        """What it is now."""


class ReloadingChannel(grpc.aio.Channel):
    """Opened anew when its terms have changed; calls in flight end on the channel that they began on."""

    def __init__(self, terms: Renewed, open_with: Open) -> None:
        self._terms = terms
        self._open_with = open_with
        self._opened = _ChannelGeneration(terms.value, open_with)
        self._retired: set[_ChannelGeneration] = set()

    def current(self) -> "_ChannelGeneration":
        """The channel to call on now."""
        terms = self._terms.value
        if terms is not self._opened.terms:
            before, self._opened = self._opened, _ChannelGeneration(terms, self._open_with)
            self._retired = {old for old in self._retired if not old.is_closing} | {before}
            before.retire()
        return self._opened

    async def __aenter__(self) -> "ReloadingChannel":
        """Itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Close what is open, and what was before."""
        for opened in (self._opened, *self._retired):
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

    def unary_unary(self, method: str, *given: Any, **named: Any) -> Any:
        """One request, one answer."""
        return _Method(self, "unary_unary", method, (given, named))

    def unary_stream(self, method: str, *given: Any, **named: Any) -> Any:
        """One request, many answers."""
        return _Method(self, "unary_stream", method, (given, named))

    def stream_unary(self, method: str, *given: Any, **named: Any) -> Any:
        """Many requests, one answer."""
        return _Method(self, "stream_unary", method, (given, named))

    def stream_stream(self, method: str, *given: Any, **named: Any) -> Any:
        """Many requests, many answers."""
        return _Method(self, "stream_stream", method, (given, named))


class _ChannelGeneration:
    """One channel, and how many calls are under way on it."""

    def __init__(self, terms: Any, open_with: Open) -> None:
        self.terms = terms
        self.channel = open_with(terms)
        self._calls = 0
        self._is_retired = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_closing(self) -> bool:
        """Whether its last call is over."""
        return self._closing is not None

    def begin(self, call: Any) -> Any:
        """Count a call until it is done."""
        self._calls += 1
        call.add_done_callback(self._end)
        return call

    def retire(self) -> None:
        """Take no more calls; close after the last."""
        self._is_retired = True
        self._close_if_idle()

    def _end(self, _call: object) -> None:
        self._calls -= 1
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._is_retired and not self._calls and self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self.channel.close())


class _Method:
    """An RPC of a stub, which outlives the channel that it was made for."""

    def __init__(self, owner: ReloadingChannel, kind: str, method: str, terms: tuple[Any, Any]) -> None:
        self._owner = owner
        self._kind = kind
        self._path = method
        self._method = method.encode()
        """As gRPC's own keep it, for the spans of calls."""
        self._terms = terms
        self._made: tuple[_ChannelGeneration | None, Any] = (None, None)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call it on the newest channel."""
        opened = self._owner.current()
        if self._made[0] is not opened:
            positional, keywords = self._terms
            self._made = (opened, getattr(opened.channel, self._kind)(self._path, *positional, **keywords))
        return opened.begin(self._made[1](*given, **named))
