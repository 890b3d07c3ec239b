"""Finds the control plane for a command: a named one, the running one, or an embedded one."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NoReturn

import grpc

from pointsman._shared.reloading_channel import ReloadingChannel
from pointsman.cli.exit_codes import EXIT_UNREACHABLE
from pointsman.cli.session.attached_commands import STEP_SECONDS, attached
from pointsman.cli.session.embedding import ATTACHED_FILE, EmbeddedPlane, announce_embedded, supervised
from pointsman.client import Client, Terms
from pointsman.credentials.channel import UNIX, is_local
from pointsman.credentials.folder import CredentialRole
from pointsman.credentials.location import LOCK, AnnouncedAddress, owner_of
from pointsman.services.all_in_one import CONTEXTS, build_all
from pointsman.services.chassis.core.config import ClientSettings, PeerSettings, ServerSettings, StoreSettings, load
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.client import open_channel, own_identity
from pointsman.services.chassis.storage.file_lock import StoreLock

OWNER_SECONDS = 60.0
REACH_SECONDS = 5.0


class Absent(StrEnum):
    """What a command does when no control plane runs on the data directory (ADR 0013)."""

    HOST = "host"
    """Embeds one that other commands can use until this one ends, and says so."""
    PRIVATE = "private"
    """Opens the stores privately until it ends."""
    WAIT = "wait"
    """Waits for one, and says how to start it."""
    REFUSE = "refuse"
    """Ends, and says how to start one."""


@dataclass(frozen=True, slots=True)
class Plane:
    """Channels to the four services, by name."""

    channels: Mapping[str, grpc.aio.Channel]
    """They show the operator's token."""
    address: str
    embedded: bool
    open_as: Callable[[CredentialRole, str], grpc.aio.Channel]
    """Opens another channel to the orchestrator, which shows the token of a role, or of one agent of it."""

    def client(self, terms: Terms) -> Client:
        """A client of the orchestrator."""
        return Client(self.channels["orchestrator"], terms, self.open_as)

    def announce(self) -> None:
        """Prints a notice if the control plane is embedded."""
        if self.embedded:
            announce_embedded(load(StoreSettings).directory)


@asynccontextmanager
async def control_plane(server: str = "", *, absent: Absent = Absent.PRIVATE) -> AsyncIterator[Plane]:
    """Connects to `server` (or POINTSMAN_SERVER), else to the owner of the data directory, else as `absent` says."""
    address = server or os.environ.get("POINTSMAN_SERVER", "")
    lock = load(StoreSettings).directory / LOCK
    async with AsyncExitStack() as stack:
        if address:
            yield await stack.enter_async_context(_connect(address, partial(_open_as, address)))
            return
        embedded = await _reach_plane(lock, absent, stack)
        if isinstance(embedded, StoreLock):
            yield await stack.enter_async_context(_private_plane())
            return
        yield await stack.enter_async_context(announced_plane(lock, embedded=embedded))


def announced_plane(lock: Path, *, embedded: bool = False) -> AbstractAsyncContextManager[Plane]:
    """Connects to the control plane that the owner of the data directory announces, wherever it moves."""
    announced = AnnouncedAddress(lock)

    def open_as(role: CredentialRole, agent_id: str) -> grpc.aio.Channel:
        return ReloadingChannel(announced, lambda address: _open_announced(address, role, agent_id))

    return _connect(announced.value, open_as, embedded=embedded)


def _open_announced(address: str, role: CredentialRole, agent_id: str) -> grpc.aio.Channel:
    """A channel to the owner of the data directory; one without a socket asks for no credentials, or for configured ones."""
    if address.startswith(UNIX):
        return _open_as(address, role, agent_id)
    return open_channel(address, credentials=load(ClientSettings, insecure_loopback=True))


def _open_as(address: str, role: CredentialRole = CredentialRole.OPERATOR, agent_id: str = "") -> grpc.aio.Channel:
    return open_channel(address, identity=own_identity(role, agent_id))


async def _reach_plane(lock: Path, absent: Absent, stack: AsyncExitStack) -> StoreLock | bool:
    """Finds or starts a control plane; returns whether it is embedded, or the lock for a private one."""
    if absent is Absent.HOST:
        host = EmbeddedPlane(lock, build_all(load(StoreSettings)))
        await _serve_or_wait(lock, host)
        await stack.enter_async_context(supervised(host, lock.with_name(ATTACHED_FILE)))
        return host.serves
    if absent is Absent.WAIT:
        await _wait_for_plane(lock)
        return False
    claim = await _claim_or_attach(lock, stack)
    if claim is not None and absent is Absent.REFUSE:
        refuse_without_plane()
    return claim if claim is not None else False


