"""Named points at which a test may kill the process for real; one comparison each when none is armed."""

import os
import signal
from enum import StrEnum

ARMED_BY = "POINTSMAN_CRASH_POINT"
"""`name` or `name:n`: die the n-th time that the point is reached."""


class CrashPoint(StrEnum):
    """Between every two steps of a commit and of a delivery."""

    BATCH_BEGUN = "batch_begun"
    BATCH_LOADED = "batch_loaded"
    BATCH_DECIDED = "batch_decided"
    JOURNAL_WRITTEN = "journal_written"
    ENTITIES_WRITTEN = "entities_written"
    CHILDREN_WRITTEN = "children_written"
    OUTBOX_WRITTEN = "outbox_written"
    ANSWERS_WRITTEN = "answers_written"
    BATCH_COMMITTED = "batch_committed"
    BEFORE_DELIVERY = "before_delivery"
    AFTER_DELIVERY = "after_delivery"
    BEFORE_TIMER = "before_timer"


class _Fuse:
    """Counts down to the armed point."""

    def __init__(self, setting: str) -> None:
        name, _, count = setting.partition(":")
        self.point = CrashPoint(name) if name else None
        self.left = int(count or 1)

    def reach(self) -> None:
        """Die here when the count is used up."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


_fuse = _Fuse(os.environ.get(ARMED_BY, ""))


def reach(point: CrashPoint) -> None:
    """Pass a named point, unless it is the armed one."""
    if _fuse.point is point:
        _fuse.reach()
