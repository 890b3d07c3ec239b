"""Wires the gateway together; `python -m pointsman.services.gateway` serves it alone."""

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from pointsman.credentials.console_code import login_link
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.tokens import Identity
from pointsman.services.chassis.core.config import (
    DEFAULT_PORT,
    ClientSettings,
    PeerSettings,
    ServerSettings,
    StoreSettings,
    exit_with,
    load,
)
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.chassis.rpc.file_watcher import WatchedFiles
from pointsman.services.chassis.rpc.loopback import loopback_credentials
from pointsman.services.chassis.runtime.service import Service
from pointsman.services.chassis.telemetry.metrics import serve_metrics
from pointsman.services.gateway import pages
from pointsman.services.gateway.answers import AnswerPages
from pointsman.services.gateway.authentication import Authentication
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.gateway.connections import Connection, Connections
from pointsman.services.gateway.openapi import DOCUMENT
from pointsman.services.gateway.peers import Peers
from pointsman.services.gateway.security import Guard, served_names
from pointsman.services.gateway.servicer import Gateway
from pointsman.services.gateway.webhooks import Webhooks, read_secret

BACKLOG = 512
OPTIONS: dict[str, Any] = {
    "log_config": None,
    "access_log": False,
    "lifespan": "off",
    "ws": "none",
    "server_header": False,
    "proxy_headers": False,
    "timeout_graceful_shutdown": 2,
}


