"""The statements of the list of runs: newest first, live ones, and by end; each along an index, each bounded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, String, bindparam, func, literal_column, select

from pointsman.services.chassis.storage.dialect import any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import Attention, State
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.store.attention import LIVE
from pointsman.services.orchestrator.store.children import RunChildren

MOST_EXAMINED = 10_000
"""How many runs one call looks at."""
MOST_WORDS = 8
FOREVER = 2**62
UNKNOWN = "?"
"""The outcome of a run whose row the version before has written; a loop fills it in."""
_OUTCOMES: Mapping[Attention, str] = {
    Attention.FAILED: str(State.FAILED),
    Attention.DONE: str(State.COMPLETE),
    Attention.CANCELLED: str(State.CANCELLED),
}
_ALL_STATES = tuple(str(state) for state in State)
Place = tuple[int, str]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows, and in which order."""

    project: str
    states: frozenset[str] = frozenset()
    labels: tuple[tuple[str, str], ...] = ()
    session_id: str = ""
    created_after_us: int = 0
    created_before_us: int = FOREVER
    id_prefix: str = ""
    attention: frozenset[Attention] = frozenset()
    text: str = ""
    by_end: bool = False

    @property
    def outcomes(self) -> list[str]:
        """How the runs ended that can be among those wanted; empty for live ones."""
        wanted = self.attention or frozenset(Attention)
        ended = [outcome for attention, outcome in _OUTCOMES.items() if attention in wanted]
        return ended if self.by_end or not wanted - set(_OUTCOMES) else [*ended, LIVE, UNKNOWN]

    @property
    def only_live(self) -> bool:
        """Whether no ended run is wanted."""
        return bool(self.attention) and not self.attention & set(_OUTCOMES)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether a run has the labels."""
        return all(labels.get(key) == value for key, value in self.labels)


class RunQueries:
    """Reads rows of runs from a place on."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        self._database = store.database
        entities, index = store.tables.entities, children.index
        joined = entities.join(index, index.c.entity_id == entities.c.entity_id)
        of_project = (entities.c.project == bindparam("project"), entities.c.kind == MACHINE.kind)
        lives = (index.c.project == bindparam("project"), index.c.outcome == literal_column(f"'{LIVE}'"))
        ended = (index.c.project == bindparam("project"), index.c.outcome == bindparam("outcome", type_=String))
        filters = self._filters(entities.c, index.c)
        columns = (entities.c.entity_id, entities.c.version)
        by_age, by_end = entities.c.created_at_us, index.c.ended_at_us
        some = any_of(store.database, index.c.outcome, "outcomes")
        self._newest = _from_place(select(*columns, by_age.label("at_us")).select_from(joined), by_age, entities.c)
        self._newest = self._newest.where(*of_project, *filters, some)
        self._live = _from_place(select(*columns, by_age.label("at_us")).select_from(joined), by_age, entities.c)
        self._live = self._live.where(*lives, *filters)
        self._ended = _from_place(select(*columns, by_end.label("at_us")).select_from(joined), by_end, index.c)
        self._ended = self._ended.where(*ended, *filters)
        self._newest_border = _border(select(by_age.label("at_us"), entities.c.entity_id), by_age, entities.c)
        self._newest_border = self._newest_border.where(*of_project)
        self._ended_border = _border(select(by_end.label("at_us"), index.c.entity_id), by_end, index.c).where(*ended)

    def read(
        self, connection: Connection, wanted: RunFilter, place: Place, size: int
    ) -> tuple[Sequence[Any], Place | None]:
        """Rows after a place, and the place up to which was looked, where more than one call may look at is left."""
        given = self._parameters(wanted, place, size)
        if wanted.by_end:
            return self._by_end(connection, wanted.outcomes, given, size)
        if wanted.only_live:
            return connection.execute(self._live, {**given, "until_us": 0}).all(), None
        border = connection.execute(self._newest_border, given).first()
        return _within(connection.execute(self._newest, _until(given, border)).all(), border), _place(border)

    def _by_end(
        self, connection: Connection, outcomes: Sequence[str], given: dict[str, Any], size: int
    ) -> tuple[Sequence[Any], Place | None]:
        """Each outcome along its index, merged; nobody goes on before the nearest border."""
        asked = [{**given, "outcome": outcome} for outcome in outcomes]
        borders = [found for one in asked if (found := connection.execute(self._ended_border, one).first())]
        border = max(borders, key=_place, default=None)
        rows = [row for one in asked for row in connection.execute(self._ended, _until(one, border))]
        return _within(sorted(rows, key=_place, reverse=True)[:size], border), _place(border)

    def _parameters(self, wanted: RunFilter, place: Place, size: int) -> dict[str, Any]:
        before_us, before_id = place
        if not wanted.by_end and wanted.created_before_us < before_us:
            before_us, before_id = wanted.created_before_us, ""
        words = [word.lower() for word in wanted.text.split()[:MOST_WORDS]]
        asks = Attention.NEEDS_YOU in wanted.attention
        only_asks = wanted.attention == {Attention.NEEDS_YOU}
        return {
            "project": wanted.project, "before_us": before_us, "before_id": before_id, "limit": size,
            "created_after_us": wanted.created_after_us, "created_before_us": wanted.created_before_us,
            "states": sorted(wanted.states) or list(_ALL_STATES), "id_prefix": wanted.id_prefix,
            "session_id": wanted.session_id, "until_us": 0,
            "outcomes": bind_list(self._database, wanted.outcomes), "asked_from": 1 if only_asks else 0,
            "asked_to": FOREVER if asks or not wanted.attention else 0,
            **{f"word_{number}": (words + [""] * MOST_WORDS)[number] for number in range(MOST_WORDS)},
        }  # fmt: skip

    def _filters(self, entities: Any, index: Any) -> list[Any]:
        states: Any = bindparam("states", expanding=True)
        prefix, session = bindparam("id_prefix", type_=String), bindparam("session_id", type_=String)
        contains = func.strpos if self._database.is_postgresql else func.instr
        words = (bindparam(f"word_{number}", type_=String) for number in range(MOST_WORDS))
        return [
            entities.created_at_us >= bindparam("created_after_us"),
            entities.created_at_us < bindparam("created_before_us"),
            entities.status.in_(states),
            func.substr(entities.entity_id, 1, func.length(prefix)) == prefix,
            (session == literal_column("''")) | (index.session_id == session),
            index.asked_at_us >= bindparam("asked_from"),
            index.asked_at_us <= bindparam("asked_to", type_=BigInteger),
            *((word == literal_column("''")) | (contains(index.words, word) > 0) for word in words),
        ]


