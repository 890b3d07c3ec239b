"""The file of a follower: how far the journal was followed, and which questions wait for their notice."""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from pointsman._shared.files import atomic_write

MAX_NOTIFIED = 1000


@dataclass(frozen=True, slots=True)
class Pending:
    """A question whose notice is due at a moment; the second time it goes to the second receiver."""

    id: str
    run_id: str
    due_at: datetime
    escalated: bool = False


@dataclass(slots=True)
class Place:
    """How far the journal was followed, the questions that wait for a notice, and the ids of the notices that were sent."""

    path: Path
    position: int = 0
    notified: list[str] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Place":
        """The stored place; a new one where there is none."""
        if not path.exists():
            return cls(path)
        stored = json.loads(path.read_text())
        pending = [
            Pending(one["id"], one["run_id"], datetime.fromisoformat(one["due_at"]), one["escalated"])
            for one in stored.get("pending", ())
        ]
        return cls(path, int(stored["position"]), list(stored["told"]), pending)

    def add(self, position: int, question: Pending) -> None:
        """Moves on to a question; one that is known is not added twice."""
        self.position = position
        known = {one.id for one in self.pending} | set(self.notified)
        if question.id not in known:
            self.pending.append(question)
            self._write()

    def finish(self, done: Pending, then: Pending | None = None) -> None:
        """Removes a question whose notice was sent or is not needed any more; another notice may follow."""
        self.pending = [one for one in self.pending if one != done]
        if then is not None:
            self.pending.append(then)
        if done.id not in self.notified:
            self.notified = [*self.notified, done.id][-MAX_NOTIFIED:]
        self._write()

    def due(self, now: datetime, *, whole: bool) -> list[Pending]:
        """The questions whose notice is due; with one of them all first notices, where they go out as a whole."""
        due = [one for one in self.pending if one.due_at <= now]
        if whole and any(not one.escalated for one in due):
            return [one for one in self.pending if not one.escalated or one in due]
        return due

    def _write(self) -> None:
        pending = [{**asdict(one), "due_at": one.due_at.isoformat()} for one in self.pending]
        atomic_write(self.path, json.dumps({"position": self.position, "told": self.notified, "pending": pending}))
