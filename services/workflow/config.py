"""The settings of the workflow service."""

from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.settings import Settings


class WorkflowSettings(Settings, prefix="POINTSMAN_WORKFLOW_"):
    """How the workflow service behaves. Environment: POINTSMAN_WORKFLOW_<NAME>."""

    max_page_size: Annotated[int, Meta(ge=1, le=1000, description="Most items on one page, whatever is asked for.")] = (
        1000
    )
