"""Calls the router: in the running control plane, else directly on its store in the data directory."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pointsman.services.chassis.core.errors import Refusal

DEFAULT_DATA = "~/.local/share/pointsman"
"""The default of POINTSMAN_DATA; a copy, because loading the settings takes longer than a decision."""


class RouterCalls(Protocol):
    """RPCs of the router by name, remote or in this process."""

    async def call(self, method: str, request: Any) -> Any:
        """The answer to one request."""

    def stream(self, method: str, request: Any) -> AsyncIterator[Any]:
        """The messages of a streaming answer."""


class StoreUnusable(Exception):
    """The router's store in the data directory cannot be used now; the message says why."""

    def __init__(self, refusal: "Refusal") -> None:
        super().__init__(refusal.message)
        self.is_wrong_setting = refusal.code.value == "INVALID_ARGUMENT"
        """Whether a setting has to be corrected first."""


class NotRecorded(Exception):
    """A decision is not recorded; the message says why."""

    def __init__(self, why: str, *, is_fault: bool = False) -> None:
        super().__init__(why)
        self.is_fault = is_fault
        """Whether it should have been recorded: then the command warns."""


def store_path() -> Path:
    """The path of the router's store, if it is a file."""
    return Path(os.environ.get("POINTSMAN_DATA") or DEFAULT_DATA).expanduser() / "router.db"


def has_store(server: str) -> bool:
    """Whether a router with a store exists: a named server, a database, or a file; opens nothing."""
    named = ("POINTSMAN_SERVER", "POINTSMAN_PEERS_ROUTER", "POINTSMAN_DATABASE_URL")
    return bool(server) or any(os.environ.get(name) for name in named) or store_path().exists()


def require_recording(server: str, *, dry_run: bool) -> None:
    """Raises NotRecorded if a decision cannot or should not be recorded."""
    if dry_run:
        raise NotRecorded("--dry-run")
    if not has_store(server):
        raise NotRecorded(f"there is no store at {store_path()}; `pointsman up` makes one")


def decide_and_record(server: str, project: str, method: str, request: Any) -> Any:
    """Calls a deciding RPC of the router; NotRecorded where its store cannot be used."""

    async def run() -> Any:
        async with router_calls(server, project) as calls:
            return await calls.call(method, request)

    try:
        return asyncio.run(run())
    except StoreUnusable as error:
        raise NotRecorded(str(error), is_fault=True) from None


@asynccontextmanager
async def router_calls(server: str, project: str) -> AsyncIterator[RouterCalls]:
    """The router at `server`, else of the running control plane, else on its store, locked during the block."""
    from pointsman.cli.session.control_plane import control_plane
    from pointsman.services.chassis.core.config import PeerSettings, StoreSettings, load

    address = server or os.environ.get("POINTSMAN_SERVER", "") or load(PeerSettings).router
    stores = load(StoreSettings)
    with ExitStack() as locks:
        if not address and not stores.database_url:
            address = await _address_or_locks(stores.directory, locks)
        if address:
            async with control_plane(address) as plane:
                yield _RemoteRouter(plane.channels["router"], project)
        else:
            async with _on_store(stores, project) as calls:
                yield calls


async def _address_or_locks(directory: Path, locks: ExitStack) -> str:
    """The address of the data directory's owner; or empty, with directory and store locked by this process."""
    from pointsman.cli.session.attached_commands import STEP_SECONDS
    from pointsman.cli.session.control_plane import OWNER_SECONDS
    from pointsman.credentials.location import LOCK
    from pointsman.services.chassis.core.errors import Reason, Refusal
    from pointsman.services.chassis.storage.file_lock import StoreLock

    deadline = asyncio.get_running_loop().time() + OWNER_SECONDS
    while True:
        with ExitStack() as taken:
            wanted = directory / LOCK
            try:
                taken.enter_context(StoreLock(wanted, yields=True))
                wanted = directory / "router.lock"
                taken.enter_context(StoreLock(wanted, yields=True))
            except Refusal as refusal:
                if refusal.reason is not Reason.UNAVAILABLE or asyncio.get_running_loop().time() > deadline:
                    raise StoreUnusable(refusal) from None
            else:
                locks.push(taken.pop_all())
                return ""
        if address := _address_in(wanted, locks):
            return address
        await asyncio.sleep(STEP_SECONDS)


