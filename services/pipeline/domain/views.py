"""Pipelines as callers see them: whole or listed, with phase and residual risks."""

from dataclasses import dataclass
from datetime import datetime

from pointsman.services.pipeline.domain.enums import Phase, PipelineStatus, RiskKind
from pointsman.services.pipeline.domain.model import ACTIVE, RISK_OF_MARK, Head, Pipeline


@dataclass(frozen=True, slots=True)
class StoredPipeline:
    """A pipeline with the seq and times of its row."""

    pipeline_id: str
    pipeline: Pipeline
    seq: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ListedPipeline:
    """A pipeline in a list: its head and times."""

    pipeline_id: str
    head: Head
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """The answer of CleanUp: how many pipelines were cleaned, of those that ended before a time."""

    pipelines: int
    ended_before: datetime


@dataclass(frozen=True, slots=True)
class PipelineFilter:
    """Which pipelines to list."""

    statuses: tuple[PipelineStatus, ...] = ()
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class PipelineCursor:
    """Where a page begins: after this pipeline."""

    created_at_us: int
    pipeline_id: str


def phase(pipeline: Pipeline) -> Phase:
    """The phase for display: the first of five conditions that is true."""
    if not pipeline.graph.nodes:
        return Phase.IDLE
    if not pipeline.is_live():
        return Phase.COMPLETE
    if pipeline.head.returns:
        return Phase.RETRYING
    return Phase.DELEGATING if ACTIVE in pipeline.head.marks else Phase.CLASSIFIED


def risks(pipeline: Pipeline) -> tuple[tuple[str, RiskKind], ...]:
    """The residual risks of finished stages, without members of barriers that still wait."""
    pairs = zip(pipeline.graph.nodes, pipeline.head.marks, strict=True)
    waiting = pipeline.head.barriers
    return tuple(
        (node.stage, RISK_OF_MARK[mark]) for node, mark in pairs if mark in RISK_OF_MARK and node.barrier not in waiting
    )
