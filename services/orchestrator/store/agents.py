"""Which agents there are: written when one is heard of after a while, read by every batch that may need one."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, select

from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.sql import upsert
from pointsman.services.chassis.store import Store
from pointsman.services.orchestrator.domain.views import AgentRow
from pointsman.services.orchestrator.domain.words import Capability
from pointsman.services.orchestrator.store import tables

REFRESH_SECONDS = 20
CACHE_US = 250_000


class Agents:
    """The agents of all projects."""

    def __init__(self, store: Store, metadata: MetaData, present_seconds: float) -> None:
        self._store = store
        self._present_us = int(present_seconds * 1_000_000)
        self.table = tables.agents(metadata)
        self._write = upsert(store.database, self.table, ("project", "agent_id"), ("capabilities", "last_seen_us"))
        self._present = select(self.table.c.project, self.table.c.capabilities).where(
            self.table.c.last_seen_us > bindparam("oldest_us")
        )
        self._page = (
            select(self.table)
            .where(self.table.c.project == bindparam("project"), self.table.c.agent_id > bindparam("after"))
            .order_by(self.table.c.agent_id)
            .limit(bindparam("limit"))
        )
        self._known: dict[tuple[str, str], tuple[str, int]] = {}
        self._cached: tuple[int, dict[str, frozenset[Capability]]] = (0, {})

    async def heard_of(self, project: str, agent_id: str, capabilities: frozenset[Capability] | None) -> None:
        """An agent polled, or said that it is alive; written now and then, and at once when it can do other things."""
        now_us = to_us(self._store.database.clock.now())
        known, seen_us = self._known.get((project, agent_id), ("", 0))
        text = known if capabilities is None else ",".join(sorted(capabilities))
        if text == known and now_us - seen_us < REFRESH_SECONDS * 1_000_000:
            return
        row = {"project": project, "agent_id": agent_id, "capabilities": text, "last_seen_us": now_us}
        await self._store.perform(lambda connection: self._remember(connection, row))

    def _remember(self, connection: Connection, row: dict[str, Any]) -> None:
        connection.execute(self._write, row)
        self._known[row["project"], row["agent_id"]] = (row["capabilities"], row["last_seen_us"])
        self._cached = (0, {})

    def present(self, connection: Connection) -> dict[str, frozenset[Capability]]:
        """What can be done in each project now."""
        now_us = to_us(self._store.database.clock.now())
        read_us, cached = self._cached
        if read_us and 0 <= now_us - read_us < CACHE_US:
            return cached
        found: dict[str, frozenset[Capability]] = {}
        for row in connection.execute(self._present, {"oldest_us": now_us - self._present_us}):
            can = frozenset(Capability(name) for name in row.capabilities.split(",") if name)
            found[row.project] = found.get(row.project, frozenset()) | can
        self._cached = (now_us, found)
        return found

    def page(self, connection: Connection, project: str, after: str, limit: int) -> Sequence[AgentRow]:
        """Agents by id."""
        rows = connection.execute(self._page, {"project": project, "after": after, "limit": limit})
        return [
            AgentRow(r.agent_id, tuple(Capability(c) for c in r.capabilities.split(",") if c), r.last_seen_us)
            for r in rows
        ]
