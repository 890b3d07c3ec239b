"""What runs need from people: who works on each, how many no agent can take, and counts by kind."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, String, bindparam, func, literal_column, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.storage.dialect import any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import Capability, State
from pointsman.services.orchestrator.domain.views import RunCounts
from pointsman.services.orchestrator.domain.waiting import AtWork
from pointsman.services.orchestrator.store.agents import Present
from pointsman.services.orchestrator.store.children import LEASED, OPEN, RunChildren
from pointsman.services.orchestrator.store.polling import is_barred_by_name

MOST_COUNTED = 100_000
CACHE_US = 1_000_000
LIVE = ""
"""The outcome of a run that lives."""


class RunAttention:
    """Who is at work on runs, from their assignments and from the agents that are present."""

    def __init__(self, store: Store, children: RunChildren, lease_seconds: float) -> None:
        self._database = store.database
        self._lease_us = int(lease_seconds * 1_000_000)
        self._present: Callable[[Connection], Mapping[str, Sequence[Present]]] = children.present
        self._sql = _Statements(store, children)
        self._counted: dict[str, tuple[int, RunCounts]] = {}

    def at_work(self, connection: Connection, project: str, run_ids: Sequence[str]) -> dict[str, AtWork]:
        """Who is at work on each of these runs; nothing for one without assignments."""
        if not run_ids:
            return {}
        rows = connection.execute(self._sql.of_runs, {"values": bind_list(self._database, run_ids)}).all()
        return self._seen(rows, self._present(connection).get(project, ()))

    def counts(self, connection: Connection, project: str) -> RunCounts:
        """Counts of runs by what they need; computed at most once a second for all callers."""
        now_us = to_us(self._database.clock.now())
        counted_us, counts = self._counted.get(project, (0, None))
        if counts is None or not 0 <= now_us - counted_us < CACHE_US:
            counts = self._count(connection, project)
            self._counted[project] = (now_us, counts)
        return counts

    def projects(
        self, connection: Connection, named: Collection[str] | None, after: str, size: int
    ) -> list[tuple[str, RunCounts]]:
        """Counts of the projects after a name, in order: of those that are named, or of all that have runs."""
        if named is not None:
            found = sorted(name for name in named if name > after)[:size]
        else:
            found = self._stored_projects(connection, after, size)
        return [(name, self.counts(connection, name)) for name in found]

    def _stored_projects(self, connection: Connection, after: str, size: int) -> list[str]:
        """Each is one step in the index: DISTINCT would read every run."""
        found: list[str] = []
        while len(found) < size:
            name = connection.execute(self._sql.next_project, {"after": found[-1] if found else after}).scalar_one()
            if name is None:
                break
            found.append(name)
        return found

    def _count(self, connection: Connection, project: str) -> RunCounts:
        live = connection.execute(self._sql.live, {"project": project}).one()
        rows = connection.execute(self._sql.of_project, {"project": project}).all()
        seen = self._seen(rows, self._present(connection).get(project, ()))
        stuck = sum(1 for one in seen.values() if not one.holder and not one.agents_able)

        def ended(outcome: State) -> int:
            asked = {"project": project, "outcome": str(outcome)}
            return int(connection.execute(self._sql.ended, asked).scalar_one())

        asking = int(live.asking or 0)
        return RunCounts(
            needs_you=asking,
            stuck=stuck,
            working=max(0, live.living - asking - stuck),
            failed=ended(State.FAILED),
            done=ended(State.COMPLETE),
            cancelled=ended(State.CANCELLED),
        )

    def _seen(self, rows: Iterable[Any], present: Sequence[Present]) -> dict[str, AtWork]:
        """By run: the holder that was heard of last, and the agents that could take something that is open."""
        held: dict[str, Any] = {}
        able: dict[str, set[str]] = {}
        for row in rows:
            agents = able.setdefault(row.entity_id, set())
            if row.status == LEASED:
                if row.entity_id not in held or held[row.entity_id].lease_until_us < row.lease_until_us:
                    held[row.entity_id] = row
                continue
            agents |= _able(row, present)
        return {run_id: self._at_work(held.get(run_id), len(agents)) for run_id, agents in able.items()}

    def _at_work(self, lease: Any | None, agents_able: int) -> AtWork:
        if lease is None:
            return AtWork(agents_able=agents_able)
        return AtWork(lease.agent_id, lease.lease_until_us - self._lease_us, agents_able)


def _able(row: Any, present: Sequence[Present]) -> frozenset[str]:
    """The agents that could take an assignment: there for its run, able, with the repository, and no author of what it judges."""
    wanted = {Capability(row.capability)}
    if Capability.RESEARCH in wanted:
        wanted.add(Capability.SURVEY)
    barred = set(row.excluded_principals.split("\n"))
    reserved = bool(row.reserved)
    groups = (
        group
        for group in present
        if group.can(row.repository_id) & wanted and group.work_for(row.entity_id, reserved=reserved)
    )
    return frozenset(
        agent_id
        for group in groups
        for agent_id, principal in group.agents
        if principal not in barred and not is_barred_by_name(row, agent_id)
    )


class _Statements:
    """The statements, built once."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        index, assignments = children.index.c, children.assignments.c
        columns = (
            assignments.entity_id, assignments.status, assignments.capability, assignments.repository_id,
            assignments.excluded_principals, assignments.excluded_agent, assignments.agent_id,
            assignments.lease_until_us, assignments.reserved,
        )  # fmt: skip
        at_work = select(*columns).where(assignments.status.in_((OPEN, LEASED)))
        self.of_runs = at_work.where(any_of(store.database, assignments.entity_id))
        self.of_project = (
            at_work.where(assignments.project == bindparam("project"))
            .join_from(children.assignments, children.index, index.entity_id == assignments.entity_id)
            .where(index.asked_at_us == literal_column("0"))
        )
        project = bindparam("project", type_=String)
        self.live = select(
            func.count().label("living"), func.count(func.nullif(index.asked_at_us, 0)).label("asking")
        ).where(index.outcome == literal_column(f"'{LIVE}'"), index.project == project)
        some = (
            select(literal_column("1"))
            .select_from(children.index)
            .where(index.outcome == bindparam("outcome", type_=String), index.project == project)
            .limit(MOST_COUNTED)
            .subquery()
        )
        self.ended = select(func.count()).select_from(some)
        self.next_project = select(func.min(index.project)).where(index.project > bindparam("after", type_=String))
