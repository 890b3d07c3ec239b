"""Credentials on loopback in tests: off where access is not the subject, and the real ones for real processes."""

import os
import tempfile
from pathlib import Path

import grpc

from pointsman.credentials.channel import open_local
from pointsman.credentials.folder import CredentialFolder
from pointsman.credentials.tokens import Identity

INSECURE = {"POINTSMAN_SERVER_INSECURE_LOOPBACK": "true", "POINTSMAN_CLIENT_INSECURE_LOOPBACK": "true"}


def trust_loopback() -> None:
    """Let servers and clients of this process and its children do without credentials.

    Their data directory is none that is there: with the credentials of whoever runs the tests, clients would use TLS.
    """
    os.environ.update(INSECURE)
    os.environ.setdefault("POINTSMAN_DATA", f"{tempfile.gettempdir()}/pointsman-tests-{os.getpid()}")


def with_credentials(**environment: str) -> dict[str, str]:
    """The environment of a process that uses real credentials, as users have them."""
    return {**{name: value for name, value in os.environ.items() if name not in INSECURE}, **environment}


def open_as(data: Path, address: str, name: str = "operator") -> grpc.aio.Channel:
    """A channel to a control plane that shows a token of its data directory; `coder/box-1` names one agent."""
    channel = open_local(address, Identity.named(CredentialFolder.of(data), name), ())
    assert channel is not None, f"{data} has no credentials"
    return channel
