"""The pipeline service in a test: a real server on a real database, called over gRPC; and proof that its rows are sound."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import pipeline_pb2_grpc, state_pb2
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.audit.pipelines import PipelineProof
from pointsman.services.chassis.core.clock import Clock, from_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.engine.audit import Auditor
from pointsman.services.chassis.engine.journal import broken_links
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.pipeline.__main__ import build_on
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.pipeline.domain.enums import EventName
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.transitions import TRANSITIONS
from pointsman.services.pipeline.servicer import PipelineServicer
from pointsman.services.pipeline.store import PipelineStore
from tests.helpers.statuses import status_of_call

_numbers = itertools.count(1)

PASS = rt.Route(verdict=rt.VERDICT_PASS)
FAIL = rt.Route(verdict=rt.VERDICT_FAIL, severity=rt.SEVERITY_HIGH, hint="broken")


def new() -> str:
    """A request id that nobody used."""
    return f"request-{next(_numbers)}"


@dataclass(frozen=True, slots=True)
class Client:
    """A caller of the service, with shorter words for what tests do often."""

    stub: pipeline_pb2_grpc.PipelineServiceStub
    store: PipelineStore

    async def start(self, template: str = "quick-dev", **fields: Any) -> pb.StartPipelineResponse:
        """Begin a pipeline whose stages are delegated at once."""
        fields.setdefault("auto_delegate", pb.AutoDelegate(agent_id="agent"))
        if "dag" not in fields:
            fields["template"] = template
        return await self.stub.StartPipeline(pb.StartPipelineRequest(request_id=new(), **fields))

    async def complete(
        self, pipeline_id: str, delegation_id: str, route: rt.Route | None = PASS, **fields: Any
    ) -> pb.CompleteStageResponse:
        """Complete a delegation; the next stages are delegated at once."""
        fields.setdefault("auto_delegate", pb.AutoDelegate(agent_id="agent"))
        fields.setdefault("request_id", new())
        request = pb.CompleteStageRequest(
            pipeline_id=pipeline_id, delegation_id=delegation_id, agent_id="agent", route=route, **fields
        )
        return await self.stub.CompleteStage(request)

    async def get(self, pipeline_id: str) -> state_pb2.Pipeline:
        """A pipeline as it stands."""
        return (await self.stub.GetPipeline(rq.GetPipelineRequest(pipeline_id=pipeline_id))).pipeline

    async def check(self, pipeline_id: str, project: str = "local") -> list[str]:
        """Prove that the journal has no gap, its chain holds and the state is its fold; the names of its events."""
        stored = await self.store.get(project, pipeline_id)
        rows = await self.store.journal.page(project, ("pipeline", pipeline_id), 0, 100_000)
        assert broken_links(rows) == []
        state = None
        for row in rows:
            data = from_json(row.payload, MACHINE.events[row.event])
            assert (row.source, row.target) in TRANSITIONS[EventName(row.event)]
            state = MACHINE.apply(state, Event(row.event, row.source, row.target, data), from_us(row.at_us))
        assert state is not None
        assert state.head == stored.pipeline.head
        assert state.stages == stored.pipeline.stages
        assert state.graph.nodes == stored.pipeline.graph.nodes
        assert stored.seq == len(rows)
        return [row.event for row in rows]


@asynccontextmanager
async def served(database_url: str, clock: Clock | None = None) -> AsyncIterator[Client]:
    """The service on a database, as one replica."""
    settings = PipelineSettings(timer_poll_seconds=0.05)
    service = build_on(Database(database_url, "pipeline", clock), settings)
    running = await start(lambda _address: [service], ServerSettings(port=0))
    servicer = service.servicers[0][1]
    assert isinstance(servicer, PipelineServicer)
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield Client(pipeline_pb2_grpc.PipelineServiceStub(channel), servicer.pipelines)
        store = servicer.pipelines.store
        auditor = Auditor(store, {"pipeline": PipelineProof(store)})
        assert await store.database.read(lambda connection: list(auditor.violations(connection))) == []
    finally:
        await running.stop()


@asynccontextmanager
async def refused(reason: str, code: grpc.StatusCode) -> AsyncIterator[error_details_pb2.ErrorInfo]:
    """The block must be refused for this reason with this code; its details."""
    info = error_details_pb2.ErrorInfo()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        yield info
    status = status_of_call(caught.value)
    assert status is not None
    found = [detail for detail in status.details if detail.Unpack(info)]
    assert found
    assert (info.reason, caught.value.code()) == (reason, code), caught.value.details()
