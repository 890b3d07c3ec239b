"""A bounded queue of records that wait to be exported as spans; the work that is recorded never waits for it."""

import os
from collections import deque
from typing import Generic, TypeVar

Record = TypeVar("Record")


class Queue(Generic[Record]):
    """Drops and counts what does not fit; limits come from the standard OTEL_BSP_ variables."""

    def __init__(self) -> None:
        self.limit = int(os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") or 2048)
        self.batch = min(int(os.environ.get("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") or 512), self.limit)
        self.delay_seconds = float(os.environ.get("OTEL_BSP_SCHEDULE_DELAY") or 1000) / 1000
        self._records: deque[Record] = deque()
        self._dropped = 0

    def has_room(self) -> bool:
        """Whether one more record fits; if not, the record that the caller does not make counts as dropped."""
        if len(self._records) < self.limit:
            return True
        self._dropped += 1
        return False

    def add(self, record: Record) -> None:
        """Append a record, or drop it if the queue is full; never waits."""
        if self.has_room():
            self._records.append(record)

    def take(self, limit: int) -> tuple[list[Record], int]:
        """Remove the oldest records; also how many were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return [self._records.popleft() for _ in range(min(limit, len(self._records)))], dropped
