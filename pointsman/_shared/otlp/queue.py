"""What is noted for spans and waits to be sent: so much and no more, so that work never waits for it."""

import os
from collections import deque
from typing import Generic, TypeVar

Note = TypeVar("Note")


class Queue(Generic[Note]):
    """A bounded queue by the standard variables; what does not fit is dropped and counted."""

    def __init__(self) -> None:
        self.limit = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or 2048)
        self.batch = min(int(os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or 512), self.limit)
        self.delay_seconds = float(os.environ.get("OTEL_BSP_SCHEDULE_DELAY") or 1000) / 1000
        self._notes: deque[Note] = deque()
        self._dropped = 0

    def has_room(self) -> bool:
        """Whether one more is kept; the one that need not be made for that counts as dropped."""
        if len(self._notes) < self.limit:
            return True
        self._dropped += 1
        return False

    def add(self, note: Note) -> None:
        """Keep it, if there is room; never waits."""
        if self.has_room():
            self._notes.append(note)

    def take(self, most: int) -> tuple[list[Note], int]:
        """The oldest notes, and how many were dropped since they were taken last."""
        dropped, self._dropped = self._dropped, 0
        return [self._notes.popleft() for _ in range(min(most, len(self._notes)))], dropped
