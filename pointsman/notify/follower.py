"""Follows the journal and sends a notice for every question; its place survives crashes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pointsman._shared.system_time import now_seconds
from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.client import Client, NotFound
from pointsman.notify.notice import Notice, Offer, digest_of, notice_of
from pointsman.notify.place import Pending, Place
from pointsman.notify.policy import Policy

ASKING = frozenset({"asked"})
"""The event of a question."""
LOOK_SECONDS = 30.0
"""How often due notices are looked for at the least: the clock of the machine may be set, or have slept."""


class Sender(Protocol):
    """Takes notices; returns when one was taken."""

    async def send(self, notice: Notice) -> None:
        """Sends until it is taken."""


def local_now() -> datetime:
    """The time of the machine's time zone, in which quiet hours are written."""
    return datetime.fromtimestamp(now_seconds()).astimezone()


@dataclass(slots=True)
class Follower:
    """Notifies the first receiver of every question, and the second of those that stay unanswered."""

    client: Client
    place: Place
    first: Sender
    second: Sender | None = None
    policy: Policy = field(default_factory=Policy)
    console: str = ""
    offer: Offer | None = None
    now: Callable[[], datetime] = local_now
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _planned: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Follows and sends; does not end. A receiver that takes nothing keeps no notice from the other one."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._repeat(self.send_first, self._asked, escalated=False))
            group.create_task(self._repeat(self.send_second, self._planned, escalated=True))

    async def _follow(self) -> None:
        """A question is stored with the position behind it: what was read is sent, after a crash too."""
        async for transition in self.client.runs.changes(self.place.position):
            notice = await self._asked_by(transition)
            if notice is None:
                self.place.position = transition.position
                continue
            self.place.add(transition.position, Pending(notice.id, notice.run_id, self.policy.due(self.now())))
            self._asked.set()

    async def _repeat(self, send: Callable[[], Awaitable[None]], news: asyncio.Event, *, escalated: bool) -> None:
        while True:
            news.clear()
            await send()
            waits = [one.due_at - self.now() for one in self.place.pending if one.escalated == escalated]
            wait = min(waits, default=timedelta(seconds=LOOK_SECONDS))
            try:
                async with asyncio.timeout(min(max(wait.total_seconds(), 0.0), LOOK_SECONDS)):
                    await news.wait()
            except TimeoutError:
                continue

    async def send_first(self) -> None:
        """Sends the first notices that are due, those of questions that were answered meanwhile excepted."""
        due = self.place.due(self.now(), escalated=False, whole=self.policy.digest_minutes > 0)
        opened = [(one, await self._open(one)) for one in due]
        open_ones = [(self._plan(one), notice) for one, notice in opened if notice is not None]
        for one, notice in opened:
            if notice is None:
                self.place.finish(one)
        for group in [open_ones] if self.policy.digest_minutes and open_ones else [[one] for one in open_ones]:
            await self.first.send(digest_of([notice for _, notice in group]))
            for one, _ in group:
                self.place.finish(one)

    def _plan(self, first: Pending) -> Pending:
        """Plan the notice to the second receiver before the first is sent: the first receiver may take none for hours."""
        if self.second is None or not self.policy.escalate_minutes:
            return first
        followed = self.place.plan(first, self.now() + timedelta(minutes=self.policy.escalate_minutes))
        self._planned.set()
        return followed

    async def send_second(self) -> None:
        """Notifies the second receiver of what is still unanswered when that is due."""
        for question in self.place.due(self.now(), escalated=True):
            notice = await self._open(question)
            if notice is not None and self.second is not None:
                await self.second.send(notice)
            self.place.finish(question)

    async def _asked_by(self, transition: Transition) -> Notice | None:
        """The question that a run has after a transition; None when it was answered meanwhile."""
        return await self._notice(transition.entity_id) if transition.event in ASKING else None

    async def _open(self, question: Pending) -> Notice | None:
        """The notice of a question that still waits for its answer."""
        notice = await self._notice(question.run_id)
        return notice if notice is not None and notice.id == question.id else None

    async def _notice(self, run_id: str) -> Notice | None:
        try:
            run = await self.client.runs.get(run_id)
        except NotFound:
            return None
        return notice_of(run, self.console, self.offer) if run.HasField("question") else None
