"""Names of schedules: states, events and policies; the strings are stored and never change."""

from enum import StrEnum


class ScheduleState(StrEnum):
    """Whether a schedule starts runs."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    DELETED = "DELETED"


class ScheduleEvent(StrEnum):
    """What happens to a schedule."""

    CREATED = "created"
    CAME_DUE = "came_due"
    """One or more of its times are over: runs were asked for, or the times counted as missed or overlapping."""
    TRIGGERED = "triggered"
    STARTED = "started"
    START_REFUSED = "start_refused"
    RUN_ENDED = "run_ended"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"


class MissedPolicy(StrEnum):
    """What to do about times at which the control plane was not there."""

    SKIP = "SKIP"
    ONE = "ONE"
    """One run for all of them, the latest."""
    ALL = "ALL"


class OverlapPolicy(StrEnum):
    """What to do about a time that comes while an earlier run of the schedule is live."""

    SKIP = "SKIP"
    ALLOW = "ALLOW"
