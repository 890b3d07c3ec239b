"""Services in a process: start, serve, drain and stop."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from google.protobuf.descriptor import ServiceDescriptor

from pointsman._shared.otlp import exports_spans
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings, exit_with, load
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.chassis.rpc.in_process import SERVERS
from pointsman.services.chassis.rpc.loopback import loopback_credentials, warn_if_insecure
from pointsman.services.chassis.rpc.server import Server
from pointsman.services.chassis.runtime.housekeeping import housekeeping
from pointsman.services.chassis.storage.file_lock import StoreLock, lock_store
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.chassis.telemetry.logs import configure_logs
from pointsman.services.chassis.telemetry.recording import call_recorder

if TYPE_CHECKING:
    from pointsman.services.chassis.spans.exporter import Exporter

SWITCH_INTERVAL_SECONDS = 0.0005

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Service:
    """One service: store, servicers and loops, as a context's `build` returns it."""

    name: str
    store: Store | None
    """None for the gateway, which is stateless."""
    migrations: Path | None
    servicers: Sequence[tuple[ServiceDescriptor, object]]
    loops: Sequence[tuple[str, Callable[[], Awaitable[None]]]] = ()
    close: Callable[[], Awaitable[None]] | None = None


@dataclass(slots=True)
class Running:
    """The running services of this process."""

    services: Sequence[Service]
    server: Server
    address: str
    """Where it listens on TCP."""
    local_address: str
    """Where processes of this machine reach it: its Unix socket; without credentials the same as on TCP."""
    loops: Loops = field(default_factory=Loops)
    locks: Sequence[StoreLock] = ()
    """The locks of the SQLite files of the stores."""
    exporter: "Exporter | None" = None
    socket: ExitStack = field(default_factory=ExitStack)
    """Removes the Unix socket, and the server from those of this process."""

    async def stop(self) -> None:
        """Drain: calls in flight finish, loops stop, stores close."""
        await self.server.drain()
        await self.loops.stop()
        for service in self.services:
            if service.close is not None:
                await service.close()
            if service.store is not None:
                service.store.close()
        for lock in self.locks:
            lock.release()
        self.socket.close()
        if self.exporter is not None:
            call_recorder.stop()
            await self.exporter.close()


async def start(
    build: Callable[[str], Sequence[Service]], settings: ServerSettings, data: Path | None = None
) -> Running:
    """Bind, migrate, start loops, then serve; `build` gets the address where this process listens.

    The credentials are those of the data directory: POINTSMAN_DATA unless one is given.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    credentials = loopback_credentials(settings, data or load(StoreSettings).directory)
    server = Server(settings, credentials)
    port = server.listen()
    address = settings.replace(port=port).address
    socket = ExitStack()
    local = server.listen_on_socket(socket.enter_context(credentials.socket_path())) if credentials else address
    SERVERS[local] = server
    socket.callback(SERVERS.pop, local)
    services = build(local)
    running = Running(services, server, address, local, locks=_lock_stores(services, local, address), socket=socket)
    for service in services:
        if service.store is not None:
            await asyncio.to_thread(migrate, service.store.database, service.migrations)
            await service.store.release_stale_leases()
            service.store.start()
        for descriptor, servicer in service.servicers:
            server.add(descriptor, servicer)
    running.exporter = _new_exporter()
    if settings.metrics_port:
        metrics.serve_metrics(settings.metrics_port, settings.host)
    await server.start()
    if running.exporter is not None:
        running.exporter.start()
    running.loops.start("server.end_overdue_calls", server.end_overdue_calls)
    running.loops.start("server.end_lost_streams", server.rights.end_revoked)
    for service in services:
        background = housekeeping(service.name, service.store, running.exporter) if service.store is not None else ()
        for name, work in (*service.loops, *background):
            running.loops.start(f"{service.name}.{name}", work)
    return running


def _new_exporter() -> "Exporter | None":
    """The exporter of this process, if the standard variables name a collector."""
    if not exports_spans():
        return None
    from pointsman.services.chassis.spans.exporter import Exporter  # noqa: PLC0415 - off is free

    return Exporter(call_recorder.start())


def _lock_stores(services: Sequence[Service], address: str, tcp: str) -> Sequence[StoreLock]:
    """Lock the SQLite files of the services and announce their address; refused while another process holds one."""
    stores = [service.store for service in services if service.store is not None]
    locks = [lock for store in stores if (lock := lock_store(store.database)) is not None]
    for lock in locks:
        lock.announce(address, tcp)
    return locks


def serve_alone(build: Callable[[str], Sequence[Service]]) -> None:
    """Serve one service in this process (`python -m`); a refusal is its error message."""
    try:
        greet = partial(print, flush=True)
        asyncio.run(serve_until_stopped(build, load(ServerSettings), lambda running: greet(running.address)))
    except Refusal as refusal:
        raise exit_with(refusal) from None


async def serve_until_stopped(
    build: Callable[[str], Sequence[Service]],
    settings: ServerSettings,
    greet: Callable[[Running], None],
    data: Path | None = None,
    beside: AbstractAsyncContextManager[None] | None = None,
) -> None:
    """Run until SIGTERM or SIGINT, then drain; `greet` is called once the server serves, then `beside` is entered."""
    if not structlog.is_configured():
        configure_logs(as_json=not sys.stderr.isatty())
    warn_if_insecure(settings)
    running = await start(build, settings, data)
    freeze_startup_objects()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    greet(running)
    log.info("serving", address=running.address, services=[service.name for service in running.services])
    async with beside or nullcontext():
        await stopped.wait()
    log.info("draining")
    await running.stop()
    log.info("stopped")
