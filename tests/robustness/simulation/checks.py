"""What has to hold when everything has come to rest: `pointsman audit --all`, and what the actors were told."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from pointsman.cli.audit_stores import _find
from pointsman.services.chassis.codec import from_text
from pointsman.services.chassis.service import Service
from pointsman.services.chassis.store import Store
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS, Run
from pointsman.services.orchestrator.domain.words import TERMINAL
from tests.robustness.simulation.actors import Told
from tests.robustness.simulation.processes import Stores

ENDED = frozenset(map(str, TERMINAL))


class Checks:
    """Audits the four stores, and holds them to their answers; built once."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._services = {name: Service(name, store, None, ()) for name, store in stores.all.items()}

    def violations(self, told: Told) -> list[str]:
        """Every promise that does not hold."""
        found = [f"{name}: {v}" for name, audited in _find(self._services).items() for v in audited.violations]
        found += self._rest(self._runs())
        found += self._acknowledged(told)
        found += self._assignments(told)
        return found

    def _rows(self, store: Store, statement: Any) -> list[Any]:
        return store.database.read_now(lambda connection: list(connection.execute(statement)))

    def _runs(self) -> dict[str, Run]:
        store = self._stores.orchestrator.store
        rows = self._rows(store, select(store.tables.entities))
        return {row.entity_id: from_text(row.body, Run) for row in rows}

    def _rest(self, runs: dict[str, Run]) -> Iterator[str]:
        """Nothing waits without a timer or a named person: with everybody willing, all of it ends."""
        for run in runs.values():
            if not run.ended:
                yield f"{run.run_id} is stuck in {run.status}: calls {run.calls}, assignments {list(run.assignments)}"
        for name, store in self._stores.all.items():
            for row in self._rows(store, select(store.tables.outbox)):
                yield f"{name}: effect {row.entity_id}:{row.seq}:{row.number} {row.kind} pending: {row.last_error}"

    def _acknowledged(self, told: Told) -> Iterator[str]:
        """What was acknowledged is there, once."""
        store = self._stores.orchestrator.store
        kept = store.tables.idempotency.c
        answers = Counter(row.request_id for row in self._rows(store, select(kept.request_id)))
        for request_id, run_id in told.acknowledged:
            if answers[request_id] != 1:
                yield f"{request_id} of {run_id} was acknowledged, and is kept {answers[request_id]} times"
        journal = store.tables.journal.c
        first = select(journal.entity_id, journal.payload).where(journal.seq == 1, journal.actor == "local")
        begun = Counter(row.payload.partition('"intent":')[2].partition(",")[0] for row in self._rows(store, first))
        for intent, times in begun.items():
            if times > 1:
                yield f"the message {intent} was submitted once, and became {times} runs"

    def _assignments(self, told: Told) -> Iterator[str]:
        """One live lease at most, results taken once and only under the newest epoch, no more attempts than allowed."""
        children = self._stores.orchestrator.children
        rows = {row.assignment_id: row for row in self._rows(children._store, select(children.assignments))}
        runs = self._runs()
        for row in rows.values():
            if row.attempt > MAX_ATTEMPTS:
                yield f"{row.assignment_id} had {row.attempt} attempts"
            if row.status in ("OPEN", "LEASED") and str(runs[row.entity_id].status) in ENDED:
                yield f"{row.assignment_id} is {row.status}, but its run has ended"
        for assignment_id, times in Counter(assignment_id for assignment_id, _, _ in set(told.taken)).items():
            if times > 1:
                yield f"{assignment_id} was taken {times} times: {told.taken}"
        for assignment_id, epoch, name in told.taken:
            row = rows[assignment_id]
            if (row.epoch, row.agent_id) != (epoch, name):
                yield f"{assignment_id} was taken from {name} under {epoch}, but is {row.agent_id}'s under {row.epoch}"
