"""Calls to peers: channels with retries and credentials, deadlines, project and trace metadata, errors as refusals."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import grpc

from pointsman._shared.reloading_channel import ReloadingChannel
from pointsman.credentials.channel import AuthorizedChannel, open_local
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.tokens import Identity, TokenSource
from pointsman.services.chassis.core.config import ClientSettings, StoreSettings, load
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.file_watcher import WatchedFiles, check_pair, read_authority
from pointsman.services.chassis.rpc.in_process import SERVERS, InProcessChannel
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.chassis.telemetry.recording import call_recorder

Stub = TypeVar("Stub")

DEADLINE_SECONDS = 15.0
RECONNECT_MS = 1000
"""The reconnect backoff: shorter than the retries of one call take, so that a restarted peer is reached."""
SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 3,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}


def own_identity(role: CredentialRole = CredentialRole.OPERATOR, agent_id: str = "") -> Identity:
    """Who this process is towards control planes of its data directory."""
    return Identity(CredentialFolder.of(load(StoreSettings).directory), role, agent_id)


def open_channel(
    address: str,
    max_message_bytes: int = 8 * 1024 * 1024,
    *,
    credentials: ClientSettings | None = None,
    identity: Identity | None = None,
) -> grpc.aio.Channel:
    """A channel that balances calls over all replicas of the name and retries UNAVAILABLE.

    It shows what the settings name; without that, on this machine, a token of the identity (by default the operator's).
    """
    options: list[tuple[str, str | int]] = [
        ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
        ("grpc.keepalive_time_ms", 60_000),
    ]
    settings = credentials or load(ClientSettings)
    if settings.authority is None:
        local = None if settings.insecure_loopback else open_local(address, identity or own_identity(), options)
        return local or grpc.aio.insecure_channel(address, options=options)
    files = (settings.authority, settings.certificate, settings.key)
    watched = WatchedFiles(files, lambda: channel_credentials(settings))
    return ReloadingChannel(watched, lambda current: grpc.aio.secure_channel(address, current, options=options))


def open_peer(address: str, identity: Identity) -> grpc.aio.Channel:
    """A channel for unary calls to a peer: without gRPC where this process serves it and takes tokens, or nothing."""
    settings = load(ClientSettings)
    if address not in SERVERS or settings.authority is not None:
        return open_channel(address, identity=identity)
    channel = InProcessChannel(address)
    if settings.insecure_loopback or not identity.folder.is_complete:
        return channel
    return AuthorizedChannel(channel, TokenSource(identity))


def channel_credentials(settings: ClientSettings) -> grpc.ChannelCredentials:
    """TLS credentials of the settings, with a client certificate or a bearer token."""
    assert settings.authority is not None
    if settings.certificate and settings.key:
        check_pair(settings.certificate, settings.key)
    key = settings.key.read_bytes() if settings.key else None
    certificate = settings.certificate.read_bytes() if settings.certificate else None
    encrypted = grpc.ssl_channel_credentials(read_authority(settings.authority), key, certificate)
    if settings.token is None:
        return encrypted
    return grpc.composite_channel_credentials(encrypted, grpc.metadata_call_credentials(_TokenFile(settings.token)))


class _TokenFile(grpc.AuthMetadataPlugin):
    """Adds the bearer token of a file; the file is read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._token = WatchedFiles([path], lambda: _token(path))

    def __call__(self, context: Any, callback: Any) -> None:  # noqa: ARG002
        """Add the header."""
        callback((("authorization", f"Bearer {self._token.value}"),), None)


def _token(path: Path) -> str:
    token = path.read_text().strip()
    if not token:
        raise ValueError(f"{path} is empty")
    return token


class Peer(Generic[Stub]):
    """The client of one peer: every call has a deadline, a project and a trace."""

    def __init__(self, channel: grpc.aio.Channel, stub: Callable[[grpc.aio.Channel], Stub], service: str = "") -> None:
        self.stub = stub(channel)
        self._service = service
        """The calling service, for the spans of its calls."""

    async def call(self, method: Callable[..., Any], request: Any, project: str, traceparent: str) -> Any:
        """Call a method of the stub; an error is raised as a Refusal.

        The peer gets the context of the transition, not of this call: spans of transitions are never dropped.
        """
        code, begun = "CANCELLED", time.monotonic()
        try:
            answer = await method(request, timeout=DEADLINE_SECONDS, metadata=metadata_for(project, traceparent))
            code = "OK"
        except Refusal as refusal:
            code = refusal.code.value
            raise
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            raise refusal_from(error) from None
        else:
            return answer
        finally:
            if call_recorder.is_on:
                name = getattr(method, "_method", b"").decode()
                call_recorder.call_made(traceparent, self._service, name, (code, time.monotonic() - begun))


def metadata_for(project: str, traceparent: str) -> tuple[tuple[str, str], ...]:
    """The metadata that common.proto documents."""
    base = (("pointsman-project", project),)
    return (*base, ("traceparent", traceparent)) if traceparent else base
