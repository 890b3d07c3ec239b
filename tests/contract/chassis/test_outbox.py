"""Effects: at once after the commit, in order, again after an outage, told to the machine when they fail, applied once."""

import asyncio
from typing import Any

import pytest

from pointsman.services.chassis.core.caller import engine_caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.deliveries import LEASE_SECONDS, PendingEffect, pending_effect
from tests.helpers.clock import FakeClock
from tests.helpers.counter import Add, CounterStore, Tell, Told
from tests.helpers.counters import a_caller, assert_sound, held, in_one_batch, opened, rows_of, running, state_of
from tests.helpers.eventually import eventually

AWAY = Refusal(Reason.UNAVAILABLE, "away")


async def test_an_effect_is_delivered_right_after_its_commit(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("ann",)))
        await _settled(counters)
        assert counters.heard == ["ann"]
        assert (await state_of(counters, "c1")).told == 1
        await assert_sound(counters)


async def test_effects_of_one_entity_go_in_the_order_of_their_seqs(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        await in_one_batch(
            counters.store,
            [counters.ledger.submit(a_caller(), Add("c1", 1, (f"{n}a", f"{n}b"))) for n in range(1, 4)],
        )
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("4a",)))
        await _settled(counters)
        assert counters.heard == ["1a", "1b", "2a", "2b", "3a", "3b", "4a"]


async def test_effects_left_by_a_process_without_loops_are_claimed_in_order(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("third",)))
        assert counters.heard == []
        async with running(counters.effects.run):
            await _settled(counters)
        assert counters.heard == ["first", "second", "third"]


async def test_an_outage_is_tried_again_and_keeps_the_order(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        counters.refuse = [AWAY, Refusal(Reason.OVERLOADED, "busy"), TimeoutError()]
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
        await _settled(counters)
        assert counters.heard == ["first", "second"]
        state = await state_of(counters, "c1")
        assert (state.told, state.faults) == (2, 0)


async def test_a_later_effect_does_not_overtake_one_that_waits(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters, running(counters.effects.run):
        await _delivering(counters)
        counters.refuse = [AWAY]
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first",)))
        await eventually(lambda: _postponed(counters, 1))
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("second",)))
        await counters.ledger.submit(a_caller(), Add("c2", 1, ("other",)))
        await eventually(lambda: _true("other" in counters.heard))
        assert counters.heard == ["other"]
        clock.advance(seconds=1)
        await _settled(counters)
        assert counters.heard == ["other", "first", "second"]


async def test_the_wait_between_tries_grows_and_names_the_error(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters, running(counters.effects.run):
        await _delivering(counters)
        counters.refuse = [AWAY] * 3
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("ann",)))
        waits: list[float] = []
        for attempt in (1, 2, 3):
            row = await eventually(lambda: _postponed(counters, attempt))  # noqa: B023
            assert row is not None
            waits.append((row["due_at_us"] - row["created_at_us"]) / 1e6 - sum(waits))
            assert row["last_error"] == "UNAVAILABLE"
            clock.advance(seconds=waits[-1])
        await _settled(counters)
        assert [0.01 * 2**n <= wait <= 0.02 * 2**n for n, wait in enumerate(waits)] == [True, True, True]


async def test_a_refusal_for_good_is_told_to_the_machine(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        counters.refuse = [Refusal(Reason.STATE_FORBIDS, "never")]
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
        await _settled(counters)
        state = await state_of(counters, "c1")
        assert (state.told, state.faults, counters.heard) == (1, 1, ["second"])


async def test_a_bug_is_tried_as_often_as_allowed_and_then_told(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        counters.refuse = [RuntimeError("internal_error")] * 3
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("ann",)))
        await _settled(counters)
        state = await state_of(counters, "c1")
        assert (state.told, state.faults, counters.refuse) == (0, 1, [])


@pytest.mark.parametrize("outage", [AWAY, TimeoutError()])
async def test_an_outage_past_the_deadline_is_told_to_the_machine(database_url: str, outage: Any) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters, running(counters.effects.run):
        await _delivering(counters)
        counters.refuse = [outage] * 2
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("ann",)))
        await eventually(lambda: _postponed(counters, 1))
        clock.advance(hours=25)
        await _settled(counters)
        assert (await state_of(counters, "c1")).faults == 1


