"""The agents that polled: written now and then, read by every batch that depends on who is present."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection, MetaData, bindparam, literal_column, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.dialect import upsert
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import WRITING, Capability
from pointsman.services.orchestrator.domain.views import AgentRow, OfferedRepository
from pointsman.services.orchestrator.store import tables

REFRESH_SECONDS = 20
FORGOTTEN_SECONDS = 24 * 3600
"""How long an agent that worked for one run only is listed after it was heard of last."""
CACHE_US = 250_000
NEEDS_REPOSITORY = frozenset({Capability.RESEARCH, Capability.SURVEY, Capability.REVIEW, Capability.VERIFY, *WRITING})
"""What can only be done by an agent that has the run's repository, where the run has one."""


class Able(NamedTuple):
    """What an agent can do: kinds of work, in which repositories, for which runs only."""

    capabilities: frozenset[Capability]
    repository_ids: frozenset[str] = frozenset()
    run_ids: frozenset[str] = frozenset()
    account: str = ""
    offers: tuple[OfferedRepository, ...] = ()


NOT_ABLE = Able(frozenset())


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease: an agent, and the principal that it acts for."""

    project: str
    principal: str
    agent_id: str
    account: str = field(default="", compare=False)
    """What its work is billed to at the model's provider; no part of who it is."""


@dataclass(frozen=True, slots=True)
class Present:
    """Agents that are there now and can do the same, by the principals that they act for."""

    capabilities: frozenset[Capability]
    repositories: frozenset[str]
    principals: frozenset[str]
    runs: frozenset[str] = frozenset()
    """The runs that they work for; none means every run whose work is not reserved."""
    agents: frozenset[tuple[str, str]] = frozenset()
    """Each agent with the principal that it acts for."""

    def work_for(self, run_id: str, *, reserved: bool) -> bool:
        """Whether they take work of this run."""
        return run_id in self.runs if self.runs or reserved else True

    def can(self, repository_id: str) -> frozenset[Capability]:
        """What they can do for a run on this repository."""
        has_it = not repository_id or repository_id in self.repositories
        return self.capabilities if has_it else self.capabilities - NEEDS_REPOSITORY


