"""`python -m tests.robustness.overload`: ten times as many runs and calls as can be done, and stalled watchers. JSON lines."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import grpc

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.services.chassis.rpc.client import open_channel
from tests.helpers.limits import scaled
from tests.robustness.abuse.target import Target, target
from tests.robustness.overload.heartbeats import beating
from tests.robustness.overload.runs import LIVE_RUNS, new_runs
from tests.robustness.overload.tally import Tally
from tests.scenarios.planes import WISH, clients

MAX_IN_FLIGHT = 64
CALM_CALLERS = 16
CHANNELS = 4
CROWD = 250
"""So many watchers come at once; the next ones when the server has begun to send to these."""
numbers = count(1)


class Load:
    """New work: routing decisions, each a durable command."""

    def __init__(self, address: str) -> None:
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
        self._channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(CHANNELS)]
        self._stubs: list[Any] = [RouterServiceStub(channel) for channel in self._channels]

    def decide(self) -> Any:
        """One piece of new work."""
        number = next(numbers)
        message = decision_pb2.Message(text=f"{WISH} number {number}")
        request = decision_pb2.ClassifyRequest(request_id=f"load-{number}", message=message)
        return self._stubs[number % CHANNELS].Classify(request, timeout=scaled(60))

    async def callers(self, amount: int, seconds: float) -> Tally:
        """So many callers, each with one call at a time."""
        tally, end = Tally(), time.monotonic() + seconds

        async def caller() -> None:
            while time.monotonic() < end:
                await tally.take(self.decide())

        await asyncio.gather(*(caller() for _ in range(amount)))
        return tally

    async def at_rate(self, per_second: float, seconds: float) -> Tally:
        """So many calls per second, whether or not they are answered."""
        tally, begun, sent = Tally(), time.monotonic(), 0
        tasks: set[asyncio.Task[bool]] = set()
        while (passed := time.monotonic() - begun) < seconds:
            for _ in range(int(per_second * passed) - sent):
                task = asyncio.ensure_future(tally.take(self.decide()))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                sent += 1
            await asyncio.sleep(0.005)
        await asyncio.gather(*tasks)
        return tally

    async def close(self) -> None:
        """Hang up."""
        for channel in self._channels:
            await channel.close()


async def overload(process: Target, seconds: float, times: float) -> dict[str, Any]:
    """What can be done, ten times that, and how it is five seconds after."""
    load = Load(process.address)
    await load.callers(CALM_CALLERS, 1.0)
    usual = await load.callers(CALM_CALLERS, min(5.0, seconds))
    full = await load.callers(MAX_IN_FLIGHT, min(5.0, seconds))
    sustainable = full.codes["OK"] / min(5.0, seconds)
    with beating(process.address) as fared:
        flood = await load.at_rate(sustainable * times, seconds)
        beats = await asyncio.to_thread(fared)
    await asyncio.sleep(min(5.0, seconds))
    after = await load.callers(CALM_CALLERS, min(5.0, seconds))
    await load.close()
    return {
        "sustainable_per_second": round(sustainable),
        "offered_per_second": round(sum(flood.codes.values()) / seconds),
        "goodput_of_sustainable": round(flood.codes["OK"] / seconds / sustainable, 2),
        "codes": dict(flood.codes),
        "seen": flood.seen,
        "refused_without_retry_info": flood.without_retry_info,
        "heartbeats": beats["heartbeats"],
        "completions": beats["completions"],
        "heartbeat_p50_ms": round(median(beats["seconds"]) * 1000, 1),
        "heartbeat_worst_ms": round(beats["seconds"][-1] * 1000, 1),
        "p99_ms_before": usual.p99_ms,
        "p99_ms_after": after.p99_ms,
    }


async def stalled_watchers(process: Target, amount: int) -> dict[str, Any]:
    """Watchers that never read: what each costs the server, and that others are served meanwhile."""
    async with open_channel(process.address) as channel:
        here = clients(channel)
        run = await here.submit(WISH)
        before = process.resident_bytes
        watching: list[Any] = []
        while len(watching) < amount:
            crowd = min(CROWD, amount - len(watching))
            coming = [here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id)) for _ in range(crowd)]
            await asyncio.gather(*(call.initial_metadata() for call in coming))
            watching += coming
        for _ in range(3):
            await here.submit(WISH)
            await asyncio.sleep(1.0)
        cost = (process.resident_bytes - before) / amount
        tally = Tally()
        for _ in range(20):
            await tally.take(here.runs.GetRun(pb.GetRunRequest(run_id=run.id), timeout=scaled(60)))
        for call in watching:
            call.cancel()
        return {"watchers": amount, "bytes_each": round(cost), "reads_meanwhile": dict(tally.codes)}


def main() -> int:
    """Measure, and say what does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.overload")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--times", type=float, default=10.0)
    parser.add_argument("--watchers", type=int, default=5000)
    parser.add_argument("--flood", choices=("all", "runs"), default="all", help="runs: new runs, and no cheap calls")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as data, target(Path(data), "mocked", f"max_live_runs={LIVE_RUNS}") as process:
        taken_in = asyncio.run(new_runs(process, wanted.seconds, wanted.times))
        print(json.dumps(taken_in), flush=True)
    verdicts = {"new_runs": runs_hold(taken_in)}
    with tempfile.TemporaryDirectory() as data, target(Path(data), f"max_in_flight={MAX_IN_FLIGHT}") as process:
        if wanted.flood == "all":
            figures = asyncio.run(overload(process, wanted.seconds, wanted.times))
            print(json.dumps(figures), flush=True)
            verdicts["cheapest_call"] = calls_hold(figures)
            verdicts["no_call_dropped_unseen"] = set(figures["codes"]) <= {"OK", "RESOURCE_EXHAUSTED"}
        watchers = asyncio.run(stalled_watchers(process, wanted.watchers))
        print(json.dumps(watchers), flush=True)
    verdicts["watchers"] = watchers_hold(watchers)
    print(json.dumps({"holds": verdicts}), flush=True)
    return 0 if all(verdicts.values()) else 1


def runs_hold(figures: dict[str, Any]) -> bool:
    """Whether runs that were taken in came to their end as before, the rest was told when to come back, and agents passed."""
    return (
        figures["runs_completed_of_sustainable"] >= 0.8
        and set(figures["new_runs_codes"]) == {"OK", "RESOURCE_EXHAUSTED"}
        and figures["new_runs_refused_without_retry_info"] == 0
        and set(figures["heartbeats"]) == set(figures["completions"]) == {"OK"}
        and figures["new_run_p99_ms_after"] <= 2 * figures["new_run_p99_ms_before"] + 20
    )


def calls_hold(figures: dict[str, Any]) -> bool:
    """Whether as many calls were done as before, agents passed, and what this server refused was told when to come back."""
    return (
        figures["goodput_of_sustainable"] >= 0.8
        and set(figures["codes"]) <= {"OK", "RESOURCE_EXHAUSTED", "CANCELLED"}
        and figures["refused_without_retry_info"] == 0
        and set(figures["heartbeats"]) == set(figures["completions"]) == {"OK"}
        and figures["p99_ms_after"] <= 2 * figures["p99_ms_before"] + 20
    )


def watchers_hold(watchers: dict[str, Any]) -> bool:
    """Whether those who stand still cost little and hold up nobody."""
    return watchers["bytes_each"] <= 256 * 1024 and set(watchers["reads_meanwhile"]) == {"OK"}


if __name__ == "__main__":
    sys.exit(main())
