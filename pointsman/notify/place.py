"""The file of a follower: how far the journal was followed, and which questions wait for their notice."""

import json
from dataclasses import asdict, dataclass, field, replace
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
    is_followed: bool = False
    """Whether the notice to the second receiver is planned."""


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
            Pending(**{**one, "due_at": datetime.fromisoformat(one["due_at"])}) for one in stored.get("pending", ())
        ]
        return cls(path, int(stored["position"]), list(stored["told"]), pending)

    def add(self, position: int, question: Pending) -> None:
        """Moves on to a question; one that is known is not added twice."""
        self.position = position
        known = {one.id for one in self.pending} | set(self.notified)
        if question.id not in known:
            self.pending.append(question)
            self._write()

    def plan(self, first: Pending, due_at: datetime) -> Pending:
        """Adds the notice to the second receiver, once; the first notice as it is from then on."""
        if first.is_followed:
            return first
        followed = replace(first, is_followed=True)
        self.pending = [followed if one == first else one for one in self.pending]
        self.pending.append(replace(first, due_at=due_at, escalated=True))
        self._write()
        return followed

    def finish(self, done: Pending) -> None:
        """Removes a question whose notice was sent or is not needed any more."""
        self.pending = [one for one in self.pending if one != done]
        if done.id not in self.notified:
            self.notified = [*self.notified, done.id][-MAX_NOTIFIED:]
        self._write()

    def due(self, now: datetime, *, escalated: bool, whole: bool = False) -> list[Pending]:
        """The questions whose notice to a receiver is due; with one of them all, where they go out as a whole."""
        waiting = [one for one in self.pending if one.escalated == escalated]
        due = [one for one in waiting if one.due_at <= now]
        return waiting if whole and due else due

    def _write(self) -> None:
        pending = [{**asdict(one), "due_at": one.due_at.isoformat()} for one in self.pending]
        atomic_write(self.path, json.dumps({"position": self.position, "told": self.notified, "pending": pending}))
