"""Named leases: one holder at a time, a higher epoch for each later one, by the database's clock."""

import asyncio

from pointsman.services.chassis.engine.leases import Leases
from tests.helpers.clock import FakeClock
from tests.helpers.counters import opened


async def test_one_of_many_gets_the_lease(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:
        leases = Leases(counters.store)
        asked = await asyncio.gather(*(leases.acquire("job", f"owner{number}", 10) for number in range(16)))
        holders = [lease for lease in asked if lease is not None]
        assert len(holders) == 1
        assert holders[0].epoch == 1


async def test_a_later_holder_has_a_higher_epoch(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        leases = Leases(counters.store)
        first = await leases.acquire("job", "one", 10)
        clock.advance(seconds=9.999)
        assert await leases.acquire("job", "two", 10) is None
        clock.advance(seconds=0.001)
        second = await leases.acquire("job", "two", 10)
        assert first is not None
        assert second is not None
        assert (first.epoch, second.epoch) == (1, 2)


async def test_a_lost_lease_cannot_be_renewed_or_released(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        leases = Leases(counters.store)
        first = await leases.acquire("job", "one", 10)
        assert first is not None
        clock.advance(seconds=11)
        assert await leases.acquire("job", "two", 10) is not None
        assert await leases.renew(first, 10) is None
        await leases.release(first)
        assert await leases.acquire("job", "three", 10) is None


async def test_a_renewed_lease_is_held_longer_and_a_released_one_is_free(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        leases = Leases(counters.store)
        held = await leases.acquire("job", "one", 10)
        assert held is not None
        clock.advance(seconds=8)
        renewed = await leases.renew(held, 10)
        assert renewed is not None
        clock.advance(seconds=8)
        assert await leases.acquire("job", "two", 10) is None
        await leases.release(renewed)
        assert await leases.acquire("job", "two", 10) is not None


async def test_leases_of_other_names_do_not_matter(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:
        leases = Leases(counters.store)
        assert await leases.acquire("job", "one", 10) is not None
        assert await leases.acquire("other", "two", 10) is not None
