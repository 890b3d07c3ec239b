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
from pointsman.client.artifacts import Artifacts
from pointsman.client.calls import Calls, Terms, new_request_id
from pointsman.client.errors import (
    CallFailed,
    NotFound,
    RetryableError,
    StateForbids,
    TerminalError,
    Unavailable,
    WrongContent,
)
from pointsman.client.pipeline import Pipelines
from pointsman.client.router import Router
from pointsman.client.runs import Order, Reply, Runs
from pointsman.client.workflow import Workflows

__all__ = [
    "CallFailed",
    "Client",
    "NotFound",
    "Order",
    "Reply",
    "RetryableError",
    "StateForbids",
    "TerminalError",
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
    """Every service of the control plane, on one channel."""

    def __init__(self, channel: grpc.aio.Channel, terms: Terms | None = None) -> None:
        self.terms = terms or Terms()
        calls = Calls(channel, self.terms)
        self.channel = channel
        self.runs = Runs(calls)
        self.agents = Agents(calls)
        self.artifacts = Artifacts(calls)
        self.router = Router(calls)
        self.workflow = Workflows(calls)
        self.pipeline = Pipelines(calls)

    def on(self, **terms: Any) -> "Client":
        """The same channel with other terms."""
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
