"""The settings that services share. `settings.py` reads them."""

import ipaddress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.errors import Refusal, invalid_field
from pointsman.services.chassis.core.settings import SHARED_PREFIX, Settings, describe, load

__all__ = ["SHARED_PREFIX", "Settings", "describe", "load"]

DEFAULT_PORT = 7460
FEATURES_PARAMETER = "pointsman_features"
"""In the address of a database: what a store may use of it."""


class ServerSettings(Settings, prefix="POINTSMAN_SERVER_"):
    """How a process listens; shared by all services in it. Environment: POINTSMAN_SERVER_<NAME>."""

    host: Annotated[
        str, Meta(description="Address to listen on; beyond loopback only with TLS and authentication.")
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 lets the system choose.")] = (
        DEFAULT_PORT
    )
    reflection: Annotated[
        bool, Meta(description="Whether clients may list the services (for buf curl and grpcurl).")
    ] = False
    max_message_bytes: Annotated[int, Meta(ge=1024, description="Largest request, in bytes.")] = 2 * 1024 * 1024
    max_metadata_bytes: Annotated[int, Meta(ge=1024, description="Largest metadata of a call, in bytes.")] = 8 * 1024
    max_in_flight: Annotated[int, Meta(ge=1, description="Calls handled at once before new ones are turned away.")] = (
        2000
    )
    max_streams: Annotated[
        int, Meta(ge=1, description="Streams open at once, and calls that wait, before new ones are turned away.")
    ] = 10_000
    max_health_watchers: Annotated[
        int,
        Meta(
            ge=1, description="Health.Watch streams open at once, which need no token, before new ones are turned away."
        ),
    ] = 1000
    max_uploads: Annotated[int, Meta(ge=1, description="Uploads at once before new ones are turned away.")] = 64
    deadline_cap_seconds: Annotated[
        float, Meta(gt=0, description="Longest time a call may take, whatever it asks for.")
    ] = 60.0
    metrics_port: Annotated[int, Meta(ge=0, le=65535, description="Port of the Prometheus endpoint; 0 has none.")] = 0
    tls_certificate: Annotated[Path | None, Meta(description="PEM file of the server's certificate chain.")] = None
    tls_key: Annotated[Path | None, Meta(description="PEM file of the server's private key.")] = None
    client_authority: Annotated[Path | None, Meta(description="PEM file of the authority of client certificates.")] = (
        None
    )
    token_keys: Annotated[Path | None, Meta(description="PEM file of the public keys that sign bearer tokens.")] = None
    access: Annotated[Path | None, Meta(description="JSON file of principals with their roles and projects.")] = None
    insecure_loopback: Annotated[
        bool,
        Meta(description="Whether everybody on this machine may do everything, without a credential; for tests only."),
    ] = False
    drain_seconds: Annotated[float, Meta(ge=0, description="How long calls in flight may finish after SIGTERM.")] = 10.0

    @property
    def address(self) -> str:
        """Host and port as gRPC writes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def check_exposure(self) -> None:
        """Refuse to listen beyond loopback without TLS and authentication."""
        encrypted = self.tls_certificate is not None and self.tls_key is not None
        if not is_loopback(self.host) and not (encrypted and self.requires_credentials):
            raise SystemExit(
                f"POINTSMAN_SERVER_HOST={self.host} is not a loopback address: listening there needs TLS "
                "(POINTSMAN_SERVER_TLS_CERTIFICATE, _TLS_KEY) and authentication "
                "(_CLIENT_AUTHORITY with _ACCESS, or _TOKEN_KEYS), which are not configured"
            )

    @property
    def requires_credentials(self) -> bool:
        """Whether keys or an access file are configured; without them loopback has the data directory's credentials."""
        return self.token_keys is not None or (self.client_authority is not None and self.access is not None)


class DatabaseFeatures(StrEnum):
    """What the stores may use of a PostgreSQL server."""

    AUTO = "auto"
    PORTABLE = "portable"


