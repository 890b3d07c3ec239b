"""What gRPC itself keeps waiting before anybody has looked at it: agents' calls do not stand behind new work there."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import grpc

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.rpc.server import MAX_PENDING
from tests.robustness.abuse.target import target
from tests.robustness.overload.__main__ import Load
from tests.robustness.overload.heartbeats import Agent

FLOOD = MAX_PENDING + 2_000
FIRST = 50
STEPS = 4


async def test_heartbeats_and_a_completion_pass_a_queue_of_new_work_that_is_full(tmp_path: Path) -> None:
    """The process stands still while more calls come than gRPC lets wait; an agent comes after all of them."""
    with target(tmp_path, "max_in_flight=16") as process:
        load, agent, flood = Load(process.address), Agent(process.address, LOCAL), _Flood()
        await asyncio.gather(*(load.decide() for _ in range(8)))
        await asyncio.to_thread(agent.begin)
        os.kill(process.pid, signal.SIGSTOP)
        flooding = asyncio.gather(*(flood.take(load.decide()) for _ in range(FLOOD)))
        await asyncio.sleep(1.0)
        os.kill(process.pid, signal.SIGCONT)
        await flood.begun.wait()
        for number in range(STEPS):
            await asyncio.to_thread(agent.step, number)
        left = FLOOD - len(flood.answered)
        await flooding
        assert agent.codes == {"heartbeats": {"OK": 3}, "completions": {"OK": 1}}
        assert left > MAX_PENDING // 4, f"only {left} of {FLOOD} were still to be served when the agent had been"
        assert set(flood.answered) <= {"OK", "RESOURCE_EXHAUSTED", "CANCELLED"}
        await load.close()


class _Flood:
    """The codes of the answers so far, and the news that there are some which gRPC did not give by itself."""

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.begun = asyncio.Event()

    async def take(self, call: Any) -> None:
        """Wait for one call."""
        try:
            await call
            code = "OK"
        except grpc.aio.AioRpcError as error:
            code = error.code().name
        self.answered.append(code)
        if code != "CANCELLED" and len(self.answered) >= FIRST:
            self.begun.set()
