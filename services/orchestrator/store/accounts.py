"""Accounts at the providers of models: who reported a limit rests until it is over, others with the same account briefly.

An account is a name that an agent chooses. What one principal says about it binds that principal; the others take its
word for a while, seldom enough that a lie cannot keep them from working, and then see for themselves (ADR 0052).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.storage.dialect import upsert
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.views import Pause, ProviderLimit
from pointsman.services.orchestrator.store import tables
from pointsman.services.orchestrator.store.agents import Agents, Holder
from pointsman.services.orchestrator.store.limited_work import LimitedWork
from pointsman.services.orchestrator.store.polling import PollRequest

SECOND_US = 1_000_000
SHORTEST_US = SECOND_US
LONGEST_US: Mapping[str, int] = {
    "THROTTLED": 3600 * SECOND_US,
    "OVERLOADED": 3600 * SECOND_US,
    "QUOTA": 8 * 24 * 3600 * SECOND_US,
}
"""A weekly limit, and a day more."""
SHARED_US = 900 * SECOND_US
"""How long other principals with the same account take somebody's word."""
DOUBT_FACTOR = 3
"""For how many times as long they do not take anybody's word afterwards."""
FORGOTTEN_US = 24 * 3600 * SECOND_US
MAX_REASON = 1024
DEFAULT_SECONDS: Mapping[str, int] = {"THROTTLED": 30, "OVERLOADED": 30, "QUOTA": 900}
"""How long an account rests when the provider did not say."""
NO_REPORTER = ""
"""Reported in the version before, which did not write down by whom."""


class Pauses:
    """The limits that are not over, of all projects."""

    def __init__(self, rows: Iterable[Any], now_us: int) -> None:
        self._now_us = now_us
        self._reports: dict[tuple[str, str], list[Any]] = {}
        for row in rows:
            self._reports.setdefault((row.project, row.account), []).append(row)

    def rests(self, project: str, account: str) -> bool:
        """Whether somebody who uses the account has to rest, so that those who stand in for it take over."""
        return (project, account) in self._reports

    def of(self, project: str, account: str, principal: str) -> Pause | None:
        """The pause of an account for one principal that uses it."""
        pauses = [_binding(row, principal) for row in self._reports.get((project, account), ())]
        longest = max(pauses, key=lambda pause: pause.until_us, default=None)
        return longest if longest is not None and longest.until_us > self._now_us else None


class Accounts:
    """The limits of all projects' accounts."""

    def __init__(self, store: Store, metadata: MetaData, agents: Agents) -> None:
        self._store = store
        self.limited = LimitedWork(store, metadata)
        table = self.table = tables.account_limits(metadata)
        columns, of_agents = table.c, agents.table.c
        self._running = select(table).where(columns.until_us > bindparam("now_us"))
        self._account = select(of_agents.account).where(
            of_agents.project == bindparam("project"),
            of_agents.agent_id == bindparam("agent_id"),
            of_agents.principal == bindparam("principal"),
        )
        self._reports = select(table).where(
            columns.project == bindparam("project"), columns.account == bindparam("account")
        )
        key = ("project", "account", "principal")
        self._write = upsert(store.database, table, key, [name for name in columns.keys() if name not in key])  # noqa: SIM118
        self._forget = table.delete().where(columns.until_us < bindparam("oldest_us"))

    def pause(self, connection: Connection, holder: Holder, limit: ProviderLimit) -> dict[str, Any] | None:
        """Pause the account that the principal's agent polled with, longer, never shorter; who rests until when, and why."""
        named = {"project": holder.project, "agent_id": holder.agent_id, "principal": holder.principal}
        account = connection.execute(self._account, named).scalar()
        if not account:
            return None
        now_us = to_us(self._store.database.clock.now())
        connection.execute(self._forget, {"oldest_us": now_us - FORGOTTEN_US})
        key = {"project": holder.project, "account": account}
        reports = {row.principal: row for row in connection.execute(self._reports, key)}
        before = reports.get(holder.principal)
        until_us = _until(limit, now_us)
        shared = (now_us, min(until_us, now_us + SHARED_US))
        if not all(_is_trusted_again(row, now_us) for row in reports.values()):
            shared = (before.shared_from_us, before.shared_until_us) if before is not None else (0, 0)
        row = {
            **key, "principal": holder.principal, "until_us": until_us, "shared_from_us": shared[0],
            "shared_until_us": shared[1], "kind": limit.kind, "reason": limit.reason[:MAX_REASON],
        }  # fmt: skip
        if before is not None and before.until_us > until_us:
            row |= {"until_us": before.until_us, "kind": before.kind, "reason": before.reason}
        connection.execute(self._write, row)
        rests = {name: row[name] for name in ("project", "account", "until_us", "kind", "reason")}
        return {**rests, "agent_id": holder.agent_id}

    def paused(self, connection: Connection) -> Pauses:
        """The limits that are not over."""
        now_us = to_us(self._store.database.clock.now())
        return Pauses(connection.execute(self._running, {"now_us": now_us}), now_us)

    def usable(self, connection: Connection, asked: Sequence[PollRequest]) -> list[bool]:
        """Whether each may be given work: its account rests not, and those it stands in for all do."""
        if not any(one.holder.account or one.instead_of for one in asked):
            return [True] * len(asked)
        paused = self.paused(connection)
        return [_is_usable(one, paused) for one in asked]


def _until(limit: ProviderLimit, now_us: int) -> int:
    """When a limit is over, as far as it is believed."""
    asked_us = limit.reset_us or now_us + DEFAULT_SECONDS[limit.kind] * SECOND_US
    return min(max(asked_us, now_us + SHORTEST_US), now_us + LONGEST_US[limit.kind])


def _is_trusted_again(row: Any, now_us: int) -> bool:
    """Whether the others had time enough to see for themselves since they took this report's word."""
    lasted_us = row.shared_until_us - row.shared_from_us
    return bool(row.principal == NO_REPORTER or now_us >= row.shared_until_us + DOUBT_FACTOR * lasted_us)


def _binding(row: Any, principal: str) -> Pause:
    """What a report means for a principal that uses the account."""
    if row.principal in {principal, NO_REPORTER}:
        return Pause(row.until_us, row.kind, row.reason)
    return Pause(row.shared_until_us, row.kind, f"{row.reason} (reported by {row.principal})")


def _is_usable(asked: PollRequest, paused: Pauses) -> bool:
    holder = asked.holder
    stands_in = all(paused.rests(holder.project, account) for account in asked.instead_of)
    return stands_in and paused.of(holder.project, holder.account, holder.principal) is None
