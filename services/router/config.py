"""The settings of the router."""

from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.settings import Settings

HARD_ROUTING = ("POINTSMAN_ROUTER_HARD_ROUTING", "ENABLE_HARD_ROUTING")


class RouterSettings(Settings, prefix="POINTSMAN_ROUTER_", aliases={"hard_routing": HARD_ROUTING}):
    """Defaults for projects without a policy. Environment: POINTSMAN_ROUTER_<NAME>."""

    hard_routing: Annotated[
        bool,
        Meta(
            description="Whether decisions bind in projects without a policy; ENABLE_HARD_ROUTING is the same switch."
        ),
    ] = True
