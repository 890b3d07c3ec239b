"""A process killed at every named point of a commit and of a delivery: nothing lost, nothing doubled."""

import json
import signal

from pointsman.services.chassis.core.crash import CrashPoint
from tests.helpers.counter import CounterStore
from tests.helpers.counters import assert_sound, opened, rows_of
from tests.helpers.eventually import eventually
from tests.robustness.chassis.killed import Work, nursery

LEASES_OVER_SECONDS = 60.0
SECOND_TIME = 2
AFTER_HOUSEKEEPING = 5
BATCHES = (CrashPoint.BATCH_BEGUN, CrashPoint.BATCH_COMMITTED)


async def test_a_process_killed_at_every_point_in_turn_loses_and_doubles_nothing(database_url: str) -> None:
    work, ahead_seconds = Work(), 0.0
    async with nursery() as processes:
        for point in CrashPoint:
            work.more(6)
            async with processes.child(database_url, ahead_seconds, _armed(point)) as served:
                await work.send(served.stub)
                assert await served.ended() == -signal.SIGKILL, f"{point} was never reached"
            ahead_seconds += LEASES_OVER_SECONDS
        async with processes.child(database_url, ahead_seconds) as served, opened(database_url) as counters:
            await work.send(served.stub)
            assert set(work.acknowledged) == set(work.sent)
            await eventually(lambda: _settled(counters), seconds=20)
            served.terminate()
            assert await served.ended() == 0
            await _assert_once(counters, work)


def _armed(point: CrashPoint) -> str:
    """Dead the second time, when there is something to lose; what is no command makes batches, too."""
    return f"{point}:{AFTER_HOUSEKEEPING if point in BATCHES else SECOND_TIME}"


async def _settled(counters: CounterStore) -> bool:
    return not await rows_of(counters, "outbox") and not await rows_of(counters, "timers")


async def _assert_once(counters: CounterStore, work: Work) -> None:
    """Every request is one addition and one telling; every counter was rung."""
    await assert_sound(counters)
    journal = await rows_of(counters, "journal")
    added = [json.loads(row["payload"])["amount"] for row in journal if row["event"] == "added"]
    told = [json.loads(row["payload"])["who"] for row in journal if row["event"] == "told"]
    assert sorted(added) == work.sent
    assert sorted(told) == sorted(f"r{number}" for number in work.sent)
    assert {row["entity_id"] for row in journal if row["event"] == "rung"} == {"c0", "c1", "c2"}
    assert not [row for row in journal if row["event"] == "fault"]
