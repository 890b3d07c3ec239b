"""A clock that was an hour ahead and is set right: what was held or put off meanwhile does not wait for that hour."""

from tests.contract.orchestrator.orchestrators import orchestrator, researching, take
from tests.helpers.clock import FakeClock
from tests.helpers.counter import Add
from tests.helpers.counters import a_caller, opened, rows_of, running
from tests.helpers.eventually import eventually


async def test_an_effect_of_a_clock_that_was_ahead_is_delivered_when_it_is_set_right(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        clock.advance(hours=1)
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("somebody",)))
        clock.advance(hours=-1)
        assert await counters.store.write(counters.store.requeue_stranded) == 1
        async with running(counters.effects.run):

            async def delivered() -> bool:
                return not await rows_of(counters, "outbox")

            await eventually(delivered, 30)


async def test_an_effect_that_waits_as_it_should_is_left_alone(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("somebody",)))
        assert await counters.store.write(counters.store.requeue_stranded) == 0


async def test_a_lease_of_a_clock_that_was_ahead_is_over_when_it_is_set_right(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, 10, clock) as store:
        clock.advance(hours=1)
        await researching(store, "run_a")
        await take(store, "first")
        clock.advance(hours=-1)
        (second,) = await take(store, "second")
        assert (second.epoch, second.attempt) == (2, 2)
