"""What can be set about the gateway. Environment: POINTSMAN_GATEWAY_<NAME>."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from pointsman.services.chassis.config import is_loopback

DEFAULT_GATEWAY_PORT = 7461


class GatewaySettings(BaseSettings):
    """One frozen set for the whole process."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_GATEWAY_", frozen=True, extra="forbid")

    host: str = Field(
        default="127.0.0.1", description="Address to listen on; beyond loopback only with TLS and authentication."
    )
    port: int = Field(
        default=DEFAULT_GATEWAY_PORT, ge=0, le=65535, description="Port to listen on; 0 lets the system choose."
    )
    names: str = Field(
        default="", description="Host names, separated by commas, that browsers may use besides the loopback ones."
    )
    max_body_bytes: int = Field(default=2 * 1024 * 1024, ge=1024, description="Largest JSON body, in bytes.")
    max_upload_bytes: int = Field(
        default=384 * 1024 * 1024, ge=1024, description="Largest body of lines (client streams), in bytes."
    )
    keep_alive_seconds: float = Field(
        default=15.0, gt=0, description="How often a silent event stream says that it is alive."
    )

    tls_certificate: Path | None = Field(default=None, description="PEM file of the gateway's certificate chain.")
    tls_key: Path | None = Field(default=None, description="PEM file of the gateway's private key.")
    token_keys: Path | None = Field(
        default=None, description="PEM file of the public key that signs bearer tokens; with it every call needs one."
    )

    def check_exposure(self) -> None:
        """Refuse to listen where strangers are, without TLS and authentication."""
        guarded = self.tls_certificate is not None and self.tls_key is not None and self.token_keys is not None
        if not is_loopback(self.host) and not guarded:
            raise SystemExit(
                f"POINTSMAN_GATEWAY_HOST={self.host} is not a loopback address: listening there needs TLS "
                "(POINTSMAN_GATEWAY_TLS_CERTIFICATE, _TLS_KEY) and authentication (_TOKEN_KEYS), which are not configured"
            )
