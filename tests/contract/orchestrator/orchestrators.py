"""The orchestrator's store on a database, for contract tests: real rows, real commits, no peers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from pointsman.services.chassis.core.caller import LOCAL, Caller
from pointsman.services.chassis.core.clock import Clock
from pointsman.services.chassis.core.ids import secret_digest
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.orchestrator.__main__ import MIGRATIONS
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.domain.model import Budget, Order, Routing
from pointsman.services.orchestrator.domain.views import LeaseView
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.polling import UNLIMITED, LeaseKey, Limits, PollRequest

_numbers = count(1)
RESEARCH = frozenset({Capability.RESEARCH})
EVERYTHING = frozenset(Capability)


def caller(request_id: str = "", project: str = "local") -> Caller:
    """Somebody with a new idempotency key."""
    key = request_id or f"contract-{next(_numbers)}"
    return Caller("local", project, request_id=key, fingerprint=key)


@asynccontextmanager
async def orchestrator(
    url: str, lease_seconds: float = 60.0, clock: Clock | None = None, limits: Limits = UNLIMITED
) -> AsyncIterator[OrchestratorStore]:
    """A store with its matcher running."""
    database = Database(url, "orchestrator", clock)
    await asyncio.to_thread(migrate, database, MIGRATIONS)
    store = OrchestratorStore(database, lease_seconds, limits=limits)
    store.store.start()
    matching = asyncio.create_task(store.matcher.run())
    try:
        yield store
    finally:
        matching.cancel()
        await asyncio.gather(matching, return_exceptions=True)
        store.store.close()


def order(project: str = "local", **terms: Any) -> Order:
    """The usual terms."""
    return Order(Routing("d1", 0.9), project, **terms)


async def researching(store: OrchestratorStore, run_id: str, slots: int = 1, **terms: Any) -> None:
    """A run that waits for as many research reports as there are slots."""
    project = terms.pop("project", "local")
    await store.agents.touch(Holder(project, LOCAL, "somebody"), RESEARCH)
    budget = Budget(assignments=100_000, fan_out=4096)
    await store.ledger.submit(caller(project=project), commands.Submit(run_id, "look", order(project, **terms), budget))
    await store.ledger.submit(
        caller(project=project), commands.CallAnswered(run_id, events.EpicStored("c1", f"epic_{run_id}"))
    )
    await store.ledger.submit(caller(project=project), commands.CallAnswered(run_id, events.PlanStored("c2")))
    assert slots == 1 or terms.get("research_expected") == slots


async def take(
    store: OrchestratorStore, agent_id: str, limit: int = 1, wait_seconds: float = 0.1, **wanted: Any
) -> Sequence[LeaseView]:
    """Poll for research."""
    poll_id = wanted.pop("poll_id", f"poll-{next(_numbers)}")
    project = wanted.pop("project", "local")
    repository_ids = frozenset(wanted.pop("repository_ids", ()))
    holder = Holder(project, wanted.pop("principal", LOCAL), agent_id)
    capabilities, run_ids = wanted.pop("capabilities", RESEARCH), frozenset(wanted.pop("run_ids", ()))
    first = frozenset(wanted.pop("first_run_ids", ()))
    asked = PollRequest(holder, poll_id, capabilities, repository_ids, limit, run_ids, first_run_ids=first)
    return list((await store.matcher.take(asked, wait_seconds)).leases)


def report(held: LeaseView, epoch: int = 0, principal: str = LOCAL) -> commands.CompleteAssignment:
    """A good research report under the lease."""
    result = commands.ResearchResult(0.9, "{}")
    return commands.CompleteAssignment(
        held.run_id, held.assignment_id, epoch or held.epoch, held.agent_id, result, principal=principal,
        secret_digest=secret_digest(held.secret),
    )  # fmt: skip


def key_of(held: LeaseView) -> LeaseKey:
    """What the lease's holder shows."""
    return LeaseKey(held.assignment_id, held.epoch, secret_digest(held.secret))