class _Listener(uvicorn.Server):
    """uvicorn without signal handlers, and with a timeout for TLS handshakes."""

    def __init__(self, config: uvicorn.Config, handshake_seconds: float) -> None:
        super().__init__(config)
        self._handshake_seconds = handshake_seconds if config.ssl is not None else None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Like uvicorn's, with a handshake timeout, for which uvicorn has no setting."""
        create: Any = self.config.http_protocol_class
        loop, given = asyncio.get_running_loop(), {"config": self.config, "server_state": self.server_state}
        self.servers = [
            await loop.create_server(
                partial(create, **given, app_state={}),
                sock=one,
                ssl=self.config.ssl,
                ssl_handshake_timeout=self._handshake_seconds,
                backlog=BACKLOG,
            )
            for one in sockets or ()
        ]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process."""
        yield


class GatewayServer:
    """The gateway on its own socket, in the process of the services or in another."""

    def __init__(self, settings: GatewaySettings, credentials: CredentialFolder | None = None) -> None:
        """Bind the port, so that a port in use is reported before anything runs.

        With the credentials of a data directory it asks for a session or a token of theirs, unless keys are configured.
        """
        settings.check_exposure()
        self._settings = settings
        self._credentials = credentials
        self._socket = _bound(settings)
        host, port = self._socket.getsockname()[:2]
        scheme = "https" if settings.tls_certificate else "http"
        self.address = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def console_link(self) -> str:
        """A link that opens the console once; its address where nobody has to log in, or with a token."""
        if self._credentials is None or self._settings.token_keys is not None:
            return self.address
        return login_link(self._credentials.read_secret(CredentialRole.GATEWAY), self.address)

    def service(self, addresses: PeerSettings) -> Service:
        """The gateway as a Service: without store and servicers, with its loops."""
        identity = Identity(self._credentials, CredentialRole.GATEWAY) if self._credentials is not None else None
        peers = Peers(addresses, self._settings.shown_to_peers(load(ClientSettings)), identity)

        async def close() -> None:
            await peers.close()
            self.close()

        authentication = Authentication(self._settings, self._credentials, self.address)

        async def serve() -> None:
            gateway = Gateway(peers, self._settings, authentication, asyncio.Event())
            if not self._settings.mcp:
                await self._serve(application(gateway), gateway.stopped)
                return
            from pointsman.services.gateway.mcp_endpoint import McpEndpoint

            endpoint = McpEndpoint(peers, authentication, self._settings)
            async with endpoint.run():
                await self._serve(application(gateway, endpoint), gateway.stopped)

        loops = [("http", serve), ("rights", authentication.rights.end_revoked)]
        if authentication.sessions is not None:
            loops.append(("sessions", authentication.sessions.end_expired))
        return Service("gateway", None, None, (), loops, close)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    async def _serve(self, served: ASGIApp, stopped: asyncio.Event) -> None:
        """Serve until cancelled; requests in flight finish, streams end."""
        tls: dict[str, Any] = {"ssl_certfile": self._settings.tls_certificate, "ssl_keyfile": self._settings.tls_key}
        config = uvicorn.Config(served, **OPTIONS, **_limits(self._settings), **tls)
        config.load()
        if config.ssl is not None:
            config.ssl.sni_callback = reload_certificate(self._settings)
        listener = _Listener(config, self._settings.header_seconds)
        serving = asyncio.ensure_future(listener.serve([self._socket]))
        try:
            await asyncio.shield(serving)
        finally:
            stopped.set()
            listener.should_exit = True
            await serving


def _limits(settings: GatewaySettings) -> dict[str, Any]:
    """The connection limits as options of uvicorn."""
    return {
        "http": partial(Connection, others=Connections(settings)),
        "h11_max_incomplete_event_size": settings.max_header_bytes,
        "limit_concurrency": settings.max_connections,
        "timeout_keep_alive": settings.idle_seconds,
    }


def reload_certificate(settings: GatewaySettings) -> Callable[[ssl.SSLObject, str, ssl.SSLContext], None]:
    """An SNI callback that uses the current certificate files in each handshake, also without a server name."""
    certificate, key = settings.tls_certificate, settings.tls_key
    assert certificate is not None

    def read() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    contexts = WatchedFiles([certificate, key], read)

    def show(connection: ssl.SSLObject, _name: str, _context: ssl.SSLContext) -> None:
        connection.context = contexts.value

    return show


def application(gateway: Gateway, mcp: ASGIApp | None = None) -> ASGIApp:
    """The web application: console, API and OpenAPI document, and /mcp where it is served, behind the guard."""
    document = pages.read(DOCUMENT)
    sessions = gateway.authentication.sessions
    views, missing = pages.routes(sessions, asks_for_tokens=gateway.settings.token_keys is not None)
    routes = [
        *views,
        Route("/openapi.json", document.serve),
        Route("/healthz", _healthy),
        *gateway.routes(),
        *([] if sessions is None else AnswerPages(gateway.peers, lambda: sessions.secret).routes()),
        *_webhooks(gateway),
        *([Route("/mcp", mcp)] if mcp is not None else []),
        missing,
    ]
    settings = gateway.settings
    return Guard(Starlette(routes=routes), served_names(settings.names), settings.max_header_bytes)


def _webhooks(gateway: Gateway) -> list[BaseRoute]:
    """The paths for deliveries of forges, where a file has their secret; a changed file is read again."""
    path = gateway.settings.webhook_secret
    if path is None:
        return []
    try:
        watched = WatchedFiles([path], lambda: read_secret(path))
    except (OSError, ValueError) as error:
        raise SystemExit(f"POINTSMAN_GATEWAY_WEBHOOK_SECRET: {error}") from None
    return Webhooks(gateway.peers, lambda: watched.value).routes()


async def serve_gateway(
    server: GatewayServer, settings: GatewaySettings, addresses: PeerSettings, greet: Callable[[str], None]
) -> None:
    """Serve the gateway alone until SIGTERM or SIGINT."""
    service = server.service(addresses)
    stopped, loops = asyncio.Event(), Loops()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    if settings.metrics_port:
        serve_metrics(settings.metrics_port, settings.metrics_host)
    for name, work in service.loops:
        loops.start(name, work)
    greet(server.address)
    await stopped.wait()
    await loops.stop()
    assert service.close is not None
    await service.close()


async def _healthy(_request: Request) -> Response:
    return PlainTextResponse("ok\n")


def _bound(settings: GatewaySettings) -> socket.socket:
    """A socket on the configured port; if none is configured and the default is in use, on a free port."""
    asked = settings.is_given("port")
    for port in (settings.port,) if asked else (settings.port, 0):
        with contextlib.suppress(OSError):
            return _listening(settings.host, port)
    raise SystemExit(
        f"pointsman: cannot listen on {settings.host}:{settings.port}; is another process there? "
        "POINTSMAN_GATEWAY_PORT chooses another port"
    )


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once (TCP_NODELAY) only on sockets that name their protocol; else an answer's body waits 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listening


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    try:
        settings, peers = load(GatewaySettings), load(PeerSettings).all_at(f"127.0.0.1:{DEFAULT_PORT}")
        credentials = loopback_credentials(load(ServerSettings), load(StoreSettings).directory)
    except Refusal as refusal:
        raise exit_with(refusal) from None
    asyncio.run(serve_gateway(GatewayServer(settings, credentials), settings, peers, print))


if __name__ == "__main__":
    main()
