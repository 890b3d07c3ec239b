"""Pipelines as they are read: whole, or as an item of a list."""

from dataclasses import dataclass
from datetime import datetime

from pointsman.services.pipeline.domain.enums import PipelineStatus
from pointsman.services.pipeline.domain.model import Head, Pipeline


@dataclass(frozen=True, slots=True)
class Stored:
    """A pipeline as it stands, with what its row says about it."""

    pipeline_id: str
    pipeline: Pipeline
    seq: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Listed:
    """A pipeline's head, for lists."""

    pipeline_id: str
    head: Head
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """What a clean-up of many pipelines did: how many there were, and before when they had to have ended."""

    pipelines: int
    ended_before: datetime


@dataclass(frozen=True, slots=True)
class Filter:
    """Which pipelines a list shows."""

    statuses: tuple[PipelineStatus, ...] = ()
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins: after this pipeline."""

    created_at_us: int
    pipeline_id: str
