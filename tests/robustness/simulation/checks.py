"""What has to hold when everything has come to rest: `pointsman audit --all`, and what the actors were told."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from sqlalchemy import select

from pointsman.audit.stores import _audit, _proofs, _traced
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.runtime.service import Service
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import TERMINAL
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS, Run
from tests.robustness.simulation.processes import Stores
from tests.robustness.simulation.told import Told

ENDED = frozenset(map(str, TERMINAL))
LIVE_PIPELINES = frozenset({"ACTIVE", "ESCALATED"})


class Checks:
    """Audits the four stores, and holds them to their answers; built once."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._services = {name: Service(name, store, None, ()) for name, store in stores.all.items()}

    def violations(self, told: Told) -> list[str]:
        """Every promise that does not hold."""
        found = list(self._audited())
        found += self._rest(self._runs())
        found += self._acknowledged(told)
        found += self._assignments(told)
        found += self._direct(told)
        return found

    def _audited(self) -> Iterator[str]:
        """As `pointsman audit --all` does it, but for stores that were not written to at all."""
        proofs, agreement = _proofs(self._services)
        assert agreement is not None
        for name, store in self._stores.written.items():
            yield from (f"{name}: {violation}" for violation in _audit(store, proofs.get(name, {})).violations)
            agreement.traced.extend(_traced(store))
        yield from (f"together: {violation}" for violation in agreement.violations())

    def rows(self, store: Store, name: str) -> list[Any]:
        """All rows of a table."""
        return store.database.read_now(lambda connection: list(connection.execute(_all_of(store, name))))

    def _runs(self) -> dict[str, Run]:
        store = self._stores.orchestrator.store
        rows = self.rows(store, "entities")
        return {row.entity_id: from_json(row.body, Run) for row in rows}

    def _rest(self, runs: dict[str, Run]) -> Iterator[str]:
        """Nothing waits without a timer or a named person: with everybody willing, all of it ends."""
        for run in runs.values():
            if not run.ended:
                yield f"{run.run_id} is stuck in {run.status}: calls {run.calls}, assignments {list(run.assignments)}"
        for name, store in self._stores.written.items():
            for row in self.rows(store, "outbox"):
                yield f"{name}: effect {row.entity_id}:{row.seq}:{row.number} {row.kind} pending: {row.last_error}"

    def _acknowledged(self, told: Told) -> Iterator[str]:
        """What was acknowledged is there, once."""
        store = self._stores.orchestrator.store
        answers = Counter(row.request_id for row in self.rows(store, "idempotency"))
        for request_id, run_id in told.acknowledged:
            if answers[request_id] != 1:
                yield f"{request_id} of {run_id} was acknowledged, and is kept {answers[request_id]} times"
        first = [row for row in self.rows(store, "journal") if row.seq == 1 and row.actor == "local"]
        begun = Counter(row.payload.partition('"intent":')[2].partition(",")[0] for row in first)
        for intent, times in begun.items():
            if times > 1:
                yield f"the message {intent} was submitted once, and became {times} runs"

    def _assignments(self, told: Told) -> Iterator[str]:
        """One live lease at most, results taken once and only under the newest epoch, no more attempts than allowed."""
        children = self._stores.orchestrator.children
        rows = {row.assignment_id: row for row in self.rows(children._store, children.assignments.name)}
        runs = self._runs()
        for row in rows.values():
            if row.attempt > MAX_ATTEMPTS:
                yield f"{row.assignment_id} had {row.attempt} attempts"
            if row.status in ("OPEN", "LEASED") and str(runs[row.entity_id].status) in ENDED:
                yield f"{row.assignment_id} is {row.status}, but its run has ended"
        for assignment_id, times in Counter(assignment_id for assignment_id, _, _ in set(told.taken)).items():
            if times > 1:
                yield f"{assignment_id} was taken {times} times: {told.taken}"
        yield from (f"{stolen}: {what} was taken without the lease's secret" for stolen, what in told.stolen)
        for assignment_id, epoch, name in told.taken:
            row = rows[assignment_id]
            if (row.epoch, row.agent_id) != (epoch, name):
                yield f"{assignment_id} was taken from {name} under {epoch}, but is {row.agent_id}'s under {row.epoch}"

    def _direct(self, told: Told) -> Iterator[str]:
        """What the other services have answered is kept once; no task is handed out twice; every pipeline has ended."""
        answers: Counter[tuple[str, str]] = Counter()
        for name, store in self._stores.written.items():
            answers.update((name, row.request_id) for row in self.rows(store, "idempotency"))
        for context, request_id in told.kept:
            if answers[context, request_id] != 1:
                yield f"{context}: {request_id} was answered, and is kept {answers[context, request_id]} times"
        for (task_id, attempt), times in Counter(told.claimed).items():
            if times > 1:
                yield f"attempt {attempt} of {task_id} was handed out {times} times"
        pipelines = self._stores.pipeline.store
        for row in self.rows(pipelines, "entities"):
            if row.kind == "pipeline" and not row.run_id and row.status in LIVE_PIPELINES:
                yield f"{row.entity_id} is {row.status}, but somebody has ended it"


@cache
def _all_of(store: Store, name: str) -> Any:
    return select(store.metadata.tables[name])
