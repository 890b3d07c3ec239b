"""A provider's limit in the journal of the run: who rests until when, who takes over, and that it goes on after the reset."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain.views import LeaseView, ProviderLimit
from pointsman.services.orchestrator.domain.waiting import waiting_for
from pointsman.services.orchestrator.loops import Engine
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.polling import PollRequest
from tests.contract.orchestrator.orchestrators import RESEARCH, caller, key_of, orchestrator, report, researching
from tests.helpers.clock import FakeClock
from tests.helpers.limits import within

ACCOUNT, OTHER = "claude/5f2c", "codex/77aa"
START = datetime(2026, 11, 18, tzinfo=UTC)
RESET = START + timedelta(hours=2)
QUOTA = ProviderLimit("QUOTA", to_us(RESET), "used up")


def asks(
    store: OrchestratorStore, agent_id: str, account: str, instead_of: frozenset[str] = frozenset()
) -> PollRequest:
    holder = Holder("local", LOCAL, agent_id, account)
    return PollRequest(holder, f"poll-{agent_id}-{store.now}", RESEARCH, frozenset(), instead_of=instead_of)


async def poll(store: OrchestratorStore, *who: Any) -> list[LeaseView]:
    """What an agent is given at once."""
    asked = asks(store, *who)
    await store.agents.touch(asked.holder, RESEARCH)
    return list((await store.matcher.take(asked, 0.0)).leases)


async def give_back(store: OrchestratorStore, held: LeaseView) -> None:
    holder = Holder("local", LOCAL, held.agent_id)
    assert await store.store.write(lambda c: store.matcher.give_back(c, holder, key_of(held), QUOTA))


async def told(store: OrchestratorStore) -> list[tuple[str, ...]]:
    """What the journal says about limits, after the runs were told twice, as after a crash in between."""
    engine: Any = Engine(store, None, OrchestratorSettings())  # type: ignore[arg-type]
    rows = await store.store.database.read(store.accounts.limited.untold)
    await engine.tell_of_limits()
    for row in rows:
        await store.store.write(lambda c: store.accounts.limited.returned(c, again_of(row)))  # noqa: B023
    await engine.tell_of_limits()
    lines = await store.store.database.read(lambda c: store.journal.rows(c, "run_1", 0, 1000))
    said = [(line.event, json.loads(line.payload)) for line in lines]
    return [
        (event, data["agent_id"], data["account"], data.get("until", data.get("rested")))
        for event, data in said
        if event in {"account_paused", "work_taken_up"}
    ]


def again_of(row: Any) -> dict[str, Any]:
    """A row whose news were told, as it was before."""
    names = ("entity_id", "assignment_id", "epoch", "project", "traceparent", "agent_id", "account", "until_us", "kind")
    return {**{name: getattr(row, name) for name in names}, "reason": row.reason}


async def test_the_journal_says_who_rests_who_takes_over_and_who_goes_on_once_each_after_restarts(
    database_url: str,
) -> None:
    clock = FakeClock(START)
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "box-1", ACCOUNT)
        await give_back(store, held)
    paused = ("account_paused", "box-1", ACCOUNT, "2026-11-18T02:00:00Z")
    async with orchestrator(database_url, clock=clock) as store:
        assert await told(store) == [paused], "what was returned before the crash"
        run = (await store.view("local", "run_1")).run
        waiting = waiting_for(run)
        assert waiting is not None
        assert waiting.until == RESET
        assert f"{ACCOUNT} rests until 2026-11-18 02:00:00 UTC" in waiting.action
        clock.advance(seconds=1)
        (taken,) = await poll(store, "box-2", OTHER, frozenset({ACCOUNT}))
        over = ("work_taken_up", "box-2", OTHER, ACCOUNT)
        assert await told(store) == [paused, over]
        assert (await store.view("local", "run_1")).run.resting == {}
        await give_back(store, taken)
        clock.advance(seconds=2 * 3600)
        (again,) = await poll(store, "box-1", ACCOUNT)
        assert again.attempt == 1
        later = ("account_paused", "box-2", OTHER, "2026-11-18T02:00:00Z")
        assert await told(store) == [paused, over, later, ("work_taken_up", "box-1", ACCOUNT, OTHER)]
        await store.ledger.submit(caller(), report(again))
        assert await store.store.database.read(store.accounts.limited.untold) == []


async def test_who_waits_goes_on_within_a_minute_after_the_reset(database_url: str) -> None:
    clock = FakeClock(START)
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "box-1", ACCOUNT)
        await give_back(store, held)
        clock.advance(seconds=2 * 3600 - 1)
        assert await poll(store, "box-1", ACCOUNT) == [], "a second before it"
        waiting = asyncio.create_task(store.matcher.take(asks(store, "box-1", ACCOUNT), 3600.0))
        clock.advance(seconds=60)
        async with within(30):
            assert [one.assignment_id for one in (await waiting).leases] == [held.assignment_id]
        assert await told(store) == [
            ("account_paused", "box-1", ACCOUNT, "2026-11-18T02:00:00Z"),
            ("work_taken_up", "box-1", ACCOUNT, ACCOUNT),
        ]
