"""Channels for a client: where the control plane is, and which credentials it is shown."""

import os
from collections.abc import Callable
from pathlib import Path

import grpc

from pointsman._shared.reloading_channel import ReloadingChannel
from pointsman.client.errors import Unavailable
from pointsman.credentials.channel import UNIX, AuthorizedChannel, open_local
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.location import LOCK, AnnouncedAddress, data_directory
from pointsman.credentials.tokens import Identity, TokenFile

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
OPTIONS: list[tuple[str, str | int]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
]
OpenAs = Callable[[CredentialRole, str], grpc.aio.Channel]
"""Opens a channel that shows the token of a role, or of one agent of it."""


def opener(address: str, credentials: grpc.ChannelCredentials | None, data: Path | None) -> OpenAs:
    """Opens channels to an address, else to POINTSMAN_SERVER, else to the control plane of the data directory."""
    where = address or os.environ.get("POINTSMAN_SERVER", "")
    directory = data or data_directory()

    def open_at(there: str, role: CredentialRole, agent_id: str) -> grpc.aio.Channel:
        if credentials is not None:
            return grpc.aio.secure_channel(there, credentials, options=OPTIONS)
        # An owner of the data directory that announces no socket asks for no credentials, or for configured ones.
        is_plain = (not where and not there.startswith(UNIX)) or (data is None and _is_insecure())
        return _open(there, None if is_plain else Identity(CredentialFolder.of(directory), role, agent_id))

    if where:
        return lambda role, agent_id: open_at(where, role, agent_id)
    announced = AnnouncedAddress(directory / LOCK)
    if not announced.value:
        raise Unavailable(
            "UNAVAILABLE", grpc.StatusCode.UNAVAILABLE, f"no control plane runs on {directory}; start one: pointsman up"
        )
    return lambda role, agent_id: ReloadingChannel(announced, lambda there: open_at(there, role, agent_id))


def _open(address: str, identity: Identity | None) -> grpc.aio.Channel:
    """Shows what POINTSMAN_CLIENT_* name; without them, on this machine, a token of the data directory."""
    authority = os.environ.get("POINTSMAN_CLIENT_AUTHORITY", "")
    if authority:
        key, chain = (_content(f"POINTSMAN_CLIENT_{name}") for name in ("KEY", "CERTIFICATE"))
        encrypted = grpc.ssl_channel_credentials(Path(authority).read_bytes(), key, chain)
        channel = grpc.aio.secure_channel(address, encrypted, options=OPTIONS)
        token = os.environ.get("POINTSMAN_CLIENT_TOKEN", "")
        return AuthorizedChannel(channel, TokenFile(Path(token))) if token else channel
    local = None if identity is None else open_local(address, identity, OPTIONS)
    return local or grpc.aio.insecure_channel(address, options=OPTIONS)


def _is_insecure() -> bool:
    """Whether an edge beside this process adds TLS and credentials; a data directory that is named wins over it."""
    return os.environ.get("POINTSMAN_CLIENT_INSECURE_LOOPBACK", "").lower() in ("1", "true", "yes", "on")


def _content(variable: str) -> bytes | None:
    path = os.environ.get(variable, "")
    return Path(path).read_bytes() if path else None
