"""Runs that are hard on a trace, for the recording collector and for a real back end: killed services, days of waiting."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from secrets import randbelow, token_hex

import grpc

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import PeerSettings, ServerSettings, StoreSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import Service, start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.orchestrator.__main__ import build_on as build_orchestrator
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.pipeline.__main__ import build_on as build_pipeline
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.router.__main__ import build_on as build_router
from pointsman.services.router.config import RouterSettings
from pointsman.services.workflow.__main__ import build_on as build_workflow
from pointsman.services.workflow.config import WorkflowSettings
from tests.helpers.eventually import eventually
from tests.helpers.loopback import open_as
from tests.scenarios.commands import running
from tests.scenarios.planes import MOCKED, WISH, Plane, clients
from tests.scenarios.processes import CONTEXTS, Processes, mocked, processes

PATIENCE_SECONDS = 100.0
QUICKLY = {"OTEL_BSP_SCHEDULE_DELAY": "100"}


@dataclass(frozen=True)
class Traced:
    """A run that has left its trace."""

    run_id: str
    trace_id: str
    state: str
    moves_since: int = 0
    """How often it has moved since its service was killed."""


class ShiftedClock:
    """The machine's clock, moved on by as much as the test says."""

    def __init__(self) -> None:
        self._shift = timedelta()

    def now(self) -> datetime:
        """The shifted time."""
        return SystemClock().now() + self._shift

    def advance(self, **parts: float) -> None:
        """Let days pass at once."""
        self._shift += timedelta(**parts)


@asynccontextmanager
async def killed_services(data: Path, **environment: str) -> AsyncIterator[Sequence[Traced]]:
    """A run for each of the four services, which is killed in its middle and started again; they go on to the end."""
    with processes(data, **mocked(), **QUICKLY, **environment) as group:
        started, mark = {}, token_hex(4)
        for number, context in enumerate(CONTEXTS):
            request = pb.SubmitRequest(
                request_id=f"{mark}-{number}", message=f"Fix the failing test in src/a{number}.py"
            )
            async with group.channel() as channel:
                here = clients(channel)
                run_id = await eventually(partial(_submitted, here, request), PATIENCE_SECONDS)
                started[run_id] = await eventually(partial(_moves_on_its_way, here, run_id), PATIENCE_SECONDS)
            await asyncio.to_thread(_kill_and_restart, group, context)
        async with group.channel() as channel:
            yield [await _at_its_end(clients(channel), run_id, before) for run_id, before in started.items()]


@asynccontextmanager
async def killed_process(data: Path, **environment: str) -> AsyncIterator[Sequence[Traced]]:
    """Two runs, one just begun and one on its way, while the process with all four services is killed."""
    with _up(data, environment) as address:
        async with open_as(data, address) as channel:
            here = _with_new_requests(channel)
            begun = await here.submit("Fix the failing test in src/one.py")
            await eventually(partial(_is_on_its_way, here, begun.id), PATIENCE_SECONDS)
            started = [begun.id, (await here.submit("Fix the failing test in src/two.py")).id]
    with _up(data, environment) as address:
        async with open_as(data, address) as channel:
            here = clients(channel)
            yield [_traced(await here.ended(run_id, PATIENCE_SECONDS)) for run_id in started]


@contextmanager
def _up(data: Path, environment: dict[str, str]) -> Iterator[str]:
    """All services in a process that is killed at the end of the block; its address."""
    with running("up", "--port", "0", "--data", str(data), **mocked(), **QUICKLY, **environment) as process:
        yield process.line_with(" up at ").split()[4]


def _with_new_requests(channel: grpc.aio.Channel) -> Plane:
    """Clients whose request ids nobody had before: runs, and so their traces, are named after them."""
    here = clients(channel)
    here.numbers = count(randbelow(10**9) * 1000)
    return here


async def _is_on_its_way(here: Plane, run_id: str) -> bool:
    return await _moves_on_its_way(here, run_id) > 0


async def _moves_on_its_way(here: Plane, run_id: str) -> int:
    """How often the run has moved, once that is more than at its beginning."""
    moves = len(await here.moves(run_id))
    return moves if moves > 5 else 0


async def _at_its_end(here: Plane, run_id: str, moves_before: int) -> Traced:
    traced = _traced(await here.ended(run_id, PATIENCE_SECONDS))
    return replace(traced, moves_since=len(await here.moves(run_id)) - moves_before)


@asynccontextmanager
async def two_days_of_waiting(data: Path) -> AsyncIterator[Traced]:
    """A run that asks a person, who answers after two days and three restarts; it goes on to the block's end."""
    clock = ShiftedClock()
    async with _plane(data, clock) as here:
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_NO_EVIDENCE)
        asked = await here.asked((await here.submit(WISH)).id, PATIENCE_SECONDS)
    for _ in range(2):
        clock.advance(hours=16)
        async with _plane(data, clock) as here:
            assert (await here.get(asked.id)).question.id == asked.question.id
    clock.advance(hours=16)
    async with _plane(data, clock) as here:
        await here.answer(asked, runs.ANSWER_KIND_CLARIFIED, text=WISH)
        yield _traced(await here.ended(asked.id, PATIENCE_SECONDS))


@asynccontextmanager
async def _plane(data: Path, clock: ShiftedClock) -> AsyncIterator[Plane]:
    stores = StoreSettings(data=data)

    def build(address: str) -> Sequence[Service]:
        stored = {name: Database(stores.url_for(name), name, clock) for name in CONTEXTS}
        settings = OrchestratorSettings(wall_clock_seconds=7 * 86_400)
        return [
            build_router(stored["router"], RouterSettings()),
            build_workflow(stored["workflow"], WorkflowSettings()),
            build_pipeline(stored["pipeline"], PipelineSettings()),
            build_orchestrator(stored["orchestrator"], settings, PeerSettings().all_at(address), MOCKED),
        ]

    running = await start(build, ServerSettings(port=0, drain_seconds=0.2))
    channel = open_channel(running.address)
    try:
        here = _with_new_requests(channel)
        await here.are_there()
        yield here
    finally:
        await channel.close()
        await running.stop()


async def _submitted(here: Plane, request: pb.SubmitRequest) -> str:
    """The run's id; nothing while a peer that was just started again is not found yet."""
    try:
        answer = await here.runs.Submit(request)
    except grpc.aio.AioRpcError as error:
        if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return ""
        raise
    return str(answer.run.id)


def _traced(run: runs.Run) -> Traced:
    return Traced(run.id, run.traceparent[3:35], runs.RunState.Name(run.state).removeprefix("RUN_STATE_"))


def _kill_and_restart(group: Processes, context: str) -> None:
    group.kill(context)
    group.start(context)
