"""The pipeline service as a process that is killed while stages are completed and barriers wait: nothing is lost."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled

PIPELINES = 24
KILLS = 2
AUTO = pb.AutoDelegate(agent_id="agent")
PASS = rt.Route(verdict=rt.VERDICT_PASS)


class Callers:
    """Clients that ask again with the same request_id when the service is away."""

    def __init__(self) -> None:
        self.address = ""
        self.answers = 0

    async def call(self, method: str, request: Any) -> Any:
        """Ask until there is an answer."""
        while True:
            async with grpc.aio.insecure_channel(self.address) as channel:
                try:
                    answer = await getattr(pipeline_pb2_grpc.PipelineServiceStub(channel), method)(
                        request, timeout=scaled(5)
                    )
                except grpc.aio.AioRpcError as error:
                    if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                        raise
                else:
                    self.answers += 1
                    return answer
            await asyncio.sleep(0.05)

    async def drive(self, name: str) -> int:
        """Take a standard pipeline to its end; the state it ended in."""
        request = pb.StartPipelineRequest(request_id=name, pipeline_id=name, template="standard", auto_delegate=AUTO)
        waiting = list((await self.call("StartPipeline", request)).next)
        state = 0
        while waiting:
            done = waiting.pop(0).delegation_id
            answer = await self.call(
                "CompleteStage",
                pb.CompleteStageRequest(
                    request_id=f"{name}-{done}",
                    pipeline_id=name,
                    delegation_id=done,
                    agent_id="agent",
                    route=PASS,
                    auto_delegate=AUTO,
                ),
            )
            waiting += answer.next
            state = answer.state
        return state

    async def forsake(self) -> None:
        """Start a pipeline whose barrier waits for somebody who never comes."""
        await self.call(
            "StartPipeline",
            pb.StartPipelineRequest(
                request_id="alone",
                pipeline_id="alone",
                dag=sp.Dag(
                    nodes=[
                        sp.Node(stage="REVIEW", barrier_group="both", next=["DOCS"]),
                        sp.Node(stage="TEST", barrier_group="both", next=["DOCS"]),
                        sp.Node(stage="DOCS"),
                    ]
                ),
                barrier_timeout=Duration(seconds=1),
            ),
        )


class ServiceProcess:
    """The service in a process of its own, on a data directory, at an address that stays."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._process: subprocess.Popen[str] | None = None
        self.address = "127.0.0.1:0"

    def start(self) -> None:
        """Start it, and wait until it serves."""
        port = self.address.rpartition(":")[2]
        environment = {**os.environ, "POINTSMAN_DATA": str(self._data), "POINTSMAN_SERVER_PORT": port}
        command = [sys.executable, "-m", "pointsman.services.pipeline"]
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().split()[-1]

    def kill(self) -> None:
        """It is gone at once, without a word."""
        assert self._process is not None
        with self._process as process:
            process.kill()


async def _run(service: ServiceProcess) -> None:
    callers = Callers()
    callers.address = service.address
    await callers.forsake()
    driving = [asyncio.create_task(callers.drive(f"p{number}")) for number in range(PIPELINES)]
    for number in range(KILLS):
        await _answered(callers, (number + 1) * PIPELINES * 2)
        await asyncio.to_thread(service.kill)
        await asyncio.to_thread(service.start)
    assert await asyncio.gather(*driving) == [sp.PIPELINE_STATE_COMPLETED] * PIPELINES
    await _check(callers)


async def _answered(callers: Callers, count: int) -> None:
    async def reached() -> bool:
        return callers.answers >= count

    await eventually(reached, 60)


async def _check(callers: Callers) -> None:
    """Every stage of every pipeline completed once; the forsaken barrier timed out, with no client near it."""
    async with grpc.aio.insecure_channel(callers.address) as channel:
        stub = pipeline_pb2_grpc.PipelineServiceStub(channel)
        for number in range(PIPELINES):
            watched = stub.WatchPipeline(rq.WatchPipelineRequest(pipeline_id=f"p{number}"))
            events = [item.transition.event async for item in watched]
            assert events.count("STAGE_COMPLETED") == events.count("STAGE_DELEGATED") == 6
            assert events.count("BARRIER_RESOLVED") == 1

        async def went_on() -> list[str]:
            shown = (await stub.GetPipeline(rq.GetPipelineRequest(pipeline_id="alone"))).pipeline
            return [item.stage for item in shown.pending_delegations if item.stage == "DOCS"]

        assert await eventually(went_on) == ["DOCS"]


@pytest.mark.timeout(180)
def test_a_service_that_is_killed_twice_completes_every_stage_once(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path)
    service.start()
    try:
        asyncio.run(_run(service))
    finally:
        service.kill()
