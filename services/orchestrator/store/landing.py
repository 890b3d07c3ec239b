"""Entries of the merge queues: their ledger, their index, the lease of a queue, and what retention leaves alone."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, delete, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.changes import Change
from pointsman.services.chassis.engine.leases import Lease, Leases
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.storage.bulk import upsert_rows
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.landing.commands import Take
from pointsman.services.orchestrator.domain.landing.enums import LIVE, EntryState
from pointsman.services.orchestrator.domain.landing.machine import MACHINE
from pointsman.services.orchestrator.domain.landing.model import Entry
from pointsman.services.orchestrator.domain.views import EntryFilter, EntryView, Held, Integrator
from pointsman.services.orchestrator.store import tables
from pointsman.services.orchestrator.store.artifacts import Artifacts

ENTRIES = "#entries"
"""Notified when an entry changes."""
FORGE = "#forge"
"""Notified when a forge has news."""
LOOK_SECONDS = 5.0
TAKEABLE = (EntryState.QUEUED, EntryState.PROVING, EntryState.LANDING)
LIVE_NAMES = [str(state) for state in LIVE]


class EntryChildren:
    """One row of the index for each entry, and the use of its bundle."""

    body_type: type = Entry

    def __init__(self, store: Store, metadata: MetaData, artifacts: Artifacts) -> None:
        self._store = store
        self.index = tables.entry_index(metadata)
        self._uses = artifacts.insert_use
        self._save = upsert_rows(store.database, self.index, ("entity_id",))

    def body(self, state: Entry) -> Entry:
        """The whole state is the body."""
        return state

    def state(self, body: Any) -> Entry:
        """The body is the whole state."""
        entry: Entry = body
        return entry

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> None:
        """Loads nothing: commands need only the body."""

    def save(self, connection: Connection, changes: Sequence[Change[Entry]]) -> None:
        """Writes the index rows of changed entries; a bundle stays stored while an entry refers to it."""
        self._save.run(connection, [_index_row(change) for change in changes])
        uses = [
            {"entity_id": change.entity_id, "project": change.project, "sha256": change.state.work.bundle_sha256}
            for change in changes
            if change.state is not None and change.state.work.bundle_sha256
        ]
        if uses:
            connection.execute(self._uses, uses)
        self._store.notify({ENTRIES})


def _index_row(change: Change[Entry]) -> dict[str, Any]:
    entry = change.state
    assert entry is not None
    return {
        "entity_id": change.entity_id, "project": change.project, "queue_id": entry.queue_id,
        "repository_id": entry.terms.repository_id, "run_id": entry.run_id, "status": str(entry.status),
        "priority": entry.terms.priority, "created_at_us": to_us(entry.created_at),
    }  # fmt: skip


class Entries:
    """The entries of all queues."""

    def __init__(self, store: Store, metadata: MetaData, artifacts: Artifacts, lease_seconds: float) -> None:
        self._store = store
        self._artifacts = artifacts
        self._lease_seconds = lease_seconds
        self.children = EntryChildren(store, metadata, artifacts)
        self.ledger: Ledger[Entry] = Ledger(store, MACHINE, self.children)
        self._leases = Leases(store)
        self._sql = _Queries(store, self.children)

    async def view(self, project: str, entry_id: str) -> EntryView:
        """An entry as it is now, or not found."""
        return await self._store.database.read(lambda connection: self._view(connection, project, entry_id))

    def _view(self, connection: Connection, project: str, entry_id: str) -> EntryView:
        entry = self.ledger.load(connection, project, entry_id)
        return EntryView(entry, *connection.execute(self._sql.times, {"entity_id": entry_id}).one())

    async def page(self, wanted: EntryFilter, before: tuple[int, str], limit: int) -> list[EntryView]:
        """Entries, newest first, before a place."""
        statement = self._sql.page(wanted).limit(limit)
        place = {"before_us": before[0], "before_id": before[1]}

        def query(connection: Connection) -> list[EntryView]:
            ids = connection.scalars(statement, place).all()
            return [self._view(connection, wanted.project, entry_id) for entry_id in ids]

        return await self._store.database.read(query)

    async def take(self, who: Integrator, caller: Caller, limit: int, wait_seconds: float) -> Held | None:
        """The first queue with something to do that nobody else holds; waits for one."""
        left = wait_seconds
        with self._store.hub.subscribed(ENTRIES) as news:
            while True:
                news.clear()
                held = await self._take_now(who, caller, limit)
                if held is not None or left <= 0:
                    return held
                await wait_for_notification(news, min(left, LOOK_SECONDS))
                left -= LOOK_SECONDS

    async def _take_now(self, who: Integrator, caller: Caller, limit: int) -> Held | None:
        rows = await self._store.database.read(
            lambda connection: connection.execute(self._sql.work(who.project, who.repository_ids)).all()
        )
        queues = dict.fromkeys(row.queue_id for row in rows)
        for queue_id in queues:
            lease = await self._hold(queue_id, who)
            if lease is None:
                continue
            ids = [row.entity_id for row in rows if row.queue_id == queue_id]
            entries = [found for entry_id in ids[:limit] if (found := await self._own(who, caller, lease, entry_id))]
            if entries:
                return Held(queue_id, lease.epoch, lease.until_us, tuple(entries))
            await self._leases.release(lease)
        return None

    async def _hold(self, queue_id: str, who: Integrator) -> Lease | None:
        """The queue's lease, with a new epoch for every round."""
        return await self._leases.acquire(_lease_name(who.project, queue_id), _owner(who), self._lease_seconds)

    async def _own(self, who: Integrator, caller: Caller, lease: Lease, entry_id: str) -> EntryView | None:
        """The entry, taken under the lease; nothing where it went on meanwhile."""
        part = replace(caller, request_id=f"{caller.request_id}/{entry_id}/{lease.epoch}")
        command = Take(entry_id, lease.epoch, who.agent_id, who.principal)
        try:
            await self.ledger.submit(part, command)
        except Refusal as refusal:
            if refusal.reason not in (Reason.STATE_FORBIDS, Reason.LEASE_LOST, Reason.NOT_FOUND):
                raise
            return None
        return await self.view(who.project, entry_id)

    async def keep(self, who: Integrator, queue_id: str, epoch: int, *, release: bool) -> int:
        """Hold a queue longer, or give it back; until when. Refused where somebody else has taken it."""
        lease = Lease(_lease_name(who.project, queue_id), _owner(who), epoch, 0)
        renewed = await self._leases.renew(lease, 0 if release else self._lease_seconds)
        if renewed is None:
            metadata = {"kind": "queue", "id": queue_id}
            raise Refusal(Reason.LEASE_LOST, "the queue is in other hands; take it again", metadata=metadata)
        if release:
            self._store.notify({ENTRIES})
        return renewed.until_us

    def wake_forge(self) -> None:
        """Ask the integrators of this process for a look at their pull requests; all others look by themselves."""
        self._store.notify({FORGE})

    async def forge_woken(self, wait_seconds: float) -> bool:
        """Whether a look was asked for before the wait was over."""
        with self._store.hub.subscribed(FORGE) as news:
            await wait_for_notification(news, wait_seconds)
            return news.is_set()

    def forget_of(self, connection: Connection, run_id: str) -> None:
        """Removes the entries of a run that is forgotten; a run with a live entry is not."""
        for entry_id in connection.scalars(self._sql.of_run, {"run_id": run_id}).all():
            for statement in self._sql.forget:
                connection.execute(statement, {"of_entity": entry_id})
            self._artifacts.forget(connection, entry_id)


