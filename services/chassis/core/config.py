"""Settings: one frozen class per service, from the environment, unknown names refused, secrets masked."""

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import AliasChoices, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from pointsman.services.chassis.core.errors import Refusal, Violation, invalid_field, invalid_fields

DEFAULT_PORT = 7460
SHARED_PREFIX = "POINTSMAN_"
PASSWORD_IN_URL = re.compile(r"(://[^:@/]*:).*@")
PASSWORD_PARAMETER = re.compile(r"([?&][^=&]*password=)[^&]*")

Settings = TypeVar("Settings", bound=BaseSettings)


class ServerSettings(BaseSettings):
    """How a process listens; shared by all services in it. Environment: POINTSMAN_SERVER_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_SERVER_", frozen=True, extra="forbid")

    host: str = Field(
        default="127.0.0.1", description="Address to listen on; beyond loopback only with TLS and authentication."
    )
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535, description="Port to listen on; 0 lets the system choose.")
    reflection: bool = Field(
        default=False, description="Whether clients may list the services (for buf curl and grpcurl)."
    )
    max_message_bytes: int = Field(default=2 * 1024 * 1024, ge=1024, description="Largest request, in bytes.")
    max_metadata_bytes: int = Field(default=8 * 1024, ge=1024, description="Largest metadata of a call, in bytes.")
    max_in_flight: int = Field(default=2000, ge=1, description="Calls handled at once before new ones are turned away.")
    max_streams: int = Field(
        default=10_000, ge=1, description="Streams open at once, and calls that wait, before new ones are turned away."
    )
    max_health_watchers: int = Field(
        default=1000,
        ge=1,
        description="Health.Watch streams open at once, which need no token, before new ones are turned away.",
    )
    max_uploads: int = Field(default=64, ge=1, description="Uploads at once before new ones are turned away.")
    deadline_cap_seconds: float = Field(
        default=60.0, gt=0, description="Longest time a call may take, whatever it asks for."
    )
    metrics_port: int = Field(default=0, ge=0, le=65535, description="Port of the Prometheus endpoint; 0 has none.")
    tls_certificate: Path | None = Field(default=None, description="PEM file of the server's certificate chain.")
    tls_key: Path | None = Field(default=None, description="PEM file of the server's private key.")
    client_authority: Path | None = Field(default=None, description="PEM file of the authority of client certificates.")
    token_keys: Path | None = Field(default=None, description="PEM file of the public keys that sign bearer tokens.")
    access: Path | None = Field(default=None, description="JSON file of principals with their roles and projects.")
    insecure_loopback: bool = Field(
        default=False,
        description="Whether everybody on this machine may do everything, without a credential; for tests only.",
    )
    drain_seconds: float = Field(default=10.0, ge=0, description="How long calls in flight may finish after SIGTERM.")

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


class StoreSettings(BaseSettings):
    """Location of the stores. Environment: POINTSMAN_DATA, POINTSMAN_DATABASE_URL."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_", frozen=True, extra="ignore")

    data: Path = Field(default=Path("~/.local/share/pointsman"), description="Directory of the SQLite files.")
    database_url: str = Field(
        default="", description="PostgreSQL for all stores, each in its own schema; empty means SQLite."
    )

    def url_for(self, context: str) -> str:
        """The database of one context."""
        if self.database_url.startswith("sqlite"):
            raise invalid_field(
                "POINTSMAN_DATABASE_URL", "is for PostgreSQL; SQLite has a file per service, below POINTSMAN_DATA"
            )
        return self.database_url or f"sqlite:///{self.directory / f'{context}.db'}"

    @property
    def directory(self) -> Path:
        """The data directory, with ~ resolved."""
        return self.data.expanduser().resolve()


class TelemetrySettings(BaseSettings):
    """How spans are exported; where to is for the standard OTEL_ variables. Environment: POINTSMAN_TELEMETRY_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_TELEMETRY_", frozen=True, extra="forbid")

    cpu_share: float = Field(
        default=0.01, gt=0, le=1, description="How much of a core the export of transitions takes while there is work."
    )
    catch_up_seconds: float = Field(
        default=60.0, ge=0, description="How far behind it may fall before it takes what it needs."
    )
    sample_transitions: bool = Field(
        default=False, description="Whether OTEL_TRACES_SAMPLER may drop transitions too; else every one is exported."
    )


class RequestSettings(BaseSettings):
    """What is remembered of requests. Environment: POINTSMAN_REQUESTS_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_REQUESTS_", frozen=True, extra="forbid")

    max_per_principal: int = Field(
        default=5_000_000,
        ge=0,
        description="Request ids of a principal that a store remembers for a project, before its commands are turned away; 0 means no limit.",
    )