def _from_place(statement: Select[Any], key: Any, columns: Any) -> Select[Any]:
    """Latest first, from a place on; the first bound of the place is one that an index understands."""
    earlier = (key < bindparam("before_us")) | (columns.entity_id < bindparam("before_id"))
    return (
        statement.where(key <= bindparam("before_us"), key >= bindparam("until_us"), earlier)
        .order_by(key.desc(), columns.entity_id.desc())
        .limit(bindparam("limit"))
    )


def _border(statement: Select[Any], key: Any, columns: Any) -> Select[Any]:
    """The last run that one call looks at, where there are more."""
    earlier = (key < bindparam("before_us")) | (columns.entity_id < bindparam("before_id"))
    return (
        statement.where(key <= bindparam("before_us"), earlier)
        .order_by(key.desc(), columns.entity_id.desc())
        .limit(1)
        .offset(MOST_EXAMINED)
    )


def _until(given: dict[str, Any], border: Any) -> dict[str, Any]:
    return {**given, "until_us": border.at_us if border is not None else 0}


def _within(rows: Sequence[Any], border: Any) -> Sequence[Any]:
    """Without runs of the border's own microsecond that come after it."""
    return rows if border is None else [row for row in rows if _place(row) >= _place(border)]


def _place(row: Any) -> Any:
    return None if row is None else (row.at_us, row.entity_id)