def _address_in(lock: Path, locks: ExitStack) -> str:
    """The address of a lock's owner, if it serves; attaches this command to it."""
    from pointsman.cli.session.attached_commands import attached
    from pointsman.cli.session.embedding import ATTACHED_FILE
    from pointsman.credentials.location import is_alive, owner_of

    with ExitStack() as attachment:
        attachment.enter_context(attached(lock.with_name(ATTACHED_FILE)))
        owner = owner_of(lock)
        if owner is None or not owner.address or not is_alive(owner.pid):
            return ""
        locks.push(attachment.pop_all())
        return owner.address


@asynccontextmanager
async def _on_store(stores: Any, project: str) -> AsyncIterator[RouterCalls]:
    """The router's servicer in this process, without a listening server."""
    from pointsman.services.chassis.core.config import load
    from pointsman.services.chassis.core.errors import Refusal
    from pointsman.services.chassis.storage.migrate import migrate
    from pointsman.services.router.__main__ import build
    from pointsman.services.router.config import RouterSettings

    service = build(stores, load(RouterSettings))
    assert service.store is not None
    try:
        try:
            await asyncio.to_thread(migrate, service.store.database, service.migrations)
        except Refusal as refusal:
            raise StoreUnusable(refusal) from None
        service.store.start()
        yield _StoreRouter(service.servicers[0][1], project)
    finally:
        service.store.close()


@dataclass(frozen=True, slots=True)
class _RemoteRouter:
    channel: Any
    project: str

    async def call(self, method: str, request: Any) -> Any:
        import grpc

        from pointsman.services.chassis.rpc.status import refusal_from

        try:
            return await self._start(method, request)
        except grpc.aio.AioRpcError as error:
            raise refusal_from(error) from None

    async def stream(self, method: str, request: Any) -> AsyncIterator[Any]:
        import grpc

        from pointsman.services.chassis.rpc.status import refusal_from

        try:
            async for part in self._start(method, request):
                yield part
        except grpc.aio.AioRpcError as error:
            raise refusal_from(error) from None

    def _start(self, method: str, request: Any) -> Any:
        from pointsman.api.router.v1 import router_pb2_grpc

        stub = router_pb2_grpc.RouterServiceStub(self.channel)
        return getattr(stub, method)(request, metadata=(("pointsman-project", self.project),))


@dataclass(frozen=True, slots=True)
class _StoreRouter:
    servicer: Any
    project: str

    async def call(self, method: str, request: Any) -> Any:
        return await getattr(self.servicer, method)(*self._admitted(method, request))

    def stream(self, method: str, request: Any) -> AsyncIterator[Any]:
        parts: AsyncIterator[Any] = getattr(self.servicer, method)(*self._admitted(method, request))
        return parts

    def _admitted(self, method: str, request: Any) -> tuple[Any, Any]:
        """The validated request and its caller, as a server would pass them."""
        from pointsman.services.chassis.core.caller import LOCAL, Caller
        from pointsman.services.chassis.rpc.validation import deserializer, read_metadata, validate

        project, _ = read_metadata((("pointsman-project", self.project),))
        body = request.SerializeToString(deterministic=True)
        valid = validate(deserializer(type(request))(body), method)
        fingerprint = hashlib.blake2b(method.encode() + body, digest_size=16).hexdigest()
        return valid, Caller(LOCAL, project, request_id=getattr(valid, "request_id", ""), fingerprint=fingerprint)
