"""The settings of the pipeline service."""

from typing import Annotated

from msgspec import Meta

from pointsman.services.chassis.core.settings import Settings


class PipelineSettings(Settings, prefix="POINTSMAN_PIPELINE_"):
    """Defaults of pipelines, and how often timers are polled. Environment: POINTSMAN_PIPELINE_<NAME>."""

    barrier_timeout_seconds: (
        Annotated[
            float,
            Meta(
                ge=1,
                le=604_800,
                description="How long a barrier waits where its pipeline does not say; unset: 5 minutes, in runs an hour.",
            ),
        ]
        | None
    ) = None
    timer_poll_seconds: Annotated[
        float, Meta(gt=0, le=60, description="How often timers of other replicas are looked for.")
    ] = 1.0