async def test_a_delivery_that_cannot_be_settled_does_not_block_its_entity_for_ever(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as counters, running(counters.effects.run):
        await _delivering(counters)
        give_up, failures = counters.handlers.give_up, [RuntimeError("the machine is away, too")]

        async def failing(effect: PendingEffect, refusal: Refusal) -> None:
            if failures:
                raise failures.pop()
            await give_up(effect, refusal)

        counters.effects._handlers = type(counters.handlers)(counters.deliver, failing)
        counters.refuse = [Refusal(Reason.STATE_FORBIDS, "never")] * 2
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
        await eventually(lambda: _true(not failures))
        await eventually(lambda: _passing(clock, counters))
        assert (await state_of(counters, "c1")).faults == 1
        assert counters.heard == ["second"]


async def test_a_second_replica_takes_over_when_the_lease_has_run_out(database_url: str) -> None:
    clock = FakeClock()
    async with opened(database_url, clock) as dead:
        dead.store.deliver_with(lambda _effects: None)
        await dead.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
    async with opened(database_url, clock) as other, running(other.effects.run):
        clock.advance(seconds=LEASE_SECONDS - 1)
        assert await other.effects._claim() == []
        clock.advance(seconds=1)
        await _settled(other)
        assert other.heard == ["first", "second"]
        assert (await state_of(other, "c1")).told == 2


async def test_a_stopped_replica_gives_its_leases_back(database_url: str) -> None:
    async with opened(database_url, FakeClock()) as counters:
        never = asyncio.Event()
        counters.effects._handlers = type(counters.handlers)(lambda _effect: _wait_for(never), counters.give_up)
        async with running(counters.effects.run):
            await _delivering(counters)
            await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second")))
        await counters.effects.close()
        assert [row["lease_owner"] for row in await rows_of(counters, "outbox")] == ["", ""]


async def test_acknowledgement_and_advance_are_one_commit(database_url: str) -> None:
    async with opened(database_url) as counters:
        effect = await _leased(counters, "ann")
        async with held(counters.store):
            told = asyncio.ensure_future(counters.ledger.submit(_engine(effect), Told("c1", "ann"), effect))
            await asyncio.sleep(0)
            assert len(await rows_of(counters, "outbox")) == 1
            assert (await state_of(counters, "c1")).told == 0
        await told
        assert await rows_of(counters, "outbox") == []
        assert (await state_of(counters, "c1")).told == 1


async def test_an_effect_delivered_twice_is_applied_once(database_url: str) -> None:
    async with opened(database_url) as counters:
        effect = await _leased(counters, "ann")
        await asyncio.gather(*(counters.deliver(effect) for _ in range(5)))
        await counters.give_up(effect, AWAY)
        state = await state_of(counters, "c1")
        assert (state.told, state.faults) == (1, 0)
        await assert_sound(counters)


async def test_an_answer_given_before_still_acknowledges(database_url: str) -> None:
    async with opened(database_url) as counters:
        effect = await _leased(counters, "ann")
        await counters.ledger.submit(_engine(effect), Told("c1", "ann"))
        await counters.ledger.submit(_engine(effect), Told("c1", "ann"), effect)
        assert await rows_of(counters, "outbox") == []


async def test_a_stop_drops_what_was_not_delivered(database_url: str) -> None:
    async with opened(database_url) as counters:
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "second"), 5.0))
        await counters.ledger.submit(a_caller(), Add("c2", 1, ("other",), 5.0))
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("last words",), stop=True))
        assert {(row["entity_id"], row["seq"]) for row in await rows_of(counters, "outbox")} == {("c1", 2), ("c2", 1)}
        assert [row["entity_id"] for row in await rows_of(counters, "timers")] == ["c2"]


async def test_a_stop_in_the_same_batch_drops_too(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        await in_one_batch(
            counters.store,
            [
                counters.ledger.submit(a_caller(), Add("c1", 1, ("never",), 5.0)),
                counters.ledger.submit(a_caller(), Add("c1", 1, ("last words",), stop=True)),
            ],
        )
        await _settled(counters)
        assert counters.heard == ["last words"]
        assert await rows_of(counters, "timers") == []


async def test_a_stop_during_a_delivery_drops_those_behind_it(database_url: str) -> None:
    async with opened(database_url) as counters, running(counters.effects.run):
        await _delivering(counters)
        begun, over = asyncio.Event(), asyncio.Event()

        async def slowly(effect: PendingEffect) -> None:
            begun.set()
            await over.wait()
            await counters.deliver(effect)

        counters.effects._handlers = type(counters.handlers)(slowly, counters.give_up)
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("first", "never")))
        await begun.wait()
        await counters.ledger.submit(a_caller(), Add("c1", 1, ("last words",), stop=True))
        over.set()
        await _settled(counters)
        await eventually(lambda: _true("last words" in counters.heard))
        assert counters.heard == ["first", "last words"]


async def test_two_replicas_deliver_each_effect_once(database_url: str) -> None:
    async with opened(database_url) as one:
        for number in range(40):
            await one.ledger.submit(a_caller(), Add(f"c{number}", 1, (f"n{number}",)))
        if not one.store.database.is_postgresql:
            return
        async with opened(database_url) as two, running(one.effects.run, two.effects.run):
            await _settled(one)
            assert sorted(one.heard + two.heard) == sorted(f"n{number}" for number in range(40))


def _engine(effect: PendingEffect) -> Any:
    return engine_caller(effect.project, effect.traceparent, effect.effect_id)


async def _leased(counters: CounterStore, who: str) -> PendingEffect:
    """An effect that this process holds, and that nothing delivers by itself."""
    await counters.ledger.submit(a_caller(), Add("c1", 1, (who,)))
    effect = pending_effect((await rows_of(counters, "outbox"))[0])
    assert effect.data(Tell) == Tell(who)
    return effect


async def _delivering(counters: CounterStore) -> None:
    await eventually(lambda: _true(counters.store.delivers_effects))


async def _settled(counters: CounterStore) -> None:
    await eventually(lambda: _empty(counters))


async def _empty(counters: CounterStore) -> bool:
    return not await rows_of(counters, "outbox")


async def _passing(clock: FakeClock, counters: CounterStore) -> bool:
    clock.advance(seconds=LEASE_SECONDS)
    return await _empty(counters)


async def _postponed(counters: CounterStore, attempts: int) -> dict[str, Any] | None:
    rows = await rows_of(counters, "outbox")
    return rows[0] if rows and rows[0]["attempts"] == attempts and rows[0]["lease_owner"] == "" else None


async def _true(value: bool) -> bool:
    return value


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()
