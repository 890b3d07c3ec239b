"""The settings of the router."""

from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class RouterSettings(BaseSettings):
    """Defaults for projects without a policy. Environment: POINTSMAN_ROUTER_<NAME>."""

    model_config = SettingsConfigDict(
        env_prefix="POINTSMAN_ROUTER_", frozen=True, extra="forbid", populate_by_name=True
    )

    hard_routing: bool = Field(
        default=True,
        validation_alias=AliasChoices("POINTSMAN_ROUTER_HARD_ROUTING", "ENABLE_HARD_ROUTING"),
        description="Whether decisions bind in projects without a policy; ENABLE_HARD_ROUTING is the same switch.",
    )
