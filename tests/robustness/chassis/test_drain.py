"""SIGTERM to a real process: what runs finishes, streams end with a hint, the process exits with 0."""

import asyncio
import signal
from pathlib import Path

import grpc

from tests.helpers.counter import counter_pb2
from tests.helpers.counter_server import an_add, failure_of
from tests.robustness.chassis.killed import nursery


async def test_a_process_told_to_stop_finishes_what_runs_and_exits_with_0(tmp_path: Path) -> None:
    async with nursery() as processes, processes.child(f"sqlite:///{tmp_path / 'store.db'}") as served:
        await served.stub.Add(an_add("r1"))
        watch = served.stub.Watch(counter_pb2.WatchRequest(counter_id="c1"))
        assert (await watch.read()).seq == 1
        slow = asyncio.ensure_future(served.stub.Wait(an_add("r2", amount=500)))
        await served.stub.Wait(an_add("r3", amount=1))
        served.terminate()
        ended = await failure_of(_to_the_end(watch))
        assert (ended.code, ended.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
        assert (await slow).value == 500
        assert await served.ended() == 0
        late = await failure_of(served.stub.Add(an_add("r4")))
        assert late.code is grpc.StatusCode.UNAVAILABLE


async def test_a_second_process_goes_on_where_a_stopped_one_was(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with nursery() as processes:
        async with processes.child(url) as first:
            before = await first.stub.Add(an_add("r1", amount=5))
            first.terminate()
            assert await first.ended() == 0
        async with processes.child(url) as second:
            assert await second.stub.Add(an_add("r1", amount=5)) == before
            assert (await second.stub.Add(an_add("r2", amount=2))).value == 7
            assert second.pid != first.pid
            second.terminate()
            assert await second.ended() != -signal.SIGTERM


async def _to_the_end(stream: grpc.aio.UnaryStreamCall[object, object]) -> None:
    while await stream.read() is not grpc.aio.EOF:
        continue
