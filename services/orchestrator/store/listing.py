"""Lists of runs by an index; the encoded form of a run is cached until the run changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.storage.dialect import any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import Attention
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.views import RunView
from pointsman.services.orchestrator.domain.waiting import NOBODY, AtWork, attention
from pointsman.services.orchestrator.store.attention import RunAttention
from pointsman.services.orchestrator.store.children import RunChildren
from pointsman.services.orchestrator.store.run_queries import MOST_EXAMINED, Place, RunFilter, RunQueries

Shown = TypeVar("Shown")
CACHED_RUNS = 4096


@dataclass(frozen=True, slots=True)
class Line(Generic[Shown]):
    """A run of a list, with what changes without a change of the run."""

    shown: Shown
    at_work: AtWork
    attention: Attention


@dataclass(frozen=True, slots=True)
class Page(Generic[Shown]):
    """A page of runs, the place after which the next one begins, and how far the journal was when it was read."""

    runs: Sequence[Line[Shown]]
    next_place: Place | None
    newest_position: int


@dataclass(frozen=True, slots=True)
class _Cached(Generic[Shown]):
    """The encoded form of one version of a run."""

    version: int
    shown: Shown
    labels: Mapping[str, str]
    if_nobody: Attention
    """What it asks while nobody is at work on it and nobody could be."""


class Listing(Generic[Shown]):
    """Pages of runs; only runs that changed since they were last shown are read and shown anew."""

    def __init__(
        self, store: Store, children: RunChildren, crews: RunAttention, show: Callable[[RunView], Shown]
    ) -> None:
        self._database = store.database
        self._show = show
        self._crews = crews
        self._queries = RunQueries(store, children)
        entities = store.tables.entities.c
        columns = (entities.entity_id, entities.body, entities.version, entities.created_at_us, entities.updated_at_us)
        self._bodies = select(*columns).where(any_of(store.database, entities.entity_id))
        self._newest = select(store.tables.head.c.position)
        self._cache: dict[str, _Cached[Shown]] = {}

    async def page(self, wanted: RunFilter, place: Place, size: int) -> Page[Shown]:
        """The runs from a place on that the filter admits; short where more would have to be looked at than one call may."""
        found: list[Line[Shown]] = []
        newest, examined = -1, 0
        while True:
            rows, border, position = await self._database.read(
                lambda connection: (
                    *self._queries.read(connection, wanted, place, size),  # noqa: B023
                    self.position(connection),
                )
            )
            newest = position if newest < 0 else newest
            for row, line in zip(rows, await self._lines(wanted, rows), strict=True):
                place = (row.at_us, row.entity_id)
                if line is not None:
                    found.append(line)
                if len(found) == size:
                    return Page(found, place, newest)
            examined += len(rows)
            if len(rows) < size:
                return Page(found, border, newest)
            if examined >= MOST_EXAMINED:
                return Page(found, place, newest)

    def position(self, connection: Connection) -> int:
        """How far the journal is."""
        return int(connection.execute(self._newest).scalar_one())

    async def _lines(self, wanted: RunFilter, rows: Sequence[Any]) -> list[Line[Shown] | None]:
        """What is shown of each row; nothing where the filter does not admit its run, or it was forgotten meanwhile."""
        cached = await self._shown(rows)
        waiting = [
            row.entity_id
            for row, one in zip(rows, cached, strict=True)
            if one is not None and one.if_nobody is Attention.STUCK
        ]
        at_work = await self._database.read(
            lambda connection: self._crews.at_work(connection, wanted.project, waiting)
        ) if waiting else {}  # fmt: skip
        return [_line(wanted, one, at_work.get(row.entity_id, NOBODY)) for row, one in zip(rows, cached, strict=True)]

    async def _shown(self, rows: Sequence[Any]) -> list[_Cached[Shown] | None]:
        """The cached line of each row's run; None where the run was removed meanwhile."""
        cached = {row.entity_id: self._cache.get(row.entity_id) for row in rows}
        stale = [row.entity_id for row in rows if (one := cached[row.entity_id]) is None or one.version < row.version]
        for key in stale:
            cached[key] = None
        if stale:
            wanted = {"values": bind_list(self._database, stale)}
            bodies = await self._database.read(lambda connection: connection.execute(self._bodies, wanted).all())
            cached |= {row.entity_id: self._add_to_cache(row) for row in bodies}
        return [cached[row.entity_id] for row in rows]

    def _add_to_cache(self, row: Any) -> _Cached[Shown]:
        run: Run = from_json(row.body, Run)
        shown = self._show(RunView(run, row.version, row.created_at_us, row.updated_at_us))
        cached = _Cached(row.version, shown, run.order.labels, attention(run, NOBODY))
        self._cache.pop(row.entity_id, None)
        self._cache[row.entity_id] = cached
        while len(self._cache) > CACHED_RUNS:
            del self._cache[next(iter(self._cache))]
        return cached


def _line(wanted: RunFilter, cached: _Cached[Shown] | None, at_work: AtWork) -> Line[Shown] | None:
    if cached is None or not wanted.admits(cached.labels):
        return None
    somebody = at_work.holder or at_work.agents_able
    asks = Attention.WORKING if cached.if_nobody is Attention.STUCK and somebody else cached.if_nobody
    return Line(cached.shown, at_work, asks) if not wanted.attention or asks in wanted.attention else None
