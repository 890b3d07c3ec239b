"""The same runs with every service in its own process, and with any of them killed right after the runs were submitted."""

import asyncio
from pathlib import Path

import grpc
import pytest

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.scenarios.planes import clients
from tests.scenarios.processes import CONTEXTS, Processes, processes

RUNS = 6


async def test_a_run_completes_with_every_service_in_its_own_process(tmp_path: Path) -> None:
    with processes(tmp_path, POINTSMAN_FULL_MOCK_MODE="1") as group:
        async with grpc.aio.insecure_channel(group.addresses["orchestrator"]) as channel:
            here = clients(channel)
            run = await here.ended((await here.submit()).id)
            assert run.state == runs.RUN_STATE_COMPLETE
            assert [item.task_id for item in (await here.delivery(run.id)).deliverables] == ["T1"]


@pytest.mark.parametrize("context", CONTEXTS)
async def test_runs_survive_the_death_of_any_service_right_after_they_were_submitted(
    tmp_path: Path, context: str
) -> None:
    with processes(tmp_path, POINTSMAN_FULL_MOCK_MODE="1", POINTSMAN_ORCHESTRATOR_LEASE_SECONDS="3") as group:
        async with grpc.aio.insecure_channel(group.addresses["orchestrator"]) as channel:
            here = clients(channel)
            started = [(await here.submit(f"Fix the test in src/a{n}.py, please")).id for n in range(RUNS)]
        await asyncio.to_thread(_kill_and_restart, group, context)
        async with grpc.aio.insecure_channel(group.addresses["orchestrator"]) as channel:
            here = clients(channel)
            ended = await asyncio.gather(*(here.ended(run_id, 50) for run_id in started))
            assert [runs.RunState.Name(run.state) for run in ended] == ["RUN_STATE_COMPLETE"] * RUNS
            for run_id in started:
                page = pb.ListTransitionsRequest(run_id=run_id)
                seqs = [item.seq for item in (await here.runs.ListTransitions(page)).transitions]
                assert seqs == list(range(1, len(seqs) + 1))


def _kill_and_restart(group: Processes, context: str) -> None:
    group.kill(context)
    group.start(context)