class Agents:
    """The agents of all projects."""

    def __init__(self, store: Store, metadata: MetaData, present_seconds: float) -> None:
        self._store = store
        self.present_us = int(present_seconds * 1_000_000)
        """How long an agent counts as there after it was heard of."""
        self.table = tables.agents(metadata)
        self._write = upsert(
            store.database,
            self.table,
            ("project", "agent_id"),
            ("capabilities", "last_seen_us", "repositories", "principal", "run_ids", "account", "offers"),
        )
        columns = self.table.c
        able = (columns.project, columns.capabilities, columns.repositories, columns.run_ids)
        self._present = select(*able, columns.agent_id, columns.principal).where(
            columns.last_seen_us > bindparam("oldest_us")
        )
        self._namesake = select(columns.last_seen_us).where(
            columns.project == bindparam("of_project"),
            columns.agent_id == bindparam("of_agent"),
            columns.principal.not_in(("", bindparam("of_principal"))),
            columns.last_seen_us > bindparam("oldest_us"),
        )
        self._offers = (
            select(columns.offers)
            .where(columns.project == bindparam("project"), columns.last_seen_us > bindparam("oldest_us"))
            .where(columns.offers != literal_column("'[]'"))
            .order_by(columns.last_seen_us.desc())
        )
        self._forget = self.table.delete().where(
            columns.run_ids != literal_column("''"), columns.last_seen_us < bindparam("oldest_us")
        )
        self._page = (
            select(self.table)
            .where(self.table.c.project == bindparam("project"), self.table.c.agent_id > bindparam("after"))
            .order_by(self.table.c.agent_id)
            .limit(bindparam("limit"))
        )
        self._known: dict[Holder, tuple[Able, int]] = {}
        self._cached: tuple[int, dict[str, tuple[Present, ...]]] = (0, {})

    async def touch(
        self,
        holder: Holder,
        capabilities: frozenset[Capability] | None,
        repository_ids: frozenset[str] = frozenset(),
        run_ids: frozenset[str] = frozenset(),
        offers: tuple[OfferedRepository, ...] = (),
    ) -> None:
        """Records that an agent is alive; written periodically, and at once when what it can do changes.

        The name of an agent that is there is refused to other principals that poll, and their heartbeats leave it as it
        is: taking it would hide a judge.
        """
        now_us = to_us(self._store.database.clock.now())
        known, seen_us = self._known.get(holder, (NOT_ABLE, 0))
        said = Able(capabilities or frozenset(), repository_ids, run_ids, holder.account, offers)
        able = known if capabilities is None else said
        if able == known and now_us - seen_us < REFRESH_SECONDS * 1_000_000:
            return
        row = {
            "project": holder.project,
            "agent_id": holder.agent_id,
            "principal": holder.principal,
            "capabilities": ",".join(sorted(able.capabilities)),
            "repositories": "\n".join(sorted(able.repository_ids)),
            "run_ids": "\n".join(sorted(able.run_ids)),
            "last_seen_us": now_us,
            "account": able.account,
            "offers": to_json(able.offers),
        }

        named = {"of_project": holder.project, "of_agent": holder.agent_id, "of_principal": holder.principal}

        def write(connection: Connection) -> bool:
            if connection.execute(self._namesake, {**named, "oldest_us": now_us - self.present_us}).first():
                return False
            connection.execute(self._write, row)
            if able.run_ids:  # such an agent comes with its run and goes with it
                connection.execute(self._forget, {"oldest_us": now_us - FORGOTTEN_SECONDS * 1_000_000})
            return True

        if not await self._store.write(write):
            if capabilities is None:
                return
            raise self._taken(holder)
        self._known[holder] = (able, now_us)
        self._cached = (0, {})

    def _taken(self, holder: Holder) -> Refusal:
        """The refusal of a name that an agent of another principal has."""
        return Refusal(
            Reason.ALREADY_EXISTS,
            f"agent_id: '{holder.agent_id}' is an agent of another principal than {holder.principal}; choose another id, or "
            f"wait until that agent was silent for {self.present_us // 1_000_000} s",
            metadata={"kind": "agent", "id": holder.agent_id},
        )

    def present(self, connection: Connection) -> dict[str, tuple[Present, ...]]:
        """Who is there now, in each project; agents that can do the same are one group."""
        now_us = to_us(self._store.database.clock.now())
        read_us, cached = self._cached
        if read_us and 0 <= now_us - read_us < CACHE_US:
            return cached
        groups: dict[tuple[str, str, str, str], set[tuple[str, str]]] = {}
        for row in connection.execute(self._present, {"oldest_us": now_us - self.present_us}):
            able = (row.project, row.capabilities, row.repositories, row.run_ids)
            groups.setdefault(able, set()).add((row.agent_id, row.principal))
        found: dict[str, list[Present]] = {}
        for (project, capabilities, repositories, runs), agents in groups.items():
            can = frozenset(Capability(name) for name in capabilities.split(",") if name)
            only_for = frozenset(filter(None, runs.split("\n")))
            principals = frozenset(principal for _, principal in agents)
            group = Present(can, frozenset(repositories.split("\n")), principals, only_for, frozenset(agents))
            found.setdefault(project, []).append(group)
        self._cached = (now_us, {project: tuple(present) for project, present in found.items()})
        return self._cached[1]

    async def head_of(self, project: str, repository_id: str, branch: str) -> str:
        """Where a branch is, as the agent sees it that was heard of last; empty where none that is present has it."""
        oldest_us = to_us(self._store.database.clock.now()) - self.present_us
        parameters = {"project": project, "oldest_us": oldest_us}
        rows = await self._store.database.read(lambda connection: connection.scalars(self._offers, parameters).all())
        offers = (offer for row in rows for offer in from_json(row, tuple[OfferedRepository, ...]))
        heads = (head for offer in offers if offer.id == repository_id for head in offer.branches)
        return next((head.commit for head in heads if head.branch == branch), "")

    def page(self, connection: Connection, project: str, after: str, limit: int) -> Sequence[AgentRow]:
        """Agents by id."""
        rows = connection.execute(self._page, {"project": project, "after": after, "limit": limit})
        return [
            AgentRow(
                row.agent_id,
                tuple(Capability(name) for name in row.capabilities.split(",") if name),
                row.last_seen_us,
                tuple(row.repositories.split()),
                row.account,
                from_json(row.offers, tuple[OfferedRepository, ...]),
                row.principal,
            )
            for row in rows
        ]
