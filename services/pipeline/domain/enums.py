"""The words of a pipeline: kinds, verdicts, routes, states, events. Each has the name it has on the wire."""

from enum import StrEnum

KIND = "pipeline"


class Word(StrEnum):
    """A word that is looked up as the text it is: an Enum's own hash is a function in Python, and tables are hot."""

    __hash__ = str.__hash__


class StageKind(Word):
    """What a stage is for, in the order in which a task passes them."""

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


class Verdict(Word):
    """Did the stage reach its aim."""

    PASS = "PASS"
    FAIL = "FAIL"


class RouteTarget(Word):
    """Where an agent may ask the pipeline to go."""

    NEXT = "NEXT"
    DEV = "DEV"
    BARRIER = "BARRIER"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"


class Severity(Word):
    """How bad a failure is."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


SEVERITY_RANK = {severity: rank for rank, severity in enumerate(Severity)}


class RouteSource(Word):
    """Where a route came from."""

    TYPED = "TYPED"
    MARKER = "MARKER"
    OLD_VERDICT = "OLD_VERDICT"
    FALLBACK = "FALLBACK"


class Correction(Word):
    """What was corrected in a route."""

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


class PipelineStatus(Word):
    """Where a pipeline is."""

    ACTIVE = "ACTIVE"
    ESCALATED = "ESCALATED"
    COMPLETED = "COMPLETED"
    COMPLETED_WITH_FAILURES = "COMPLETED_WITH_FAILURES"
    ABORTED = "ABORTED"
    CANCELLED = "CANCELLED"


LIVE = frozenset({PipelineStatus.ACTIVE, PipelineStatus.ESCALATED})


class StageStatus(Word):
    """Where a stage is."""

    PENDING = "PENDING"
    READY = "READY"
    ACTIVE = "ACTIVE"
    PASSED = "PASSED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    TIMED_OUT = "TIMED_OUT"
    ESCALATED = "ESCALATED"


class Policy(Word):
    """What happens when a QUALITY stage cannot be believed."""

    SEED = "SEED"
    STRICT = "STRICT"


class Phase(Word):
    """The phase of a pipeline, for display only."""

    IDLE = "IDLE"
    CLASSIFIED = "CLASSIFIED"
    DELEGATING = "DELEGATING"
    RETRYING = "RETRYING"
    COMPLETE = "COMPLETE"


class Disposition(Word):
    """What a completion led to."""

    ADVANCED = "ADVANCED"
    WAIT = "WAIT"
    RETURNED = "RETURNED"
    REPEATED = "REPEATED"
    ENDED = "ENDED"
    ESCALATED = "ESCALATED"
    IGNORED = "IGNORED"


class StopReason(Word):
    """Why a stage stops or goes on trying."""

    QUALITY_GATE_PASSED = "quality-gate-passed"
    MAX_RETRIES_EXHAUSTED = "max-retries-exhausted"
    CONVERGENCE_STALL_OBSERVED = "convergence-stall-observed"
    SEVERITY_IMPROVING = "severity-improving"
    SEVERITY_WORSENING = "severity-worsening"
    RETRIES_LEFT = "retries-left"


class StopAction(Word):
    """What follows from it."""

    NEXT = "NEXT"
    FORCE_NEXT = "FORCE_NEXT"
    RETRY = "RETRY"


class RiskKind(Word):
    """Why a finished stage is no proof."""

    DEGRADED = "DEGRADED"
    TIMED_OUT = "TIMED_OUT"
    FORCED_ON = "FORCED_ON"
    SKIPPED = "SKIPPED"


class EventName(Word):
    """What the timeline of a pipeline is made of."""

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
