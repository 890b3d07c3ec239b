"""Ten times as many new runs as can be brought to their end: those that were taken in go on as fast as before."""

import asyncio
import time
from typing import Any

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.services.chassis.rpc.client import open_channel
from tests.helpers.limits import scaled
from tests.robustness.abuse.target import Target
from tests.robustness.overload.heartbeats import beating
from tests.robustness.overload.tally import Tally
from tests.scenarios.planes import WISH, Plane, clients

LIVE_RUNS = 64
CALLERS = 48
"""Fewer than may live at once: a run that comes in is counted twice until its caller has the answer."""
PAUSE_SECONDS = 0.005
BESIDE = "beside"
"""The project of the agent that works while there is too much: the mocks would take its work from it."""


class Ends:
    """Counts the runs that come to COMPLETE."""

    def __init__(self, here: Plane) -> None:
        self._here = here
        self.count = 0

    async def follow(self) -> None:
        """Watch the whole store, from now on."""
        page = await self._here.runs.ListRuns(pb.ListRunsRequest())
        request = pb.WatchChangesRequest(after_position=page.newest_position)
        async for change in self._here.runs.WatchChanges(request):
            moved = change.transition
            self.count += moved.to_state == "COMPLETE" != moved.from_state


async def _one_after_the_other(here: Plane, ends: Ends, seconds: float) -> tuple[float, Tally]:
    """Runs per second where each of the callers waits for its run's end, and how long it took to be taken in."""
    until, tally = time.monotonic() + seconds, Tally()

    async def caller() -> None:
        while time.monotonic() < until:
            begun = time.monotonic()
            run = await here.submit(f"{WISH} for {here.request_id()}")
            tally.seconds.append(time.monotonic() - begun)
            async for _ in here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id)):
                pass

    before, begun = ends.count, time.monotonic()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return (ends.count - before) / (time.monotonic() - begun), tally


async def _flood(here: Plane, per_second: float, seconds: float) -> Tally:
    """So many new runs per second, whether or not they are taken."""
    tally, begun, sent = Tally(), time.monotonic(), 0
    tasks: set[asyncio.Task[bool]] = set()
    while (passed := time.monotonic() - begun) < seconds:
        for _ in range(int(per_second * passed) - sent):
            number = here.request_id()
            request = pb.SubmitRequest(request_id=number, message=f"{WISH} for {number}")
            task = asyncio.ensure_future(tally.take(here.runs.Submit(request, timeout=scaled(60))))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            sent += 1
        await asyncio.sleep(PAUSE_SECONDS)
    await asyncio.gather(*tasks)
    return tally


async def new_runs(process: Target, seconds: float, times: float) -> dict[str, Any]:
    """What can be brought to its end, and what becomes of that while ten times as much comes in."""
    async with open_channel(process.address) as channel:
        here = clients(channel)
        ends = Ends(here)
        following = asyncio.create_task(ends.follow())
        await _one_after_the_other(here, ends, 2.0)
        sustainable, usual = await _one_after_the_other(here, ends, min(10.0, seconds))
        with beating(process.address, BESIDE) as fared:
            before, begun = ends.count, time.monotonic()
            flood = await _flood(here, sustainable * times, seconds)
            finished = (ends.count - before) / (time.monotonic() - begun)
            beats = await asyncio.to_thread(fared)
        await asyncio.sleep(min(5.0, seconds))
        _, after = await _one_after_the_other(here, ends, min(5.0, seconds))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return {
        "new_runs_per_second_sustainable": round(sustainable, 1),
        "new_runs_per_second_offered": round(sum(flood.codes.values()) / seconds, 1),
        "runs_completed_of_sustainable": round(finished / sustainable, 2),
        "new_runs_codes": dict(flood.codes),
        "new_runs_refused_without_retry_info": flood.without_retry_info,
        "new_run_refused_p50_ms": flood.refused_p50_ms,
        "heartbeats": beats["heartbeats"],
        "completions": beats["completions"],
        "heartbeat_worst_ms": round(beats["seconds"][-1] * 1000, 1),
        "new_run_p99_ms_before": usual.p99_ms,
        "new_run_p99_ms_after": after.p99_ms,
    }
