"""The state of a pipeline. The statuses of all stages are one short text of marks, cheap even for 1,000 stages."""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.enums import (
    LIVE,
    PipelineStatus,
    Policy,
    RiskKind,
    Severity,
    StageStatus,
    Verdict,
)
from pointsman.services.pipeline.domain.retries import RetryRound

DEFAULT_BARRIER_TIMEOUT_SECONDS = 300.0
MAX_BARRIER_TIMEOUT_SECONDS = 604_800.0

PENDING, READY, ACTIVE = ".", "r", "a"
PASSED, DEGRADED, FAILED, SKIPPED, SKIPPED_AFTER_FAIL, TIMED_OUT = "p", "d", "f", "s", "x", "t"
ESCALATED = "e"

STATUS_OF_MARK = {
    PENDING: StageStatus.PENDING,
    READY: StageStatus.READY,
    ACTIVE: StageStatus.ACTIVE,
    PASSED: StageStatus.PASSED,
    DEGRADED: StageStatus.PASSED,
    FAILED: StageStatus.FAILED,
    SKIPPED: StageStatus.SKIPPED,
    SKIPPED_AFTER_FAIL: StageStatus.SKIPPED,
    TIMED_OUT: StageStatus.TIMED_OUT,
    ESCALATED: StageStatus.ESCALATED,
}
UNFINISHED = frozenset({PENDING, READY, ACTIVE, ESCALATED})
RISK_OF_MARK = {
    DEGRADED: RiskKind.DEGRADED,
    FAILED: RiskKind.FORCED_ON,
    SKIPPED: RiskKind.SKIPPED,
    SKIPPED_AFTER_FAIL: RiskKind.FORCED_ON,
    TIMED_OUT: RiskKind.TIMED_OUT,
}
UNPROVEN = frozenset({DEGRADED, FAILED, SKIPPED_AFTER_FAIL, TIMED_OUT})
"""A pipeline with one of these marks completes with failures."""


class Report(msgspec.Struct, frozen=True):
    """A report of a stage: the digest of its body."""

    stage: str
    sha256: str


class Return(msgspec.Struct, frozen=True):
    """Why the pipeline returned to a stage, and which reports the stage reads."""

    round: int
    failed: tuple[str, ...]
    hint: str = ""
    reports: tuple[Report, ...] = ()


class Stage(msgspec.Struct):
    """The details of a stage beside its mark; resets keep them. Never changed in place: a change is a new object."""

    delegations: int = 0
    agent_id: str = ""
    nonce: str = ""
    delegated_at: datetime | None = None
    verdict: Verdict | None = None
    severity: Severity | None = None
    hint: str = ""
    context_file: str = ""
    report: str = ""
    retries: int = 0
    crashes: int = 0
    history: tuple[RetryRound, ...] = ()
    reflection: tuple[str, ...] = ()
    returned: Return | None = None


UNTOUCHED = Stage()
"""A stage without events; it has no row."""


class OpenBarrier(msgspec.Struct, frozen=True):
    """A waiting barrier: its number in the pipeline, and when it times out (None: it has)."""

    number: int
    created_at: datetime
    due_at: datetime | None


class Settings(msgspec.Struct, frozen=True):
    """The settings of a pipeline; they never change."""

    run_id: str = ""
    template: str = ""
    policy: Policy = Policy.SEED
    require_nonce: bool = False
    barrier_timeout_seconds: float = DEFAULT_BARRIER_TIMEOUT_SECONDS
    env: dict[str, str] = msgspec.field(default_factory=dict)
    unknown: str = ""
    """The unknown fields of the imported state file, as JSON."""


class Head(msgspec.Struct):
    """The body of the entity's row, which every command needs; field values are immutable, so a shallow copy suffices."""

    settings: Settings
    shape: str
    """The digest of its DAG."""
    marks: str
    """One mark for each stage, in the DAG's order."""
    reported: str
    """`1` for each stage that left a report, else `0`, in the DAG's order."""
    created_at: datetime
    status: PipelineStatus = PipelineStatus.ACTIVE
    barriers: dict[str, OpenBarrier] = msgspec.field(default_factory=dict)
    barriers_created: int = 0
    returns: tuple[str, ...] = ()
    """The stages that the pipeline returned to and that are not delegated yet."""
    ended_at: datetime | None = None
    cleaned: bool = False


@dataclass(slots=True)
class Pipeline:
    """The state of the machine: head, DAG and the loaded stages."""

    head: Head
    graph: Graph
    stages: dict[str, Stage]
    loaded: dict[str, Stage] = field(default_factory=dict)
    """The stages as loaded; one that is another object now has changed."""

    def copy(self) -> "Pipeline":
        """A copy that can be changed without changing this one."""
        return Pipeline(copy(self.head), self.graph, dict(self.stages), self.loaded)

    def mark(self, stage: str) -> str:
        """The mark of a stage."""
        return self.head.marks[self.graph.index[stage]]

    def status_of(self, stage: str) -> StageStatus:
        """The status of a stage."""
        return STATUS_OF_MARK[self.mark(stage)]

    def finished(self, stage: str) -> bool:
        """Whether the stage has ended, in any way."""
        return self.mark(stage) not in UNFINISHED

    def has_report(self, stage: str) -> bool:
        """Whether the stage has a report."""
        return self.head.reported[self.graph.index[stage]] == "1"

    def marked(self, mark: str) -> tuple[str, ...]:
        """The stages with this mark, in the DAG's order."""
        return tuple(node.stage for node, found in zip(self.graph.nodes, self.head.marks, strict=True) if found == mark)

    def is_live(self) -> bool:
        """Whether it has not ended (`pipelineActive` of a state file)."""
        return self.head.status in LIVE

    @property
    def next_barrier_due(self) -> datetime | None:
        """When the next waiting barrier times out."""
        return min((barrier.due_at for barrier in self.head.barriers.values() if barrier.due_at), default=None)

    def is_over(self) -> bool:
        """Whether no stage is left to run."""
        return UNFINISHED.isdisjoint(self.head.marks)

    def change_stage(self, stage: str, **changes: object) -> None:
        """Replaces a stage by a changed copy; the stage must be loaded."""
        changed = copy(self.stages[stage])
        for name, value in changes.items():
            setattr(changed, name, value)
        self.stages[stage] = changed

    def change_head(self, **changes: object) -> None:
        """Changes fields of the head."""
        for name, value in changes.items():
            setattr(self.head, name, value)

    def set_marks(self, stages: Iterable[str], mark: str) -> None:
        """Sets the marks of stages, and the status of the pipeline that follows from all marks."""
        marks = before = self.head.marks
        for stage in stages:
            number = self.graph.index[stage]
            marks = f"{marks[:number]}{mark}{marks[number + 1 :]}"
        if marks is before:
            return
        self.head.marks = marks
        self.head.status = PipelineStatus.ESCALATED if ESCALATED in marks else PipelineStatus.ACTIVE

    def set_reported(self, stages: Iterable[str], *, reported: bool) -> None:
        """Sets whether stages have a report."""
        flags = self.head.reported
        for stage in stages:
            number = self.graph.index[stage]
            flags = f"{flags[:number]}{'1' if reported else '0'}{flags[number + 1 :]}"
        self.head.reported = flags
