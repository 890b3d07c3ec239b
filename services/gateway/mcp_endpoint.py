"""`/mcp`: the MCP server over streamable HTTP, stateless, with the gateway's authentication (`pointsman[mcp]`)."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import grpc
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from pointsman.client import Client, Terms
from pointsman.client.errors import CallFailed, Violation, class_of
from pointsman.mcp.server import build_server
from pointsman.mcp.workplace import Caller
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.gateway.authentication import Authentication
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.gateway.contract import METHODS, Method
from pointsman.services.gateway.errors import response_of
from pointsman.services.gateway.peers import Peers

PATIENCE_SECONDS = 10.0
BY_NAME = {method.full_name: method for method in METHODS.values()}
LIST_RUNS = BY_NAME["/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns"]


class McpEndpoint:
    """The ASGI application behind `/mcp`; `run` is its life."""

    def __init__(self, peers: Peers, authentication: Authentication, settings: GatewaySettings) -> None:
        self._authentication = authentication

        @asynccontextmanager
        async def open_caller(request: Request) -> AsyncIterator[Caller]:
            project = request.headers.get("pointsman-project", "local")
            channel: Any = AdmittedChannel(peers, authentication, request)
            yield Caller(Client(channel, Terms(project=project, patience_seconds=PATIENCE_SECONDS)))

        self._sessions = StreamableHTTPSessionManager(
            build_server(open_caller),
            stateless=True,
            json_response=True,
            max_request_body_size=settings.max_body_bytes,
            # the guard in front of every path knows the served names and the own origin
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    def run(self) -> AbstractAsyncContextManager[None]:
        """Serve while the context is open."""
        return self._sessions.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a caller who may not even look at runs; each call of a tool is authorized by itself."""
        try:
            self._authentication.admit(LIST_RUNS, Request(scope))
        except Refusal as refusal:
            await response_of(refusal)(scope, receive, send)
            return
        await self._sessions.handle_request(scope, receive, send)


class AdmittedChannel:
    """What a client needs of a channel: every call is authorized like the same RPC over HTTP, with the caller's token."""

    def __init__(self, peers: Peers, authentication: Authentication, request: Request) -> None:
        self._peers = peers
        self._authentication = authentication
        self._request = request

    def unary_unary(self, name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """One request, one answer."""
        return self._admitted(name, "unary_unary", args, kwargs)

    def unary_stream(self, name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """One request, many answers."""
        return self._admitted(name, "unary_stream", args, kwargs)

    def stream_unary(self, name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Many requests, one answer."""
        return self._admitted(name, "stream_unary", args, kwargs)

    def _admitted(self, name: str, kind: str, args: Any, kwargs: Any) -> Callable[..., Any]:
        method: Method | None = BY_NAME.get(name)

        def call(request: Any, *, timeout: float | None = None, metadata: Any = ()) -> Any:  # noqa: ARG001 - the caller's headers say what goes along
            if method is None:
                raise KeyError(name)
            try:
                admitted = self._authentication.admit(method, self._request)
            except Refusal as refusal:
                raise failure_of(refusal) from None
            callable_below = getattr(self._peers.channel(method), kind)(name, *args, **kwargs)
            return callable_below(request, timeout=timeout, metadata=admitted)

        return call


def failure_of(refusal: Refusal) -> CallFailed:
    """The gateway's own refusal as the client raises those of services."""
    code = grpc.StatusCode[refusal.code.value]
    violations = tuple(Violation(one.field, one.description) for one in refusal.violations)
    return class_of(code)(
        refusal.reason.value, code, refusal.message, dict(refusal.metadata), violations, refusal.retry_after_seconds
    )
