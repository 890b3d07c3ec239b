"""The settings of the workflow service."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class WorkflowSettings(BaseSettings):
    """How the workflow service behaves. Environment: POINTSMAN_WORKFLOW_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_WORKFLOW_", frozen=True, extra="forbid")

    max_page_size: int = Field(
        default=1000, ge=1, le=1000, description="Most items on one page, whatever is asked for."
    )