async def _serve_or_wait(lock: Path, host: EmbeddedPlane) -> None:
    """Starts the embedded control plane unless another one serves; waits while another one starts or stops."""
    deadline = asyncio.get_running_loop().time() + OWNER_SECONDS
    while not await host.serve() and not await _address_of_owner(lock):
        if asyncio.get_running_loop().time() > deadline:
            _fail_unreachable(lock)
        await asyncio.sleep(STEP_SECONDS)


async def _wait_for_plane(lock: Path) -> None:
    """Waits without limit until a control plane serves."""
    is_announced = False
    while not await _address_of_owner(lock):
        if not is_announced:
            is_announced = True
            print(
                f"waiting for a control plane on {lock.parent}; `pointsman up` starts one, --server names another",
                file=sys.stderr,
                flush=True,
            )
        await asyncio.sleep(STEP_SECONDS)


async def _claim_or_attach(lock: Path, stack: AsyncExitStack) -> StoreLock | None:
    """Locks the stores and returns the lock; or attaches to the process that serves them and returns None."""
    deadline = asyncio.get_running_loop().time() + OWNER_SECONDS
    while True:
        try:
            return stack.enter_context(StoreLock(lock, yields=True))
        except Refusal as refusal:
            if refusal.reason is not Reason.UNAVAILABLE:
                raise
        with ExitStack() as attachment:
            attachment.enter_context(attached(lock.with_name(ATTACHED_FILE)))
            if await _address_of_owner(lock):
                stack.enter_context(attachment.pop_all())
                return None
        if asyncio.get_running_loop().time() > deadline:
            _fail_unreachable(lock)
        await asyncio.sleep(STEP_SECONDS)


def refuse_without_plane(besides: str = "") -> NoReturn:
    """Ends a command that needs a running control plane; prints how to start one."""
    directory = load(StoreSettings).directory
    print(f"pointsman: no control plane runs on {directory}; start one: pointsman up{besides}", file=sys.stderr)
    sys.exit(EXIT_UNREACHABLE)


def _fail_unreachable(lock: Path) -> NoReturn:
    owner = owner_of(lock)
    who = f"process {owner.pid}" if owner else "another process"
    print(f"pointsman: {lock.parent} is in use by {who}, which does not serve; stop it, or wait", file=sys.stderr)
    sys.exit(EXIT_UNREACHABLE)


async def _address_of_owner(lock: Path) -> str:
    """The address at which the owner serves; empty if it does not."""
    owner = owner_of(lock)
    return owner.address if owner is not None and owner.address and await _accepts_connections(owner.address) else ""


async def _accepts_connections(address: str) -> bool:
    """Whether the address accepts connections: a killed process leaves its address behind."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(REACH_SECONDS):
            if address.startswith(UNIX):
                _, writer = await asyncio.open_unix_connection(address.removeprefix(UNIX))
            else:
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError, ValueError):
        return False
    writer.close()
    return True


@asynccontextmanager
async def _private_plane() -> AsyncIterator[Plane]:
    """A control plane whose address is not announced."""
    from pointsman.services.chassis.runtime.service import start

    running = await start(build_all(load(StoreSettings)), ServerSettings(port=0))
    channel = open_channel(running.local_address)
    open_as = partial(_open_as, running.local_address)
    try:
        yield Plane(dict.fromkeys(CONTEXTS, channel), running.local_address, embedded=True, open_as=open_as)
    finally:
        await channel.close()
        await running.stop()


@asynccontextmanager
async def _connect(
    address: str, open_as: Callable[[CredentialRole, str], grpc.aio.Channel], *, embedded: bool = False
) -> AsyncIterator[Plane]:
    """Opens channels to the services: at one address, or where POINTSMAN_PEERS_* name another."""
    peers, common = load(PeerSettings), open_as(CredentialRole.OPERATOR, "")
    own = {name: open_channel(getattr(peers, name)) for name in CONTEXTS if getattr(peers, name)}
    try:
        for name in CONTEXTS:
            await _require_ready(own.get(name, common), name, getattr(peers, name) or address)
        if peers.orchestrator:
            open_as = partial(_open_as, peers.orchestrator)
        yield Plane({name: own.get(name, common) for name in CONTEXTS}, address, embedded, open_as)
    finally:
        for channel in (common, *own.values()):
            await channel.close()


async def _require_ready(channel: grpc.aio.Channel, name: str, address: str) -> None:
    try:
        async with asyncio.timeout(REACH_SECONDS):
            await channel.channel_ready()
    except TimeoutError:
        mine = f" on {load(StoreSettings).directory}" if is_local(address) else ""
        print(
            f"pointsman: cannot reach the {name} service at {address}; is it running{mine}? `pointsman up` starts one, --server names another",
            file=sys.stderr,
        )
        sys.exit(EXIT_UNREACHABLE)
