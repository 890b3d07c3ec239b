"""Accounts at the providers of models: paused until a limit is over, for all agents that share them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, MetaData, bindparam, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.storage.dialect import insert_or_ignore
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.views import Pause, ProviderLimit
from pointsman.services.orchestrator.store import tables
from pointsman.services.orchestrator.store.agents import Agents, Holder
from pointsman.services.orchestrator.store.polling import PollRequest

LONGEST_US = 8 * 24 * 3600 * 1_000_000
"""A weekly limit, and a day more."""
SHORTEST_US = 1_000_000
MAX_REASON = 1024
DEFAULT_SECONDS: Mapping[str, int] = {"THROTTLED": 30, "OVERLOADED": 30, "QUOTA": 900}
"""How long an account rests when the provider did not say."""


Pauses = Mapping[tuple[str, str], Pause]
"""By project and account."""


class Accounts:
    """The pauses of all projects."""

    def __init__(self, store: Store, metadata: MetaData, agents: Agents) -> None:
        self._store = store
        table = self.table = tables.account_pauses(metadata)
        columns, of_agents = table.c, agents.table.c
        self._paused = select(table).where(columns.until_us > bindparam("now_us"))
        self._account = select(of_agents.account).where(
            of_agents.project == bindparam("project"), of_agents.agent_id == bindparam("agent_id")
        )
        self._insert = insert_or_ignore(store.database, table)
        self._lengthen = (
            table.update()
            .where(columns.project == bindparam("of_project"), columns.account == bindparam("of_account"))
            .where(columns.until_us < bindparam("new_until"))
            .values(until_us=bindparam("new_until"), kind=bindparam("new_kind"), reason=bindparam("new_reason"))
        )

    def pause(self, connection: Connection, holder: Holder, limit: ProviderLimit) -> None:
        """Pause the account that the agent polled with; a pause is made longer, never shorter."""
        account = connection.execute(self._account, {"project": holder.project, "agent_id": holder.agent_id}).scalar()
        if not account:
            return
        now_us = to_us(self._store.database.clock.now())
        asked_us = limit.reset_us or now_us + DEFAULT_SECONDS[limit.kind] * 1_000_000
        until_us = min(max(asked_us, now_us + SHORTEST_US), now_us + LONGEST_US)
        pause = Pause(until_us, limit.kind, limit.reason[:MAX_REASON])
        connection.execute(self._insert, {"project": holder.project, "account": account, **asdict(pause)})
        changed = {"new_until": pause.until_us, "new_kind": pause.kind, "new_reason": pause.reason}
        connection.execute(self._lengthen, {"of_project": holder.project, "of_account": account, **changed})

    def paused(self, connection: Connection) -> Pauses:
        """The accounts that are paused now."""
        now_us = to_us(self._store.database.clock.now())
        rows = connection.execute(self._paused, {"now_us": now_us})
        return {(row.project, row.account): Pause(row.until_us, row.kind, row.reason) for row in rows}

    def usable(self, connection: Connection, asked: Sequence[PollRequest]) -> list[bool]:
        """Whether each may be given work: its account rests not, and those it stands in for all do."""
        if not any(one.holder.account or one.instead_of for one in asked):
            return [True] * len(asked)
        paused = self.paused(connection)
        return [_is_usable(one, paused) for one in asked]


def _is_usable(asked: PollRequest, paused: Pauses) -> bool:
    project = asked.holder.project
    stands_in = all((project, account) in paused for account in asked.instead_of)
    return stands_in and (project, asked.holder.account) not in paused
