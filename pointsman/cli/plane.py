"""The control plane that a command talks to: the one named, the one that runs, or one embedded for the moment."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from pointsman.cli import EXIT_UNREACHABLE
from pointsman.cli.guests import STEP_SECONDS, guests_gone, staying
from pointsman.services.chassis.config import PeerSettings, ServerSettings, StoreSettings, load
from pointsman.services.chassis.owner import Claim, owner_of
from pointsman.services.chassis.peer import open_channel
from pointsman.services.chassis.refusals import Reason, Refusal
from pointsman.services.chassis.service import Service, start

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
LOCK = "pointsman.lock"
GUESTS = "pointsman.guests"
OWNER_SECONDS = 15.0
REACH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Plane:
    """Channels to the four services, by name."""

    channels: dict[str, grpc.aio.Channel]
    address: str
    embedded: bool


@asynccontextmanager
async def control_plane(server: str = "", *, brief: bool = True) -> AsyncIterator[Plane]:
    """The control plane at `server` (or POINTSMAN_SERVER); else the one that owns the data directory; else our own.

    One inside another command waits with its end for those who are brief.
    """
    address = server or os.environ.get("POINTSMAN_SERVER", "")
    if address:
        async with _connected(address) as plane:
            yield plane
        return
    async with AsyncExitStack() as stack:
        found = await _claim_or_address(load(StoreSettings).directory / LOCK, stack, brief=brief)
        if isinstance(found, Claim):
            yield await stack.enter_async_context(_embedded(found))
        else:
            yield await stack.enter_async_context(_connected(found))


async def _claim_or_address(lock: Path, stack: AsyncExitStack, *, brief: bool) -> Claim | str:
    """The data directory, or where its owner serves; an owner that starts or ends is waited for."""
    deadline = asyncio.get_running_loop().time() + OWNER_SECONDS
    while True:
        try:
            return stack.enter_context(Claim(lock))
        except Refusal as refusal:
            if refusal.reason is not Reason.UNAVAILABLE:
                raise
            if address := await _address_of_owner(lock, stack, brief=brief):
                return address
            if asyncio.get_running_loop().time() > deadline:
                print(f"pointsman: {refusal.message}", file=sys.stderr)
                sys.exit(EXIT_UNREACHABLE)
        await asyncio.sleep(STEP_SECONDS)


async def _address_of_owner(lock: Path, stack: AsyncExitStack, *, brief: bool) -> str:
    """Where the owner serves, if it does; it stays there as long as a brief command is its guest."""
    with ExitStack() as visit:
        if brief:
            visit.enter_context(staying(lock.with_name(GUESTS)))
        owner = owner_of(lock)
        if owner is None or not owner.address or not await _serves(owner.address):
            return ""
        stack.enter_context(visit.pop_all())
        return owner.address


async def _serves(address: str) -> bool:
    """Whether somebody answers there: whoever was killed has left an address behind."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(REACH_SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True


@asynccontextmanager
async def _embedded(claim: Claim) -> AsyncIterator[Plane]:
    running = await start(build_all(load(StoreSettings), CONTEXTS), ServerSettings(port=0))
    claim.announce(running.address)
    channel = open_channel(running.address)
    try:
        yield Plane(dict.fromkeys(CONTEXTS, channel), running.address, embedded=True)
    finally:
        claim.announce("")
        await guests_gone(load(StoreSettings).directory / GUESTS)
        await channel.close()
        await running.stop()


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Plane]:
    peers = load(PeerSettings).all_at(address)
    channels = {name: open_channel(getattr(peers, name)) for name in CONTEXTS}
    try:
        for name, channel in channels.items():
            await _require(channel, name, getattr(peers, name))
        yield Plane(channels, address, embedded=False)
    finally:
        for channel in channels.values():
            await channel.close()


async def _require(channel: grpc.aio.Channel, name: str, address: str) -> None:
    try:
        async with asyncio.timeout(REACH_SECONDS):
            await channel.channel_ready()
    except TimeoutError:
        print(f"pointsman: cannot reach the {name} service at {address}; is it running?", file=sys.stderr)
        sys.exit(EXIT_UNREACHABLE)


def build_all(stores: StoreSettings, contexts: Sequence[str]) -> Callable[[str], Sequence[Service]]:
    """A function that wires the named services, for a process that listens at the address it is given."""

    def build(address: str) -> Sequence[Service]:
        return [build_one(name, stores, address) for name in contexts]

    return build


def build_one(name: str, stores: StoreSettings, address: str) -> Service:
    """One service, by the name of its context."""
    if name == "router":
        from pointsman.services.router.__main__ import build as build_router
        from pointsman.services.router.config import RouterSettings

        return build_router(stores, load(RouterSettings))
    if name == "workflow":
        from pointsman.services.workflow.__main__ import build as build_workflow
        from pointsman.services.workflow.config import WorkflowSettings

        return build_workflow(stores, load(WorkflowSettings))
    if name == "pipeline":
        from pointsman.services.pipeline.__main__ import build as build_pipeline
        from pointsman.services.pipeline.config import PipelineSettings

        return build_pipeline(stores, load(PipelineSettings))
    from pointsman.services.orchestrator.__main__ import build as build_orchestrator
    from pointsman.services.orchestrator.config import OrchestratorSettings

    return build_orchestrator(stores, load(OrchestratorSettings), load(PeerSettings).all_at(address))
