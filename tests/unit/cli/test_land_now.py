"""`deliver` waits for its entry and for its integrator, whichever comes first."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.cli.session.landing import land_now

ENTRY = pb.Entry(id="entry_1", state=pb.ENTRY_STATE_QUEUED)


def client_with(*states: pb.EntryState.ValueType) -> Any:
    """A client whose entry goes through states, and then stays."""
    left = list(states)

    async def watch(_entry_id: str) -> AsyncIterator[None]:
        while left:
            yield None
        await asyncio.Event().wait()

    async def get(entry_id: str) -> pb.Entry:
        return pb.Entry(id=entry_id, state=left.pop(0))

    return SimpleNamespace(landing=SimpleNamespace(watch=watch, get=get))


async def test_an_integrator_that_breaks_ends_the_command_with_its_error() -> None:
    async def run(_client: Any, _until: Any) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await land_now(client_with(), ENTRY, SimpleNamespace(run=run))  # type: ignore[arg-type]


async def test_an_entry_that_is_settled_ends_the_integrator() -> None:
    ended = asyncio.Event()

    async def run(_client: Any, _until: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    client = client_with(pb.ENTRY_STATE_PROVING, pb.ENTRY_STATE_ASKED)
    (entry,) = await land_now(client, ENTRY, SimpleNamespace(run=run))  # type: ignore[arg-type]
    assert (entry.state, ended.is_set()) == (pb.ENTRY_STATE_ASKED, True)
