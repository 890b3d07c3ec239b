"""64 writers at once, on one entity and on many, from one replica and from two: nothing lost, nothing doubled."""

import asyncio
from contextlib import AsyncExitStack

from pointsman.services.chassis.core.errors import Refusal
from tests.helpers.counter import Add, Answer, CounterStore
from tests.helpers.counters import a_caller, assert_sound, opened, rows_of, state_of

WRITERS = 64
ROUNDS = 4


async def test_64_writers_on_one_entity(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        replicas = await _replicas(stack, database_url)
        answers = await asyncio.gather(*(_write(replicas, writer, "c1") for writer in range(WRITERS)))
        assert (await state_of(replicas[0], "c1")).value == WRITERS * ROUNDS
        assert sorted(answer.value for few in answers for answer in few) == list(range(1, WRITERS * ROUNDS + 1))
        await assert_sound(replicas[0])


async def test_64_writers_on_many_entities(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        replicas = await _replicas(stack, database_url)
        await asyncio.gather(*(_write(replicas, writer, f"c{writer % 16}") for writer in range(WRITERS)))
        for number in range(16):
            assert (await state_of(replicas[0], f"c{number}")).value == 4 * ROUNDS
        await assert_sound(replicas[0])


async def test_the_same_requests_to_all_replicas_at_once_count_once(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        replicas = await _replicas(stack, database_url)
        sent = [
            replica.ledger.submit(a_caller(f"r{number}"), Add(f"c{number % 4}", 1))
            for number in range(WRITERS)
            for replica in replicas
        ]
        answers = await asyncio.gather(*sent)
        each = [answers[place : place + len(replicas)] for place in range(0, len(answers), len(replicas))]
        assert all(len(set(few)) == 1 for few in each)
        assert len(await rows_of(replicas[0], "idempotency")) == WRITERS
        assert len(await rows_of(replicas[0], "journal")) == WRITERS
        await assert_sound(replicas[0])


async def test_refusals_among_racing_writers_leave_no_trace(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        replicas = await _replicas(stack, database_url)
        sent = [
            replicas[number % len(replicas)].ledger.submit(
                a_caller(project="local" if number % 2 else "theirs"), Add("c1", 1)
            )
            for number in range(WRITERS)
        ]
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        done = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
        assert len(done) == WRITERS // 2
        assert all(isinstance(outcome, Answer | Refusal) for outcome in outcomes)
        assert len(await rows_of(replicas[0], "journal")) == len(await rows_of(replicas[0], "idempotency")) == len(done)


async def _replicas(stack: AsyncExitStack, url: str) -> list[CounterStore]:
    """Two stores on one PostgreSQL; one on a file, which has one owner."""
    count = 2 if url.startswith("postgresql") else 1
    return [await stack.enter_async_context(opened(url)) for _ in range(count)]


async def _write(replicas: list[CounterStore], writer: int, name: str) -> list[Answer]:
    replica = replicas[writer % len(replicas)]
    return [await replica.ledger.submit(a_caller(), Add(name, 1)) for _ in range(ROUNDS)]
