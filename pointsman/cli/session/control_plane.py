"""The control plane that a command talks to: the one named, the one that runs, or one inside the command."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

import grpc

from pointsman.cli.exit_codes import EXIT_UNREACHABLE
from pointsman.cli.session.attached_commands import STEP_SECONDS, staying
from pointsman.cli.session.embedding import GUESTS, Host, kept_up, say_so
from pointsman.services.all_in_one import CONTEXTS, build_all
from pointsman.services.chassis.core.config import PeerSettings, ServerSettings, StoreSettings, load
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.rpc.reloading_channel import ReloadingChannel
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.file_lock import StoreLock, owner_of

LOCK = "pointsman.lock"
OWNER_SECONDS = 60.0
REACH_SECONDS = 5.0


class Absent(StrEnum):
    """What a command does while no control plane runs on the data directory (ADR 0013)."""

    HOST = "host"
    """Has one inside that others can use until the command ends, and says so."""
    PRIVATE = "private"
    """Opens the stores for the moment, for itself alone."""
    WAIT = "wait"
    """Waits for one, and says how to start it."""
    REFUSE = "refuse"
    """Ends, and says how to start one."""


@dataclass(frozen=True, slots=True)
class Plane:
    """Channels to the four services, by name."""

    channels: Mapping[str, grpc.aio.Channel]
    address: str
    embedded: bool

    def say_so(self) -> None:
        """Tell that the control plane is inside this command, where it is."""
        if self.embedded:
            say_so(load(StoreSettings).directory)


class AnnouncedAddress:
    """Where the owner of the data directory serves, read again with every call; the last place while nobody does."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._address = ""

    @property
    def value(self) -> str:
        """The address."""
        owner = owner_of(self._lock)
        if owner is not None and owner.address not in ("", self._address):
            self._address = owner.address
        return self._address


@asynccontextmanager
async def control_plane(server: str = "", *, absent: Absent = Absent.PRIVATE) -> AsyncIterator[Plane]:
    """The control plane at `server` (or POINTSMAN_SERVER); else that of the data directory; else what `absent` says."""
    address = server or os.environ.get("POINTSMAN_SERVER", "")
    lock = load(StoreSettings).directory / LOCK
    async with AsyncExitStack() as stack:
        if address:
            yield await stack.enter_async_context(_connected(address, lambda: open_channel(address)))
            return
        embedded = await _reach(lock, absent, stack)
        if isinstance(embedded, StoreLock):
            yield await stack.enter_async_context(_private())
            return
        announced = AnnouncedAddress(lock)
        plane = _connected(announced.value, lambda: ReloadingChannel(announced, open_channel), embedded=embedded)
        yield await stack.enter_async_context(plane)


async def _reach(lock: Path, absent: Absent, stack: AsyncExitStack) -> StoreLock | bool:
    """Come to a control plane that serves, and say whether it is inside this command; or the claim to a private one."""
    if absent is Absent.HOST:
        host = Host(lock, build_all(load(StoreSettings)))
        await _until_served(lock, host)
        await stack.enter_async_context(kept_up(host, lock.with_name(GUESTS)))
        return host.serves
    if absent is Absent.WAIT:
        await _wait_for_one(lock)
        return False
    claim = await _claim_or_visit(lock, stack)
    if claim is not None and absent is Absent.REFUSE:
        refuse_without_plane()
    return claim if claim is not None else False


async def _until_served(lock: Path, host: Host) -> None:
    """Have a control plane inside, unless there is one; one that starts or ends is waited for."""
    deadline = asyncio.get_running_loop().time() + OWNER_SECONDS
    while not await host.serve() and not await _address_of_owner(lock):
        if asyncio.get_running_loop().time() > deadline:
            _end_unreachable(lock)
        await asyncio.sleep(STEP_SECONDS)


async def _wait_for_one(lock: Path) -> None:
    """Wait until a control plane serves, however long that takes."""
    is_told = False
    while not await _address_of_owner(lock):
        if not is_told:
            is_told = True
            print(
                f"waiting for a control plane on {lock.parent}; `pointsman up` starts one, --server names another",
                file=sys.stderr,
                flush=True,
            )
        await asyncio.sleep(STEP_SECONDS)


async def _claim_or_visit(lock: Path, stack: AsyncExitStack) -> StoreLock | None:
    """The right to open the stores, or none where another process serves: that one stays while this command is its guest."""
    deadline = asyncio.get_running_loop().time() + OWNER_SECONDS
    while True:
        try:
            return stack.enter_context(StoreLock(lock, yields=True))
        except Refusal as refusal:
            if refusal.reason is not Reason.UNAVAILABLE:
                raise
        with ExitStack() as visit:
            visit.enter_context(staying(lock.with_name(GUESTS)))
            if await _address_of_owner(lock):
                stack.enter_context(visit.pop_all())
                return None
        if asyncio.get_running_loop().time() > deadline:
            _end_unreachable(lock)
        await asyncio.sleep(STEP_SECONDS)


def refuse_without_plane(besides: str = "") -> NoReturn:
    """End a command that needs a control plane which runs, with the command that starts one."""
    directory = load(StoreSettings).directory
    print(f"pointsman: no control plane runs on {directory}; start one: pointsman up{besides}", file=sys.stderr)
    sys.exit(EXIT_UNREACHABLE)


def _end_unreachable(lock: Path) -> NoReturn:
    owner = owner_of(lock)
    who = f"process {owner.pid}" if owner else "another process"
    print(f"pointsman: {lock.parent} is in use by {who}, which does not serve; stop it, or wait", file=sys.stderr)
    sys.exit(EXIT_UNREACHABLE)


async def _address_of_owner(lock: Path) -> str:
    """Where the owner serves, if it does."""
    owner = owner_of(lock)
    return owner.address if owner is not None and owner.address and await _serves(owner.address) else ""


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
async def _private() -> AsyncIterator[Plane]:
    """A control plane that no other process is told of."""
    running = await start(build_all(load(StoreSettings)), ServerSettings(port=0))
    channel = open_channel(running.address)
    try:
        yield Plane(dict.fromkeys(CONTEXTS, channel), running.address, embedded=True)
    finally:
        await channel.close()
        await running.stop()


@asynccontextmanager
async def _connected(
    address: str, open_common: Callable[[], grpc.aio.Channel], *, embedded: bool = False
) -> AsyncIterator[Plane]:
    """Channels to the services at one address, or where POINTSMAN_PEERS_* say that one of them is."""
    peers, common = load(PeerSettings), open_common()
    own = {name: open_channel(getattr(peers, name)) for name in CONTEXTS if getattr(peers, name)}
    try:
        for name in CONTEXTS:
            await _require(own.get(name, common), name, getattr(peers, name) or address)
        yield Plane({name: own.get(name, common) for name in CONTEXTS}, address, embedded)
    finally:
        for channel in (common, *own.values()):
            await channel.close()


async def _require(channel: grpc.aio.Channel, name: str, address: str) -> None:
    try:
        async with asyncio.timeout(REACH_SECONDS):
            await channel.channel_ready()
    except TimeoutError:
        print(f"pointsman: cannot reach the {name} service at {address}; is it running?", file=sys.stderr)
        sys.exit(EXIT_UNREACHABLE)
