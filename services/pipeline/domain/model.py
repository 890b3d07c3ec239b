"""A pipeline in memory. The marks of all stages are one short text, so that a thousand of them stay cheap."""

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
"""A pipeline that ends with one of these ends with failures."""


class Report(msgspec.Struct, frozen=True):
    """A report of one stage, by the digest of its body."""

    stage: str
    sha256: str


class Return(msgspec.Struct, frozen=True):
    """Why the pipeline came back to a stage, and what the stage should read."""

    round: int
    failed: tuple[str, ...]
    hint: str = ""
    reports: tuple[Report, ...] = ()


class Stage(msgspec.Struct):
    """What is known of one stage beyond its mark; it outlives resets. Never changed in place: a change is a new one."""

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
"""A stage to which nothing has happened yet; it has no row of its own."""


class OpenBarrier(msgspec.Struct, frozen=True):
    """A barrier that waits: its number in this pipeline, and until when."""

    number: int
    created_at: datetime
    due_at: datetime | None


class Settings(msgspec.Struct, frozen=True):
    """What a pipeline was started with; it never changes."""

    run_id: str = ""
    template: str = ""
    policy: Policy = Policy.SEED
    require_nonce: bool = False
    barrier_timeout_seconds: float = DEFAULT_BARRIER_TIMEOUT_SECONDS
    env: dict[str, str] = msgspec.field(default_factory=dict)
    unknown: str = ""
    """What the state file that it came from said beyond what is known here, as JSON."""


class Head(msgspec.Struct):
    """The part of a pipeline that every command needs; its parts are immutable, so that a shallow copy is a copy."""

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
    """The stages that a failure went back to and that nobody has been given yet."""
    ended_at: datetime | None = None
    cleaned: bool = False


@dataclass(slots=True)
class Pipeline:
    """A pipeline: its head, its DAG, and those of its stages that have been loaded."""

    head: Head
    graph: Graph
    stages: dict[str, Stage]
    loaded: dict[str, Stage] = field(default_factory=dict)
    """The stages as they were loaded; one that is another object now has changed."""

    def copy(self) -> "Pipeline":
        """A pipeline that can be changed without changing this one."""
        return Pipeline(copy(self.head), self.graph, dict(self.stages), self.loaded)

    def mark(self, stage: str) -> str:
        """The mark of a stage."""
        return self.head.marks[self.graph.index[stage]]

    def status_of(self, stage: str) -> StageStatus:
        """Where a stage is."""
        return STATUS_OF_MARK[self.mark(stage)]

    def finished(self, stage: str) -> bool:
        """Whether the stage is over, one way or another."""
        return self.mark(stage) not in UNFINISHED

    def has_report(self, stage: str) -> bool:
        """Whether the stage left a report."""
        return self.head.reported[self.graph.index[stage]] == "1"

    def marked(self, mark: str) -> tuple[str, ...]:
        """The stages with this mark, in the DAG's order."""
        return tuple(node.stage for node, found in zip(self.graph.nodes, self.head.marks, strict=True) if found == mark)

    def is_live(self) -> bool:
        """Whether anything can still happen to it (the seed's pipelineActive)."""
        return self.head.status in LIVE

    @property
    def next_barrier_due(self) -> datetime | None:
        """When the first of the barriers that wait stops waiting."""
        return min((waiting.due_at for waiting in self.head.barriers.values() if waiting.due_at), default=None)

    def is_over(self) -> bool:
        """Whether no stage is left to run."""
        return UNFINISHED.isdisjoint(self.head.marks)

    def change_stage(self, stage: str, **changes: object) -> None:
        """Put a changed copy of a stage in its place; one that was not loaded is a bug."""
        changed = copy(self.stages[stage])
        for name, value in changes.items():
            setattr(changed, name, value)
        self.stages[stage] = changed

    def change_head(self, **changes: object) -> None:
        """Change fields of the head."""
        for name, value in changes.items():
            setattr(self.head, name, value)

    def put_marks(self, stages: Iterable[str], mark: str) -> None:
        """Give stages a mark, and the pipeline the status that follows from all marks."""
        marks = before = self.head.marks
        for stage in stages:
            number = self.graph.index[stage]
            marks = f"{marks[:number]}{mark}{marks[number + 1 :]}"
        if marks is before:
            return
        self.head.marks = marks
        self.head.status = PipelineStatus.ESCALATED if ESCALATED in marks else PipelineStatus.ACTIVE

    def put_reported(self, stages: Iterable[str], *, reported: bool) -> None:
        """Note which stages have left a report."""
        flags = self.head.reported
        for stage in stages:
            number = self.graph.index[stage]
            flags = f"{flags[:number]}{'1' if reported else '0'}{flags[number + 1 :]}"
        self.head.reported = flags