def _lease_name(project: str, queue_id: str) -> str:
    return f"landing:{project}:{queue_id}"


def _owner(who: Integrator) -> str:
    """Whose lease it is, in the length that the table of leases has."""
    return hashlib.sha256(f"{who.principal}/{who.agent_id}".encode()).hexdigest()


class _Queries:
    """The statements, built once."""

    def __init__(self, store: Store, children: EntryChildren) -> None:
        entities, index = store.tables.entities.c, children.index.c
        self._index = children.index
        self.times = select(entities.version, entities.created_at_us, entities.updated_at_us).where(
            entities.entity_id == bindparam("entity_id")
        )
        self.of_run = select(index.entity_id).where(index.run_id == bindparam("run_id"))
        tables_of = store.tables
        self.forget = [
            delete(table).where(table.c.entity_id == bindparam("of_entity"))
            for table in (
                tables_of.journal, tables_of.outbox, tables_of.timers, tables_of.idempotency, tables_of.entities,
                children.index,
            )
        ]  # fmt: skip

    def page(self, wanted: EntryFilter) -> Any:
        """Newest first."""
        index = self._index.c
        earlier = (index.created_at_us < bindparam("before_us")) | (index.entity_id < bindparam("before_id"))
        statement = select(index.entity_id).where(
            index.project == wanted.project, index.created_at_us <= bindparam("before_us"), earlier
        )
        for column, value in ((index.repository_id, wanted.repository_id), (index.run_id, wanted.run_id)):
            if value:
                statement = statement.where(column == value)
        if wanted.states:
            statement = statement.where(index.status.in_(wanted.states))
        return statement.order_by(index.created_at_us.desc(), index.entity_id.desc())

    def work(self, project: str, repository_ids: Sequence[str]) -> Any:
        """What an integrator has to do for its repositories, in order of priority and arrival."""
        index = self._index.c
        wanted = [str(state) for state in TAKEABLE]
        return (
            select(index.entity_id, index.queue_id)
            .where(index.project == project, index.status.in_(wanted), index.repository_id.in_(repository_ids))
            .order_by(index.priority, index.created_at_us, index.entity_id)
        )
