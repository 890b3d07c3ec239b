"""A typed client for the control plane: `async with connect() as client: await client.runs.get(…)`.

Every call has a deadline; every mutation carries a request_id and is tried again with the same one while the outcome
is unknown, so it happens once. `client.runs.watch` goes on by itself after a lost connection. What the server refuses
is raised as one of the exceptions in `pointsman.client.errors`, with its reason and metadata.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc

from pointsman.client.agents import Agents
from pointsman.client.artifacts import Artifacts
from pointsman.client.calls import Calls, Terms, new_request_id
from pointsman.client.connection import OpenAs, opener
from pointsman.client.errors import (
    CallFailed,
    NotFound,
    RetryableError,
    StateForbids,
    TerminalError,
    Unavailable,
    WrongContent,
)
from pointsman.client.landing import Landing
from pointsman.client.pipeline import Pipelines
from pointsman.client.router import Router
from pointsman.client.runs import Again, Order, Reply, Runs, RunsChange
from pointsman.client.schedules import Schedules
from pointsman.client.workflow import Workflows
from pointsman.credentials.folder import CredentialRole

__all__ = [
    "Again",
    "CallFailed",
    "Client",
    "NotFound",
    "Order",
    "Reply",
    "RetryableError",
    "RunsChange",
    "StateForbids",
    "TerminalError",
    "Terms",
    "Unavailable",
    "WrongContent",
    "connect",
    "new_request_id",
]


class Client:
    """Every service of the control plane, on one channel."""

    def __init__(self, channel: grpc.aio.Channel, terms: Terms | None = None, open_as: OpenAs | None = None) -> None:
        """Calls go over the channel; `open_as` opens others, for agents, which are principals of their own."""
        self.terms = terms or Terms()
        self._open_as = open_as
        calls = Calls(channel, self.terms)
        self.channel = channel
        self.runs = Runs(calls)
        self.agents = Agents(calls)
        self.artifacts = Artifacts(calls)
        self.landing = Landing(calls)
        self.schedules = Schedules(calls)
        self.router = Router(calls)
        self.workflow = Workflows(calls)
        self.pipeline = Pipelines(calls)

    def on(self, **terms: Any) -> "Client":
        """The same channel with other terms."""
        return Client(self.channel, replace(self.terms, **terms), self._open_as)

    @asynccontextmanager
    async def acting_as(self, role: CredentialRole, agent_id: str) -> AsyncIterator["Client"]:
        """A client of the same control plane that is one agent of a role; itself, if it cannot open channels."""
        if self._open_as is None:
            yield self
            return
        channel = self._open_as(role, agent_id)
        try:
            yield Client(channel, self.terms, self._open_as)
        finally:
            await channel.close()


@asynccontextmanager
async def connect(
    address: str = "",
    terms: Terms | None = None,
    credentials: grpc.ChannelCredentials | None = None,
    *,
    role: str = CredentialRole.OPERATOR,
    data: Path | None = None,
) -> AsyncIterator[Client]:
    """A client of the control plane at an address, or of the one that runs on the data directory.

    It shows the credentials that are given, else those that POINTSMAN_CLIENT_* name, else a token of the data directory
    for the role: `operator`, `coder`, or `coder/box-1` for one agent.
    """
    open_as = opener(address, credentials, data)
    name, _, agent_id = role.partition("/")
    channel = open_as(CredentialRole(name), agent_id)
    try:
        yield Client(channel, terms, open_as)
    finally:
        await channel.close()
