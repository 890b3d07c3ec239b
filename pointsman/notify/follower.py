"""Follows the journal and tells about every question once it is asked; its place survives crashes."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pointsman._shared.files import atomic_write
from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.client import Client, NotFound
from pointsman.notify.notice import Notice, notice_of

MAX_TOLD = 1000


class Sender(Protocol):
    """Takes notices; returns when one was taken."""

    async def send(self, notice: Notice) -> None:
        """Send until it is taken."""


@dataclass(slots=True)
class Place:
    """How far the journal was followed, and about which questions somebody was told."""

    path: Path
    position: int = 0
    told: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Place":
        """The place that was kept; a new one where there is none."""
        if not path.exists():
            return cls(path)
        kept = json.loads(path.read_text())
        return cls(path, int(kept["position"]), list(kept["told"]))

    def move(self, position: int, told: str = "") -> None:
        """Go on, and keep that before anything else happens."""
        self.position = position
        if told:
            self.told = [*self.told, told][-MAX_TOLD:]
        atomic_write(self.path, json.dumps({"position": self.position, "told": self.told}))


async def follow(client: Client, place: Place, sender: Sender, console: str = "") -> None:
    """Tell about every question from the place on; it does not end."""
    async for transition in client.runs.changes(place.position):
        notice = await _notice(client, transition, console)
        if notice is None or notice.id in place.told:
            place.position = transition.position
            continue
        await sender.send(notice)
        place.move(transition.position, notice.id)


async def _notice(client: Client, transition: Transition, console: str) -> Notice | None:
    """The question that a run has after a transition; one that was answered meanwhile needs nobody."""
    if transition.event not in ASKING:
        return None
    try:
        run = await client.runs.get(transition.entity_id)
    except NotFound:
        return None
    return notice_of(run, console) if run.HasField("question") else None


ASKING = frozenset({"asked"})
"""The event of a question."""
