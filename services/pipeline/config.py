"""The settings of the pipeline service."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class PipelineSettings(BaseSettings):
    """Defaults of pipelines, and how often timers are polled. Environment: POINTSMAN_PIPELINE_<NAME>."""

    model_config = SettingsConfigDict(env_prefix="POINTSMAN_PIPELINE_", frozen=True, extra="forbid")

    barrier_timeout_seconds: float | None = Field(
        default=None,
        ge=1,
        le=604_800,
        description="How long a barrier waits where its pipeline does not say; unset: 5 minutes, in runs an hour.",
    )
    timer_poll_seconds: float = Field(
        default=1.0, gt=0, le=60, description="How often timers of other replicas are looked for."
    )
