"""Accounts at a model's provider: paused with the lease that goes back, shared by all who poll with them, over at the reset."""

from datetime import UTC, datetime, timedelta

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.orchestrator.domain.views import LeaseView, Pause, ProviderLimit
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.polling import PollRequest
from tests.contract.orchestrator.orchestrators import RESEARCH, key_of, orchestrator, researching
from tests.helpers.clock import FakeClock

ACCOUNT = "claude/5f2c"
START = datetime(2026, 11, 18, tzinfo=UTC)


async def poll(
    store: OrchestratorStore,
    agent_id: str,
    account: str = "",
    instead_of: frozenset[str] = frozenset(),
    who: str = LOCAL,
) -> list[LeaseView]:
    """What an agent is given at once."""
    holder = Holder("local", who, agent_id, account)
    await store.agents.touch(holder, RESEARCH)
    asked = PollRequest(holder, f"poll-{agent_id}-{store.now}", RESEARCH, frozenset(), instead_of=instead_of)
    return list((await store.matcher.take(asked, 0.0)).leases)


async def give_back(
    store: OrchestratorStore, held: LeaseView, limit: ProviderLimit, agent_id: str = "", who: str = LOCAL
) -> bool:
    """Return a lease because of a limit."""
    holder = Holder("local", who, agent_id or held.agent_id)
    return await store.store.write(lambda c: store.matcher.give_back(c, holder, key_of(held), limit))


async def pause_of(store: OrchestratorStore, who: str) -> Pause | None:
    """How long the account rests for a principal."""
    paused = await store.store.database.read(store.accounts.paused)
    return paused.of("local", ACCOUNT, who)


async def test_a_limit_pauses_the_account_for_everybody_until_its_reset_and_counts_no_attempt(
    database_url: str,
) -> None:
    clock = FakeClock(START)
    limit = ProviderLimit("QUOTA", to_us(START + timedelta(hours=2)), "used up")
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "box-1", ACCOUNT)
        assert await give_back(store, held, limit)
        clock.advance(seconds=60)
        assert await poll(store, "box-1", ACCOUNT) == []
        assert await poll(store, "box-2", ACCOUNT) == [], "another worker with the same account"
    async with orchestrator(database_url, clock=clock) as store:
        clock.advance(seconds=60)
        assert await poll(store, "box-2", ACCOUNT) == [], "after a restart too"
        clock.advance(seconds=2 * 3600)
        (again,) = await poll(store, "box-2", ACCOUNT)
        assert (again.assignment_id, again.attempt) == (held.assignment_id, 1)


async def test_another_account_and_one_that_stands_in_go_on(database_url: str) -> None:
    clock = FakeClock(START)
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        stands_in = frozenset({ACCOUNT})
        assert await poll(store, "box-fallback", "codex/77aa", stands_in) == [], "nothing is paused yet"
        (held,) = await poll(store, "box-1", ACCOUNT)
        assert await give_back(store, held, ProviderLimit("THROTTLED", 0, "slow down"))
        clock.advance(seconds=1)
        (taken,) = await poll(store, "box-fallback", "codex/77aa", stands_in)
        assert taken.assignment_id == held.assignment_id
        assert await give_back(store, taken, ProviderLimit("QUOTA", 0, "used up"))
        clock.advance(seconds=1)
        assert await poll(store, "box-fallback", "codex/77aa", stands_in) == []
        clock.advance(seconds=30)
        (first,) = await poll(store, "box-1", ACCOUNT)
        assert first.assignment_id == held.assignment_id, "a throttled account rests half a minute"


async def test_only_who_holds_the_lease_pauses_and_only_their_own_account(database_url: str) -> None:
    clock = FakeClock(START)
    for_ever = ProviderLimit("QUOTA", to_us(START + timedelta(days=4000)), "never again")
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "box-1", ACCOUNT)
        assert await poll(store, "mallory", ACCOUNT) == [], "she shares the account and holds nothing"
        assert not await give_back(store, held, for_ever, "mallory")
        assert await pause_of(store, LOCAL) is None
        assert await give_back(store, held, for_ever)
        pause = await pause_of(store, LOCAL)
        assert pause is not None
        assert pause.until_us == to_us(START + timedelta(days=8)), "eight days are the most"
        clock.advance(seconds=9 * 24 * 3600)
        assert len(await poll(store, "box-1", ACCOUNT)) == 1


FOR_EVER = to_us(START + timedelta(days=4000))


async def test_a_lie_about_a_shared_account_binds_the_liar_and_others_only_for_a_while(database_url: str) -> None:
    clock = FakeClock(START)
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "liar", ACCOUNT, who="mallory")
        assert await give_back(store, held, ProviderLimit("QUOTA", FOR_EVER, "never again"), who="mallory")
        assert await poll(store, "box-1", ACCOUNT, who="alice") == [], "her word is taken at first"
        believed = await pause_of(store, "alice")
        assert believed is not None
        assert believed.reason == "never again (reported by mallory)"
        assert believed.until_us == to_us(START + timedelta(minutes=15))
        clock.advance(seconds=15 * 60 + 1)
        assert await poll(store, "liar", ACCOUNT, who="mallory") == [], "she rests as long as she said"
        stands_in = frozenset({ACCOUNT})
        (taken,) = await poll(store, "spare", "codex/77aa", stands_in, who="bob")
        assert await give_back(store, taken, ProviderLimit("OVERLOADED", 0, "busy"), who="bob")
        (seen,) = await poll(store, "box-1", ACCOUNT, who="alice")
        assert await give_back(store, seen, ProviderLimit("QUOTA", FOR_EVER, "true this time"), who="alice")
        clock.advance(seconds=60 * 60)
        assert await poll(store, "box-1", ACCOUNT, who="alice") == [], "what she saw herself binds her"


async def test_lie_after_lie_leaves_others_most_of_the_time(database_url: str) -> None:
    clock = FakeClock(START)
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        rested = 0
        for minute in range(0, 240, 2):
            liar = f"mallory/{minute}"
            for held in await poll(store, f"liar-{minute}", ACCOUNT, who=liar):
                assert await give_back(store, held, ProviderLimit("QUOTA", FOR_EVER, "never again"), who=liar)
            rested += 2 if await pause_of(store, "alice") is not None else 0
            clock.advance(seconds=120)
        assert 0 < rested <= 240 // 4 + 15


async def test_an_agent_pauses_nothing_by_a_name_that_is_now_another_principals(database_url: str) -> None:
    clock = FakeClock(START)
    async with orchestrator(database_url, clock=clock) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "box-1", "codex/77aa", who="mallory")
        clock.advance(seconds=store.agents.present_us / 1_000_000 + 1)
        await store.agents.touch(Holder("local", "alice", "box-1", ACCOUNT), RESEARCH)
        assert await give_back(store, held, ProviderLimit("QUOTA", FOR_EVER, "never again"), who="mallory")
        assert await pause_of(store, "alice") is None


async def test_throttling_ends_within_an_hour(database_url: str) -> None:
    async with orchestrator(database_url, clock=FakeClock(START)) as store:
        await researching(store, "run_1")
        (held,) = await poll(store, "box-1", ACCOUNT)
        assert await give_back(store, held, ProviderLimit("THROTTLED", FOR_EVER, "slow down"))
        pause = await pause_of(store, LOCAL)
        assert pause is not None
        assert pause.until_us == to_us(START + timedelta(hours=1))
