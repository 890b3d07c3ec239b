"""What can be set about the gateway. Environment: POINTSMAN_GATEWAY_<NAME>."""

import importlib.util
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.config import ClientSettings, is_loopback
from pointsman.services.chassis.core.settings import Settings

DEFAULT_GATEWAY_PORT = 7461


class GatewaySettings(Settings, prefix="POINTSMAN_GATEWAY_"):
    """One frozen set for the whole process."""

    host: Annotated[
        str, Meta(description="Address to listen on; beyond loopback only with TLS and authentication.")
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="Port to listen on; 0 lets the system choose.")] = (
        DEFAULT_GATEWAY_PORT
    )
    names: Annotated[
        str, Meta(description="Host names, separated by commas, that browsers may use besides the loopback ones.")
    ] = ""
    max_body_bytes: Annotated[int, Meta(ge=1024, description="Largest JSON body, in bytes.")] = 2 * 1024 * 1024
    max_upload_bytes: Annotated[int, Meta(ge=1024, description="Largest body of lines (client streams), in bytes.")] = (
        384 * 1024 * 1024
    )
    max_header_bytes: Annotated[
        int, Meta(ge=1024, description="Largest URL and headers of a request together, in bytes.")
    ] = 16 * 1024
    max_connections: Annotated[int, Meta(ge=1, description="Connections open at once before requests get a 503.")] = (
        1000
    )
    max_connections_per_address: Annotated[
        int,
        Meta(
            ge=0,
            description="Connections of one address (IPv6: of one /64) at once; 0 sets no limit, for a gateway behind a proxy.",
        ),
    ] = 250
    header_seconds: Annotated[
        float, Meta(gt=0, description="Time in which the TLS handshake and the headers of a request have to be whole.")
    ] = 10.0
    body_seconds: Annotated[float, Meta(gt=0, description="Time in which the body of a request has to be whole.")] = (
        60.0
    )
    idle_seconds: Annotated[float, Meta(gt=0, description="How long a connection stays open between requests.")] = 5.0
    keep_alive_seconds: Annotated[
        float, Meta(gt=0, description="How often a silent event stream says that it is alive.")
    ] = 15.0

    metrics_host: Annotated[str, Meta(description="Address of the Prometheus endpoint.")] = "127.0.0.1"
    metrics_port: Annotated[
        int,
        Meta(ge=0, le=65535, description="Port of the Prometheus endpoint of a gateway that runs alone; 0 has none."),
    ] = 0

    mcp: Annotated[
        bool, Meta(description="Whether /mcp serves the Model Context Protocol; needs the extra `pointsman[mcp]`.")
    ] = False

    webhook_secret: Annotated[
        Path | None,
        Meta(
            description="File with the secret of webhooks (mode 600); with it /webhooks/github and /webhooks/gitlab are served."
        ),
    ] = None

    tls_certificate: Annotated[Path | None, Meta(description="PEM file of the gateway's certificate chain.")] = None
    tls_key: Annotated[Path | None, Meta(description="PEM file of the gateway's private key.")] = None
    token_keys: Annotated[
        Path | None,
        Meta(description="PEM file of the public keys that sign bearer tokens; with it every call needs one."),
    ] = None

    peer_certificate: Annotated[
        Path | None,
        Meta(
            description="PEM file of the certificate shown to services that take certificates only; with it the gateway vouches for its callers."
        ),
    ] = None
    peer_key: Annotated[Path | None, Meta(description="PEM file of that certificate's private key.")] = None

    @property
    def vouches(self) -> bool:
        """Whether the services see the gateway's certificate instead of the callers' tokens."""
        return self.peer_certificate is not None

    def shown_to_peers(self, client: ClientSettings) -> ClientSettings:
        """How the gateway shows itself to services: with its own certificate or as nobody, never as its process."""
        if (self.peer_certificate is None) != (self.peer_key is None):
            raise SystemExit("POINTSMAN_GATEWAY_PEER_CERTIFICATE and _PEER_KEY belong together: set both or none")
        if self.vouches and client.authority is None:
            raise SystemExit(
                "POINTSMAN_GATEWAY_PEER_CERTIFICATE needs POINTSMAN_CLIENT_AUTHORITY, to know the services"
            )
        return ClientSettings(
            authority=client.authority, certificate=self.peer_certificate, key=self.peer_key, token=None
        )

    def check_exposure(self) -> None:
        """Refuse what cannot be served, and to listen where strangers are without TLS and authentication."""
        if self.mcp and importlib.util.find_spec("mcp") is None:
            raise SystemExit("POINTSMAN_GATEWAY_MCP needs an extra that is not installed: pip install 'pointsman[mcp]'")
        guarded = self.tls_certificate is not None and self.tls_key is not None and self.token_keys is not None
        if not is_loopback(self.host) and not guarded:
            raise SystemExit(
                f"POINTSMAN_GATEWAY_HOST={self.host} is not a loopback address: listening there needs TLS "
                "(POINTSMAN_GATEWAY_TLS_CERTIFICATE, _TLS_KEY) and authentication (_TOKEN_KEYS), which are not configured"
            )
