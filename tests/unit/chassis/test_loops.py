"""Background work that fails is started again, and stops when it is told to."""

import asyncio

import pytest

from pointsman.services.chassis.core import supervision
from pointsman.services.chassis.core.supervision import Loops
from tests.helpers.eventually import eventually
from tests.helpers.limits import within


async def test_a_loop_that_fails_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "jitter", lambda _seconds: 0.0)
    runs: list[int] = []

    async def work() -> None:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError("a bad day")
        await asyncio.Event().wait()

    loops = Loops()
    loops.start("work", work)
    await eventually(lambda: _reached(runs, 3))
    await loops.stop()
    assert len(runs) == 3


async def test_a_loop_that_ends_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "jitter", lambda _seconds: 0.0)
    runs: list[int] = []

    async def work() -> None:
        runs.append(1)

    loops = Loops()
    loops.start("work", work)
    await eventually(lambda: _reached(runs, 3))
    await loops.stop()


async def test_stopped_loops_are_gone() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    loops = Loops()
    loops.start("work", work)
    await asyncio.sleep(0)
    await loops.stop()
    assert ended.is_set()


async def _reached(runs: list[int], count: int) -> bool:
    return len(runs) >= count


async def test_a_loop_that_fails_on_its_way_out_does_not_hold_up_the_stop() -> None:
    """A lease that cannot be given back, since the database is away, must not keep a service from stopping."""
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the lease cannot be given back")

    loops = Loops()
    loops.start("leased", work)
    await begun.wait()
    async with within(5):
        await loops.stop()
