"""Follows the journal and sends a notice for every question; its place survives crashes."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pointsman._shared.files import atomic_write
from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.client import Client, NotFound
from pointsman.notify.notice import Notice, notice_of

MAX_NOTIFIED = 1000


class Sender(Protocol):
    """Takes notices; returns when one was taken."""

    async def send(self, notice: Notice) -> None:
        """Send until it is taken."""


@dataclass(slots=True)
class Place:
    """How far the journal was followed, and the ids of the notices that were sent."""

    path: Path
    position: int = 0
    notified: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Place":
        """The stored place; a new one where there is none."""
        if not path.exists():
            return cls(path)
        stored = json.loads(path.read_text())
        return cls(path, int(stored["position"]), list(stored["told"]))

    def move(self, position: int, notified: str = "") -> None:
        """Moves on and writes the file before anything else happens."""
        self.position = position
        if notified:
            self.notified = [*self.notified, notified][-MAX_NOTIFIED:]
        atomic_write(self.path, json.dumps({"position": self.position, "told": self.notified}))


async def follow(client: Client, place: Place, sender: Sender, console: str = "") -> None:
    """Sends a notice for every question from the place on; does not end."""
    async for transition in client.runs.changes(place.position):
        notice = await _notice(client, transition, console)
        if notice is None or notice.id in place.notified:
            place.position = transition.position
            continue
        await sender.send(notice)
        place.move(transition.position, notice.id)


async def _notice(client: Client, transition: Transition, console: str) -> Notice | None:
    """The question that a run has after a transition; None when it was answered meanwhile."""
    if transition.event not in ASKING:
        return None
    try:
        run = await client.runs.get(transition.entity_id)
    except NotFound:
        return None
    return notice_of(run, console) if run.HasField("question") else None


ASKING = frozenset({"asked"})
"""The event of a question."""
