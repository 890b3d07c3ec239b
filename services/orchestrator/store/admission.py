"""Admission of new runs: how many of a project may be live at the same time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import bindparam, func, select

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.store.children import RunChildren

FULL_SECONDS = 0.1
"""How long a project counts as full that was found full: a flood must not cost a query for each of its calls."""


class Admission:
    """Counts the live runs of a project, and those that are being submitted."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        self._database = store.database
        index = children.index.c
        some = select(index.entity_id).where(index.project == bindparam("project"), index.ended_at_us == 0)
        self._live = select(func.count()).select_from(some.limit(bindparam("limit")).subquery())
        self._full_until: dict[str, float] = {}
        self._admitted: Counter[str] = Counter()
        self._settled: Counter[str] = Counter()
        """Admitted ones that are a live run by now, or none; one that settled after the count may be in neither."""

    @asynccontextmanager
    async def slot(self, project: str, limit: int) -> AsyncIterator[None]:
        """Holds a slot for one more run while it is submitted; refuses if none is free, and for a moment afterwards without counting again."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._full_until.get(project, 0.0):
            raise _full(limit)
        settled = self._settled[project]
        parameters = {"project": project, "limit": limit}
        live = await self._database.read(lambda connection: connection.execute(self._live, parameters).scalar_one())
        if live + self._admitted[project] - settled >= limit:
            self._full_until[project] = loop.time() + FULL_SECONDS
            raise _full(limit)
        self._admitted[project] += 1
        try:
            yield
        finally:
            self._settled[project] += 1


def _full(limit: int) -> Refusal:
    return Refusal(
        Reason.OVERLOADED,
        f"{limit} runs of this project are live already; try again when some have ended",
        metadata={"limit": str(limit)},
        retry_after_seconds=5.0,
    )
