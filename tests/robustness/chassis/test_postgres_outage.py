"""PostgreSQL killed under load: calls are answered UNAVAILABLE or succeed, and what was acknowledged is there afterwards."""

import asyncio
from collections import Counter as Tally

import grpc

from tests.helpers.counter import Add, CounterStore, counter_pb2
from tests.helpers.counter_server import Served, an_add, failure_of, serving
from tests.helpers.counters import a_caller, assert_sound, opened, rows_of, state_of
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.postgres import postgres_server

CALLERS = 24
ENOUGH = 150


class Load:
    """Callers that each try a request until it is acknowledged, and then the next."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._stopping = False
        self.acknowledged: list[str] = []
        self.refused: Tally[grpc.StatusCode] = Tally()

    async def call(self, caller: int) -> None:
        """One caller."""
        number = 0
        while not self._stopping:
            request_id = f"r{caller}-{number}"
            try:
                await self._served.stub.Add(an_add(request_id, f"c{caller % 4}"), timeout=scaled(30))
            except grpc.aio.AioRpcError as error:
                self.refused[error.code()] += 1
            else:
                self.acknowledged.append(request_id)
                number += 1

    async def more(self, count: int) -> None:
        """Wait for so many more acknowledgements."""
        wanted = len(self.acknowledged) + count
        await eventually(lambda: self._reached(wanted), seconds=30)

    async def stop(self) -> None:
        """Let every caller finish the request in hand."""
        self._stopping = True

    async def _reached(self, wanted: int) -> bool:
        return len(self.acknowledged) >= wanted


async def test_a_killed_postgresql_costs_time_and_nothing_else() -> None:
    with postgres_server() as postgres:
        url = new_postgres_database(postgres)
        async with serving(url) as served:
            load = Load(served)
            callers = [asyncio.create_task(load.call(caller)) for caller in range(CALLERS)]
            await load.more(ENOUGH)
            await asyncio.to_thread(postgres.kill)
            reading = await failure_of(served.stub.Watch(counter_pb2.WatchRequest(counter_id="c1")).read())
            await eventually(lambda: _refused(load), seconds=30)
            await asyncio.to_thread(postgres.start)
            await load.more(ENOUGH)
            await load.stop()
            await asyncio.gather(*callers)
            async with opened(url) as counters:
                await _assert_all_there(counters, load)
                await counters.ledger.submit(a_caller(), Add("c9", 1, ("ann",), 0.0))
                await eventually(lambda: _done_by_loops(counters), seconds=20)
        assert (reading.code, reading.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        assert set(load.refused) == {grpc.StatusCode.UNAVAILABLE}


async def _assert_all_there(counters: CounterStore, load: Load) -> None:
    await assert_sound(counters)
    answered = {row["request_id"] for row in await rows_of(counters, "idempotency")}
    assert answered == set(load.acknowledged)
    assert sum([(await state_of(counters, f"c{n}")).value for n in range(4)]) == len(load.acknowledged)


async def _done_by_loops(counters: CounterStore) -> bool:
    """Whether an effect and a timer that another process has written are done by the loops that saw the outage."""
    state = await state_of(counters, "c9")
    return (state.told, state.rung) == (1, 1)


async def _refused(load: Load) -> bool:
    return bool(load.refused)
