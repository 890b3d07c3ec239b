"""The states, modes, events and constraint terms of workflows; most have the same name on the wire."""

from enum import StrEnum

KIND = "workflow"
TASK_KIND = "task"
RETRY_LIMIT = 3
ALL_DEPENDENCIES = "all"
CANCELLED = "cancelled"


class WorkflowStatus(StrEnum):
    """The status of a workflow."""

    IDLE = "idle"
    PLANNED = "planned"
    RUNNING = "running"
    PAUSED = "paused"
    BLOCKED = "blocked"
    FAILED = "failed"
    COMPLETED = "completed"


class TaskStatus(StrEnum):
    """The status of a task."""

    PENDING = "pending"
    BLOCKED = "blocked"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    FAILED = "failed"


SETTLED_TASKS = frozenset({TaskStatus.COMPLETED, TaskStatus.SKIPPED})
"""The dependants of a task in one of these states may run."""


class ExecutionMode(StrEnum):
    """After what a running workflow pauses by itself."""

    STEP = "step"
    PHASE = "phase"
    QUALITY_GATE = "quality_gate"


class WorkflowMode(StrEnum):
    """Whether external dependencies are inferred: not in NORMAL, in PROGRESSIVE."""

    NORMAL = "normal"
    PROGRESSIVE = "progressive"


class PauseCause(StrEnum):
    """Why a workflow was paused."""

    STEP = "step"
    PHASE_CHANGED = "phase_changed"
    QUALITY_GATE = "quality_gate"
    BEFORE_COMMIT = "before_commit"
    CONSECUTIVE_LIMIT = "consecutive_limit"
    CONTEXT_USAGE = "context_usage"
    CONSTRAINTS = "constraints"
    REQUESTED = "requested"
    OWNER_RELEASED = "owner_released"


class ConstraintType(StrEnum):
    """Whether a constraint must (hard) or should (soft) be met."""

    HARD = "hard"
    SOFT = "soft"


class Category(StrEnum):
    """The subject of a constraint."""

    REQUIREMENT = "requirement"
    INTERFACE = "interface"
    DATA = "data"
    ERROR = "error"
    SECURITY = "security"
    PERFORMANCE = "performance"


class SourceModel(StrEnum):
    """Who proposed a constraint."""

    CODEX = "codex"
    GEMINI = "gemini"
    CLAUDE = "claude"
    USER = "user"


class ConstraintPhase(StrEnum):
    """When a constraint was proposed."""

    ANALYSIS = "analysis"
    REVIEW = "review"


class Verification(StrEnum):
    """The state of a constraint's check; only `passed` and `waived` let a workflow complete."""

    UNVERIFIED = "unverified"
    PASSED = "passed"
    FAILED = "failed"
    WAIVED = "waived"


class Size(StrEnum):
    """The estimated size of a task."""

    TRIVIAL = "trivial"
    SMALL = "small"
    MEDIUM = "medium"
    COMPLEX = "complex"


class Side(StrEnum):
    """Which side of a system a task is about."""

    BACKEND = "backend"
    FRONTEND = "frontend"
    BOTH = "both"
    NEITHER = "neither"


class CollaborationMode(StrEnum):
    """How many models work together."""

    NONE = "none"
    SINGLE = "single"
    DUAL = "dual"
    TRIPLE = "triple"


class Model(StrEnum):
    """The models that can lead or support."""

    CODEX = "codex"
    GEMINI = "gemini"
    CLAUDE = "claude"


class ParallelPhase(StrEnum):
    """The phases that models can work on in parallel."""

    ANALYSIS = "analysis"
    PROTOTYPE = "prototype"
    REVIEW = "review"


class EventName(StrEnum):
    """The names of events in the journal."""

    CREATED = "created"
    IMPORTED = "imported"
    FIELDS_CHANGED = "fields_changed"
    PLAN_STORED = "plan_stored"
    EXECUTED = "executed"
    CLAIMED = "claimed"
    RELEASED = "released"
    OWNER_RELEASED = "owner_released"
    TASKS_SETTLED = "tasks_settled"
    TASK_RETRIED = "task_retried"
    TASK_SKIPPED = "task_skipped"
    PAUSED = "paused"
    RESUMED = "resumed"
    REOPENED = "reopened"
    UNBLOCKED = "unblocked"
    BLOCKED = "blocked"
    FAILED = "failed"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    CONSTRAINTS_MERGED = "constraints_merged"
    CONSTRAINTS_VERIFIED = "constraints_verified"
    CONSTRAINT_WAIVED = "constraint_waived"
    USAGE_RECORDED = "usage_recorded"
    AUDITED = "audited"