class StoreSettings(Settings, prefix="POINTSMAN_"):
    """Location of the stores. Environment: POINTSMAN_DATA, POINTSMAN_DATABASE_URL, POINTSMAN_DATABASE_FEATURES."""

    data: Annotated[Path, Meta(description="Directory of the SQLite files.")] = Path("~/.local/share/pointsman")
    database_url: Annotated[
        str, Meta(description="PostgreSQL for all stores, each in its own schema; empty means SQLite.")
    ] = ""

    database_features: Annotated[
        DatabaseFeatures,
        Meta(
            description="portable: do without LISTEN, advisory locks and SKIP LOCKED, at SERIALIZABLE, for distributed SQL."
        ),
    ] = DatabaseFeatures.AUTO

    def url_for(self, context: str) -> str:
        """The database of one context."""
        if self.database_url.startswith("sqlite"):
            raise invalid_field(
                "POINTSMAN_DATABASE_URL", "is for PostgreSQL; SQLite has a file per service, below POINTSMAN_DATA"
            )
        if self.database_url and self.database_features is DatabaseFeatures.PORTABLE:
            return f"{self.database_url}{'&' if '?' in self.database_url else '?'}{FEATURES_PARAMETER}=portable"
        return self.database_url or f"sqlite:///{self.directory / f'{context}.db'}"

    @property
    def directory(self) -> Path:
        """The data directory, with ~ resolved."""
        return self.data.expanduser().resolve()


class TelemetrySettings(Settings, prefix="POINTSMAN_TELEMETRY_"):
    """How spans are exported; where to is for the standard OTEL_ variables. Environment: POINTSMAN_TELEMETRY_<NAME>."""

    cpu_share: Annotated[
        float, Meta(gt=0, le=1, description="How much of a core the export of transitions takes while there is work.")
    ] = 0.01
    catch_up_seconds: Annotated[
        float, Meta(ge=0, description="How far behind it may fall before it takes what it needs.")
    ] = 60.0
    sample_transitions: Annotated[
        bool, Meta(description="Whether OTEL_TRACES_SAMPLER may drop transitions too; else every one is exported.")
    ] = False


class RequestSettings(Settings, prefix="POINTSMAN_REQUESTS_"):
    """What is remembered of requests. Environment: POINTSMAN_REQUESTS_<NAME>."""

    max_per_principal: Annotated[
        int,
        Meta(
            ge=0,
            description="Request ids of a principal that a store remembers for a project, before its commands are turned away; 0 means no limit.",
        ),
    ] = 5_000_000


class ClientSettings(Settings, prefix="POINTSMAN_CLIENT_"):
    """Credentials of this process towards servers that use TLS. Environment: POINTSMAN_CLIENT_<NAME>."""

    authority: Annotated[
        Path | None, Meta(description="PEM file of the servers' authority; without it, the data directory's.")
    ] = None
    certificate: Annotated[Path | None, Meta(description="PEM file of the client's certificate chain.")] = None
    key: Annotated[Path | None, Meta(description="PEM file of the client's private key.")] = None
    token: Annotated[Path | None, Meta(description="File of a bearer token.")] = None
    insecure_loopback: Annotated[
        bool,
        Meta(
            description="Whether to call servers on this machine without TLS and credentials: an edge beside has them."
        ),
    ] = False


class PeerSettings(Settings, prefix="POINTSMAN_PEERS_"):
    """Addresses of the services. Environment: POINTSMAN_PEERS_<SERVICE>."""

    router: Annotated[str, Meta(description="Address of the router; empty means this process.")] = ""
    workflow: Annotated[str, Meta(description="Address of the workflow service; empty means this process.")] = ""
    pipeline: Annotated[str, Meta(description="Address of the pipeline service; empty means this process.")] = ""
    orchestrator: Annotated[str, Meta(description="Address of the orchestrator; empty means this process.")] = ""

    def all_at(self, address: str) -> "PeerSettings":
        """The same, with every address that is not set put to this one."""
        given = {name: getattr(self, name) or address for name in self.fields}
        return PeerSettings(**given)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def exit_with(refusal: Refusal) -> SystemExit:
    """A refused configuration as the error message of the program."""
    return SystemExit(f"pointsman: {refusal.message}")
