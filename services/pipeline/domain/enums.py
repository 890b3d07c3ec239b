"""The enums of a pipeline: kinds, verdicts, routes, statuses, events; the wire has the same names."""

from enum import StrEnum

KIND = "pipeline"


class TextEnum(StrEnum):
    """A StrEnum that hashes as its text: `Enum.__hash__` is a slow Python function, and members are keys of hot tables."""

    __hash__ = str.__hash__


class StageKind(TextEnum):
    """The purpose of a stage, in the order of a full pipeline."""

    PLAN = "PLAN"
    ARCH = "ARCH"
    DESIGN = "DESIGN"
    DEV = "DEV"
    REVIEW = "REVIEW"
    TEST = "TEST"
    QA = "QA"
    E2E = "E2E"
    DOCS = "DOCS"


QUALITY = frozenset({StageKind.REVIEW, StageKind.TEST, StageKind.QA, StageKind.E2E})


class Verdict(TextEnum):
    """Whether the stage reached its aim."""

    PASS = "PASS"
    FAIL = "FAIL"


class RouteTarget(TextEnum):
    """Where an agent may route the pipeline."""

    NEXT = "NEXT"
    DEV = "DEV"
    BARRIER = "BARRIER"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"


class Severity(TextEnum):
    """The severity of a failure."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}


class RouteSource(TextEnum):
    """Where a route came from."""

    TYPED = "TYPED"
    MARKER = "MARKER"
    OLD_VERDICT = "OLD_VERDICT"
    FALLBACK = "FALLBACK"


class Correction(TextEnum):
    """The corrections of a reported route."""

    VERDICT_REPAIRED = "verdict-repaired"
    ROUTE_REPAIRED = "route-repaired"
    SEVERITY_REPAIRED = "severity-repaired"
    HINT_CUT = "hint-cut"
    CONTEXT_FILE_DROPPED = "context-file-dropped"
    BARRIER_GROUP_DROPPED = "barrier-group-dropped"
    PASS_CANNOT_RETURN = "pass-cannot-return"
    FAIL_CANNOT_GO_ON = "fail-cannot-go-on"
    FORCED_ON = "forced-on"
    COMPLETE_BEFORE_THE_END = "complete-before-the-end"
    NO_SUCH_BARRIER = "no-such-barrier"
    BARRIER_MEMBER = "barrier-member"
    NO_DEV_STAGE = "no-dev-stage"
    REPEATS_ITSELF = "repeats-itself"
    RETRY_EXHAUSTED = "retry-exhausted"
    NO_ROUTE = "no-route"
    CRASH_LIMIT = "crash-limit"
    OLD_VERDICT = "old-verdict"
    BARRIER_TIMEOUT = "barrier-timeout"


class PipelineStatus(TextEnum):
    """The status of a pipeline."""

    ACTIVE = "ACTIVE"
    ESCALATED = "ESCALATED"
    COMPLETED = "COMPLETED"
    COMPLETED_WITH_FAILURES = "COMPLETED_WITH_FAILURES"
    ABORTED = "ABORTED"
    CANCELLED = "CANCELLED"


LIVE = frozenset({PipelineStatus.ACTIVE, PipelineStatus.ESCALATED})


class StageStatus(TextEnum):
    """The status of a stage."""

    PENDING = "PENDING"
    READY = "READY"
    ACTIVE = "ACTIVE"
    PASSED = "PASSED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    TIMED_OUT = "TIMED_OUT"
    ESCALATED = "ESCALATED"


class Policy(TextEnum):
    """What follows from an unproven verdict of a QUALITY stage: SEED goes on, STRICT escalates."""

    SEED = "SEED"
    STRICT = "STRICT"


class Phase(TextEnum):
    """The phase of a pipeline, for display only."""

    IDLE = "IDLE"
    CLASSIFIED = "CLASSIFIED"
    DELEGATING = "DELEGATING"
    RETRYING = "RETRYING"
    COMPLETE = "COMPLETE"


class Disposition(TextEnum):
    """The outcome of a completion."""

    ADVANCED = "ADVANCED"
    WAIT = "WAIT"
    RETURNED = "RETURNED"
    REPEATED = "REPEATED"
    ENDED = "ENDED"
    ESCALATED = "ESCALATED"
    IGNORED = "IGNORED"


class StopReason(TextEnum):
    """Why a stage is retried or not."""

    QUALITY_GATE_PASSED = "quality-gate-passed"
    MAX_RETRIES_EXHAUSTED = "max-retries-exhausted"
    CONVERGENCE_STALL_OBSERVED = "convergence-stall-observed"
    SEVERITY_IMPROVING = "severity-improving"
    SEVERITY_WORSENING = "severity-worsening"
    RETRIES_LEFT = "retries-left"


class StopAction(TextEnum):
    """What follows from a StopReason."""

    NEXT = "NEXT"
    FORCE_NEXT = "FORCE_NEXT"
    RETRY = "RETRY"


class RiskKind(TextEnum):
    """Why a finished stage proves nothing."""

    DEGRADED = "DEGRADED"
    TIMED_OUT = "TIMED_OUT"
    FORCED_ON = "FORCED_ON"
    SKIPPED = "SKIPPED"


class EventName(TextEnum):
    """The events of a pipeline's journal."""

    PIPELINE_STARTED = "PIPELINE_STARTED"
    PIPELINE_IMPORTED = "PIPELINE_IMPORTED"
    STAGE_DELEGATED = "STAGE_DELEGATED"
    STAGE_COMPLETED = "STAGE_COMPLETED"
    STAGE_FAILED = "STAGE_FAILED"
    STAGE_RETRY = "STAGE_RETRY"
    STAGE_SKIPPED = "STAGE_SKIPPED"
    STAGE_ESCALATED = "STAGE_ESCALATED"
    STAGE_RESTARTED = "STAGE_RESTARTED"
    ROUTE_FALLBACK = "ROUTE_FALLBACK"
    ROUTE_CORRECTED = "ROUTE_CORRECTED"
    RETRY_EXHAUSTED = "RETRY_EXHAUSTED"
    CONVERGENCE_STALL = "CONVERGENCE_STALL"
    REFLECTION_WRITTEN = "REFLECTION_WRITTEN"
    CONTEXT_PUT = "CONTEXT_PUT"
    BARRIER_CREATED = "BARRIER_CREATED"
    BARRIER_WAITING = "BARRIER_WAITING"
    BARRIER_RESOLVED = "BARRIER_RESOLVED"
    BARRIER_TIMED_OUT = "BARRIER_TIMED_OUT"
    AGENT_CRASH = "AGENT_CRASH"
    COMPLETION_IGNORED = "COMPLETION_IGNORED"
    PIPELINE_COMPLETED = "PIPELINE_COMPLETED"
    PIPELINE_ABORTED = "PIPELINE_ABORTED"
    PIPELINE_CANCELLED = "PIPELINE_CANCELLED"
    PIPELINE_CLEANED = "PIPELINE_CLEANED"