class ClientSettings(BaseSettings):
    """Credentials of this process towards servers that use TLS. Environment: POINTSMAN_CLIENT_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_CLIENT_", frozen=True, extra="forbid")

    authority: Path | None = Field(
        default=None, description="PEM file of the servers' authority; without it, the data directory's."
    )
    certificate: Path | None = Field(default=None, description="PEM file of the client's certificate chain.")
    key: Path | None = Field(default=None, description="PEM file of the client's private key.")
    token: Path | None = Field(default=None, description="File of a bearer token.")
    insecure_loopback: bool = Field(
        default=False,
        description="Whether to call servers on this machine without TLS and credentials: an edge beside has them.",
    )


class PeerSettings(BaseSettings):
    """Addresses of the services. Environment: POINTSMAN_PEERS_<SERVICE>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_PEERS_", frozen=True, extra="forbid")

    router: str = Field(default="", description="Address of the router; empty means this process.")
    workflow: str = Field(default="", description="Address of the workflow service; empty means this process.")
    pipeline: str = Field(default="", description="Address of the pipeline service; empty means this process.")
    orchestrator: str = Field(default="", description="Address of the orchestrator; empty means this process.")

    def all_at(self, address: str) -> "PeerSettings":
        """The same, with every address that is not set put to this one."""
        given = {name: getattr(self, name) or address for name in type(self).model_fields}
        return PeerSettings(**given)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load(settings_class: type[Settings], environment: Mapping[str, str] = os.environ, /, **given: Any) -> Settings:
    """Read a settings class from the environment; a bad value or an unknown name says which and what is possible."""
    prefix = str(settings_class.model_config.get("env_prefix"))
    _refuse_unknown(settings_class, prefix, environment)
    try:
        return settings_class(**given)
    except ValidationError as error:
        raise invalid_fields(
            tuple(
                Violation(_variable(settings_class, environment, item["loc"]), item["msg"]) for item in error.errors()
            )
        ) from None


def _variable(settings_class: type[BaseSettings], environment: Mapping[str, str], place: Sequence[object]) -> str:
    """The variable of a setting; of those with several names the one that is set."""
    name = "_".join(map(str, place))
    for field in settings_class.model_fields.values():
        names = field.validation_alias.choices if isinstance(field.validation_alias, AliasChoices) else []
        if name in names:
            return next((str(choice) for choice in names if choice in environment), name)
    return str(settings_class.model_config.get("env_prefix")) + name.upper()


def describe(settings: BaseSettings) -> dict[str, str]:
    """Every setting with its value, passwords masked, for the start of the log."""
    return {name: _masked(str(getattr(settings, name))) for name in type(settings).model_fields}


def _refuse_unknown(settings_class: type[BaseSettings], prefix: str, environment: Mapping[str, str]) -> None:
    """Below the shared prefix every service has its names: only what is nearly one of the shared ones is refused."""
    known = {name.upper() for name in settings_class.model_fields}
    for variable in sorted(environment):
        name = variable.removeprefix(prefix)
        if name == variable or name in known:
            continue
        close = difflib.get_close_matches(name, known, 1, 0.8 if prefix == SHARED_PREFIX else 0.6)
        if close:
            raise invalid_fields((Violation(variable, f"unknown setting; did you mean {prefix}{close[0]}?"),))
        if prefix != SHARED_PREFIX:
            names = ", ".join(prefix + name for name in sorted(known))
            raise invalid_fields((Violation(variable, f"unknown setting; known: {names}"),))


def _masked(value: str) -> str:
    return PASSWORD_PARAMETER.sub(r"\1***", PASSWORD_IN_URL.sub(r"\1***@", value))


def exit_with(refusal: Refusal) -> SystemExit:
    """A refused configuration as the error message of the program."""
    return SystemExit(f"pointsman: {refusal.message}")
