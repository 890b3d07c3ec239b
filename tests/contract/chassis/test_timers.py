"""Timers: fire without a client, are replaced and cancelled by name, fire once however many look at them."""

import asyncio

import pytest
from sqlalchemy import text

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.deliveries import LEASE_SECONDS, FiredTimer, fired_timer
from pointsman.services.chassis.engine.timers import TimerRunner
from pointsman.services.chassis.storage.store import TIMERS
from tests.helpers.clock import FakeClock
from tests.helpers.counter import Add, CounterStore
from tests.helpers.counters import a_caller, assert_sound, in_one_batch, opened, rows_of, running, state_of
from tests.helpers.eventually import eventually


async def test_a_timer_fires_when_it_is_due_and_not_before(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=60))
        clock.advance(seconds=59.999999)
        assert await counters.timers.fire_due() == 0
        clock.advance(seconds=0.000001)
        assert await counters.timers.fire_due() == 1
        assert (await state_of(counters, "c1")).rung == 1
        assert await rows_of(counters, "timers") == []
        await assert_sound(counters)


async def test_the_loop_wakes_for_a_timer_by_itself(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.timers.run):
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=0.05))
        await eventually(lambda: _rung(counters, "c1"))


async def test_only_a_timer_that_is_due_before_the_next_look_wakes_the_loop(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database_url) as counters:
        announce, told = counters.store.notify, set[str]()

        def note(names: set[str]) -> None:
            told.update(names)
            announce(names)

        async def set_without_news() -> bool:
            told.clear()
            await counters.ledger.submit(a_caller(), Add("late", 1, ring_after_seconds=7200))
            return TIMERS not in told

        monkeypatch.setattr(counters.store, "notify", note)
        runner = TimerRunner(counters.store, counters.fire, poll_seconds=3600)
        async with running(runner.run):
            await eventually(set_without_news)
            await counters.ledger.submit(a_caller(), Add("soon", 1, ring_after_seconds=0.05))
            await eventually(lambda: _rung(counters, "soon"))
        assert (await state_of(counters, "late")).rung == 0


async def test_a_timer_survives_a_restart(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=60))
    clock.advance(seconds=3600)
    async with opened(database_url, clock) as counters:
        assert await counters.timers.fire_due() == 1
        assert (await state_of(counters, "c1")).rung == 1


async def test_the_same_name_replaces_the_earlier_timer(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=10))
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=60))
        clock.advance(seconds=30)
        assert await counters.timers.fire_due() == 0
        clock.advance(seconds=30)
        assert await counters.timers.fire_due() == 1


async def test_the_last_of_a_batch_wins(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        await in_one_batch(
            counters.store,
            [counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=after)) for after in (10.0, 60.0)],
        )
        clock.advance(seconds=30)
        assert await counters.timers.fire_due() == 0
        clock.advance(seconds=30)
        assert await counters.timers.fire_due() == 1


async def test_a_stopped_entity_is_not_rung(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=10))
        await counters.ledger.submit(a_caller(), Add("c1", 1, stop=True))
        clock.advance(seconds=60)
        assert await counters.timers.fire_due() == 0
        assert (await state_of(counters, "c1")).rung == 0


async def test_a_timer_is_fired_once_by_two_runners(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        for number in range(20):
            await counters.ledger.submit(a_caller(), Add(f"c{number}", 1, ring_after_seconds=1))
        clock.advance(seconds=2)
        if counters.store.database.is_postgresql:
            async with opened(database_url, clock) as other:
                counts = await asyncio.gather(counters.timers.fire_due(), other.timers.fire_due())
        else:
            second = TimerRunner(counters.store, counters.fire)
            counts = await asyncio.gather(counters.timers.fire_due(), second.fire_due())
        assert sum(counts) == 20
        states = [await state_of(counters, f"c{number}") for number in range(20)]
        assert {state.rung for state in states} == {1}


async def test_a_firing_done_twice_counts_once(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:
        timer = await _claimed(counters, "c1")
        await asyncio.gather(*(counters.fire(timer) for _ in range(4)))
        assert (await state_of(counters, "c1")).rung == 1
        await assert_sound(counters)


async def test_a_timer_set_again_while_it_fires_does_not_fire_with_its_old_time(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        timer = await _claimed(counters, "c1")
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=60))
        with pytest.raises(Refusal) as refused:
            await counters.fire(timer)
        assert refused.value.reason is Reason.LOST_RACE
        assert (await state_of(counters, "c1")).rung == 0
        clock.advance(seconds=60)
        assert await counters.timers.fire_due() == 1
        assert (await state_of(counters, "c1")).rung == 1


async def test_a_timer_cancelled_while_it_fires_does_not_fire(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:
        timer = await _claimed(counters, "c1")
        outcomes = await in_one_batch(
            counters.store,
            [counters.ledger.submit(a_caller(), Add("c1", 1, stop=True)), counters.fire(timer)],
        )
        assert isinstance(outcomes[1], Refusal)
        assert (await state_of(counters, "c1")).rung == 0


async def test_a_timer_whose_firing_failed_fires_again_after_a_lease_that_doubles_each_time(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters:
        failures: list[Exception] = [Refusal(Reason.UNAVAILABLE, "away"), RuntimeError("internal_error")]

        async def fire(timer: FiredTimer) -> None:
            if failures:
                raise failures.pop()
            await counters.fire(timer)

        runner = TimerRunner(counters.store, fire)
        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=0))
        for attempt in range(3):
            assert await runner.fire_due() == 1
            clock.advance(seconds=LEASE_SECONDS * 2**attempt - 1)
            assert await runner.fire_due() == 0
            clock.advance(seconds=1)
        assert (await state_of(counters, "c1")).rung == 1


async def test_a_timer_that_its_machine_refuses_is_forgotten(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:

        async def fire(_timer: FiredTimer) -> None:
            raise Refusal(Reason.STATE_FORBIDS, "no use for it")

        await counters.ledger.submit(a_caller(), Add("c1", 1, ring_after_seconds=0))
        assert await TimerRunner(counters.store, fire).fire_due() == 1
        assert await rows_of(counters, "timers") == []


async def _claimed(counters: CounterStore, counter_id: str) -> FiredTimer:
    """A timer that is due and held by a runner that has not fired it yet."""
    await counters.ledger.submit(a_caller(), Add(counter_id, 1, ring_after_seconds=0))
    lease = text("UPDATE timers SET lease_until_us = due_at_us + 30000000, attempts = 1")
    await counters.store.write(lambda connection: connection.execute(lease).rowcount)
    return fired_timer((await rows_of(counters, "timers"))[0])


async def _rung(counters: CounterStore, counter_id: str) -> bool:
    return (await state_of(counters, counter_id)).rung == 1
