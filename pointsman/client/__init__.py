"""A typed client for the control plane: `async with connect("127.0.0.1:7460") as client: await client.runs.get(…)`.

Every call has a deadline; every mutation carries a request_id and is tried again with the same one while the outcome
is unknown, so it happens once. `client.runs.watch` goes on by itself after a lost connection. What the server refuses
is raised as one of the exceptions in `pointsman.client.errors`, with its reason and metadata.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc

from pointsman.client.agents import Agents
from pointsman.client.artifacts import Artifacts, WrongContent
from pointsman.client.calls import Calls, Terms, new_request_id
from pointsman.client.errors import CallFailed, NotFound, StateForbids, Unavailable
from pointsman.client.runs import Order, Reply, Runs

__all__ = [
    "CallFailed",
    "Client",
    "NotFound",
    "Order",
    "Reply",
    "StateForbids",
    "Terms",
    "Unavailable",
    "WrongContent",
    "connect",
    "new_request_id",
]

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
]


class Client:
    """The control plane's three faces for users and agents, on one channel."""

    def __init__(self, channel: grpc.aio.Channel, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        calls = Calls(channel, self.terms)
        self.channel = channel
        self.runs = Runs(calls)
        self.agents = Agents(calls)
        self.artifacts = Artifacts(calls)

    def on(self, **terms: Any) -> "Client":
        """The same channel on other terms."""
        return Client(self.channel, replace(self.terms, **terms))


@asynccontextmanager
async def connect(
    address: str, terms: Terms | None = None, credentials: grpc.ChannelCredentials | None = None
) -> AsyncIterator[Client]:
    """A client of the control plane at an address; without credentials only for loopback or a trusted network."""
    if credentials is None:
        channel = grpc.aio.insecure_channel(address, options=OPTIONS)
    else:
        channel = grpc.aio.secure_channel(address, credentials, options=OPTIONS)
    try:
        yield Client(channel, terms)
    finally:
        await channel.close()
