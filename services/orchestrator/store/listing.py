"""Lists of runs by an index; the encoded form of a run is cached until the run changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, String, bindparam, func, select

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.storage.dialect import any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import State
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.views import RunView

Shown = TypeVar("Shown")
KEPT_RUNS = 4096
_ALL_STATES = tuple(str(state) for state in State)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows."""

    project: str
    states: frozenset[str] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()
    session_id: str = ""
    created_after_us: int = 0
    created_before_us: int = 2**62
    id_prefix: str = ""

    def admits(self, session_id: str, labels: Mapping[str, str]) -> bool:
        """Whether a run has the labels and the session."""
        same_session = not self.session_id or session_id == self.session_id
        return same_session and all(labels.get(key) == value for key, value in self.labels)


@dataclass(frozen=True, slots=True)
class Page(Generic[Shown]):
    """A page of runs, the place after which the next one begins, and how far the journal was when it was read."""

    runs: Sequence[Shown]
    next_place: tuple[int, str] | None
    newest_position: int


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Shown]):
    """The encoded form of one version of a run."""

    version: int
    shown: Shown
    session_id: str
    labels: Mapping[str, str]


class Listing(Generic[Shown]):
    """Pages of runs, newest first; only runs that changed since they were last shown are read and shown anew."""

    def __init__(self, store: Store, show: Callable[[RunView], Shown]) -> None:
        self._database = store.database
        self._show = show
        self._rows = _rows_query(store)
        entities = store.tables.entities.c
        columns = (entities.entity_id, entities.body, entities.version, entities.created_at_us, entities.updated_at_us)
        self._bodies = select(*columns).where(any_of(store.database, entities.entity_id))
        self._newest = select(store.tables.head.c.position)
        self._kept: dict[str, _Kept[Shown]] = {}

    async def page(self, wanted: RunFilter, place: tuple[int, str], size: int) -> Page[Shown]:
        """The runs from a place on that the filter admits."""
        found: list[Shown] = []
        newest = -1
        while True:
            rows, position = await self._database.read(
                lambda connection: (self._read(connection, wanted, place, size), self._position(connection))  # noqa: B023
            )
            newest = position if newest < 0 else newest
            for row, kept in zip(rows, await self._shown(rows), strict=True):
                place = (row.created_at_us, row.entity_id)
                if kept is not None and wanted.admits(kept.session_id, kept.labels):
                    found.append(kept.shown)
                if len(found) == size:
                    return Page(found, place, newest)
            if len(rows) < size:
                return Page(found, None, newest)

    def _position(self, connection: Connection) -> int:
        return int(connection.execute(self._newest).scalar_one())

    def _read(self, connection: Connection, wanted: RunFilter, place: tuple[int, str], size: int) -> Sequence[Any]:
        before_us, before_id = place
        parameters = {
            "project": wanted.project, "before_us": min(before_us, wanted.created_before_us), "before_id": before_id,
            "after_us": wanted.created_after_us, "states": sorted(wanted.states) or list(_ALL_STATES), "limit": size,
            "id_prefix": wanted.id_prefix,
        }  # fmt: skip
        return connection.execute(self._rows, parameters).all()

    async def _shown(self, rows: Sequence[Any]) -> list[_Kept[Shown] | None]:
        """What is shown of each row's run; nothing where it was forgotten meanwhile."""
        kept = {row.entity_id: self._kept.get(row.entity_id) for row in rows}
        stale = [row.entity_id for row in rows if (one := kept[row.entity_id]) is None or one.version < row.version]
        for key in stale:
            kept[key] = None
        if stale:
            wanted = {"values": bind_list(self._database, stale)}
            bodies = await self._database.read(lambda connection: connection.execute(self._bodies, wanted).all())
            kept |= {row.entity_id: self._keep(row) for row in bodies}
        return [kept[row.entity_id] for row in rows]

    def _keep(self, row: Any) -> _Kept[Shown]:
        run: Run = from_json(row.body, Run)
        shown = self._show(RunView(run, row.version, row.created_at_us, row.updated_at_us))
        kept = _Kept(row.version, shown, run.order.session_id, run.order.labels)
        self._kept.pop(row.entity_id, None)
        self._kept[row.entity_id] = kept
        while len(self._kept) > KEPT_RUNS:
            del self._kept[next(iter(self._kept))]
        return kept


def _rows_query(store: Store) -> Any:
    """Newest first along the index of projects; the first bound of the place is one that an index understands."""
    table = store.tables.entities
    states: Any = bindparam("states", expanding=True)
    prefix = bindparam("id_prefix", type_=String)
    earlier = (table.c.created_at_us < bindparam("before_us")) | (table.c.entity_id < bindparam("before_id"))
    return (
        select(table.c.entity_id, table.c.version, table.c.created_at_us)
        .where(table.c.project == bindparam("project"), table.c.kind == MACHINE.kind)
        .where(table.c.created_at_us <= bindparam("before_us"), earlier)
        .where(table.c.created_at_us >= bindparam("after_us"))
        .where(func.substr(table.c.entity_id, 1, func.length(prefix)) == prefix)
        .where(table.c.status.in_(states))
        .order_by(table.c.created_at_us.desc(), table.c.entity_id.desc())
        .limit(bindparam("limit"))
    )
