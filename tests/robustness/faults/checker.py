"""Reads the stores when all is quiet: the auditor's eleven promises, and everything that a client was told."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, MetaData, func, select

from pointsman.audit.stores import audit_stores
from pointsman.services.all_in_one import CONTEXTS
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store
from tests.helpers.eventually import eventually
from tests.robustness.faults.cluster import Cluster
from tests.robustness.faults.load import LABEL, Work
from tests.robustness.faults.memory import Memory

QUIET_SECONDS = 90.0


class Stores:
    """The four stores, for reading from outside."""

    def __init__(self, cluster: Cluster) -> None:
        settings = StoreSettings(data=cluster.folder / "data", database_url=cluster.database_url)
        self._stores = {name: Store(Database(settings.url_for(name), name), MetaData()) for name in CONTEXTS}

    def __getitem__(self, context: str) -> Store:
        return self._stores[context]

    def close(self) -> None:
        """Let go of them."""
        for store in self._stores.values():
            store.close()

    async def read(self, context: str, statement: Any) -> list[Any]:
        """The rows of one statement."""
        database = self._stores[context].database
        return await database.read(lambda connection: list(connection.execute(statement)))

    async def pending(self) -> int:
        """How many effects nobody has delivered yet."""
        counts = [
            await self.read(name, select(func.count()).select_from(self[name].tables.outbox)) for name in CONTEXTS
        ]
        return sum(int(rows[0][0]) for rows in counts)


async def quiet(stores: Stores, seconds: float = QUIET_SECONDS) -> None:
    """Wait until every outbox is empty."""

    async def empty() -> bool:
        await asyncio.sleep(0.2)
        return await stores.pending() == 0

    await eventually(empty, seconds)


async def audited(cluster: Cluster) -> tuple[int, list[str]]:
    """What `pointsman audit --all` says: the number of transitions, and every violation."""
    findings = await audit_stores(StoreSettings(data=cluster.folder / "data", database_url=cluster.database_url))
    found = [f"{name} {violation}" for name, part in findings.items() for violation in part.violations]
    return sum(part.transitions for part in findings.values()), found


async def lost(stores: Stores, memory: Memory) -> list[str]:
    """What clients were told and the stores do not know: answers, and transitions that were shown."""
    found = [problem async for problem in _lost_answers(stores, memory)]
    for context, entities in memory.seen.items():
        found += await stores[context].database.read(
            lambda connection: list(_lost_transitions(connection, stores[context], entities))  # noqa: B023
        )
    return found


async def _lost_answers(stores: Stores, memory: Memory) -> Any:
    for context in CONTEXTS:
        table = stores[context].tables.idempotency
        kept = {
            (row.project, row.request_id)
            for row in await stores.read(context, select(table.c.project, table.c.request_id))
        }
        for name, project, request_id in memory.told:
            told = memory.told[name, project, request_id]
            if name == context and told.answer is not None and (project, request_id) not in kept:
                yield f"{context}: {told.method} {project}/{request_id} was acknowledged and is not there"


def _lost_transitions(connection: Connection, store: Store, entities: dict[str, list[str]]) -> Iterator[str]:
    table = store.tables.journal
    kept = {
        (row[0], row[1]): row[2] for row in connection.execute(select(table.c.entity_id, table.c.seq, table.c.digest))
    }
    for entity_id, digests in entities.items():
        for seq, digest in enumerate(digests, 1):
            if kept.get((entity_id, seq)) != digest:
                yield f"{store.database.schema}: {entity_id} seq {seq} was shown and is not there, or is another"


async def duplicated(stores: Stores, memory: Memory, work: Work) -> list[str]:
    """What happened more than once although it was asked for once."""
    return [
        *await _doubled_runs(stores, work),
        *await _doubled_tasks(stores),
        *await _doubled_decisions(stores, memory),
    ]


async def _doubled_runs(stores: Stores, work: Work) -> Iterator[str] | list[str]:
    """Every Submit is labelled: each label belongs to one run, the one that the answer named."""
    table = stores["orchestrator"].tables.journal
    rows = await stores.read(
        "orchestrator", select(table.c.entity_id, table.c.payload).where(table.c.event == "submitted")
    )
    labelled = [(row[0], json.loads(row[1])["order"]["labels"].get(LABEL, "")) for row in rows]
    counts = Counter(label for _, label in labelled)
    found = [f"orchestrator: {number} runs for {label}" for label, number in counts.items() if label and number > 1]
    runs = {label: run_id for run_id, label in labelled}
    return found + [
        f"orchestrator: {label} was answered with {run_id}"
        for label, run_id in work.runs.items()
        if runs.get(label) != run_id
    ]


async def _doubled_tasks(stores: Stores) -> list[str]:
    """A task of a direct plan is claimed once and completed once; nobody releases or retries there."""
    table = stores["workflow"].tables.journal
    wanted = select(table.c.entity_id, table.c.event, table.c.payload).where(
        table.c.project == "direct", table.c.event.in_(("claimed", "tasks_settled"))
    )
    counts: Counter[tuple[str, str, str]] = Counter()
    for entity_id, event, payload in await stores.read("workflow", wanted):
        data = json.loads(payload)
        for task_id in data["task_ids"] if event == "claimed" else data["completed"]:
            counts[entity_id, event, task_id] += 1
    return [f"workflow: {key} happened {number} times" for key, number in counts.items() if number > 1]


async def _doubled_decisions(stores: Stores, memory: Memory) -> list[str]:
    """As many decisions as messages, at most one of which per caller may still be unanswered."""
    table = stores["router"].tables.entities
    wanted = select(func.count()).select_from(table).where(table.c.project == "direct", table.c.kind == "decision")
    kept = int((await stores.read("router", wanted))[0][0])
    asked = memory.sent["router.Classify"]
    answered = sum(1 for context, _, _ in memory.told if context == "router")
    return [] if answered <= kept <= asked else [f"router: {kept} decisions for {asked} messages, {answered} answered"]
