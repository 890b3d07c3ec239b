"""The router in a test: a real server on a real database, called over gRPC; and proof that its rows are sound."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2

from pointsman.api.router.v1 import decision_pb2, outcome_pb2, router_pb2_grpc
from pointsman.services.chassis.core.clock import Clock, from_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.engine.journal import broken_links
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.router.__main__ import build_on
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.servicer import RouterServicer
from pointsman.services.router.store import RouterStore
from tests.helpers.statuses import status_of_call

_numbers = itertools.count(1)


def new() -> str:
    """A request id that nobody used."""
    return f"request-{next(_numbers)}"


@dataclass(frozen=True, slots=True)
class Client:
    """A caller of the service, with shorter words for what tests do often."""

    stub: router_pb2_grpc.RouterServiceStub
    store: RouterStore
    address: str

    async def classify(self, text: str, **fields: Any) -> decision_pb2.RoutingDecision:
        """Decide one message."""
        message = decision_pb2.Message(text=text, mode_override=fields.pop("mode_override", 0))
        fields.setdefault("request_id", new())
        return (await self.stub.Classify(decision_pb2.ClassifyRequest(message=message, **fields))).decision

    async def report(self, decision_id: str, outcome: int, error: str = "") -> outcome_pb2.ReportOutcomeResponse:
        """Tell how a task went."""
        request: Any = outcome_pb2.ReportOutcomeRequest(request_id=new(), decision_id=decision_id, error_text=error)
        request.outcome = outcome
        answer: outcome_pb2.ReportOutcomeResponse = await self.stub.ReportOutcome(request)
        return answer

    async def check(self, kind: str, entity_id: str, project: str = "local") -> list[str]:
        """Prove that an entity's journal has no gap and its chain holds; the names of its events."""
        machine = next(machine for machine in self.store.store.machines if machine.kind == kind)
        rows = await self.store.journal.page(project, (kind, entity_id), 0, 100_000)
        assert broken_links(rows) == []
        state = None
        for row in rows:
            data = from_json(row.payload, machine.events[row.event])
            state = machine.apply(state, Event(row.event, row.source, row.target, data), from_us(row.at_us))
        assert state is not None
        return [row.event for row in rows]


@asynccontextmanager
async def served(database_url: str, clock: Clock | None = None, hard_routing: bool = True) -> AsyncIterator[Client]:
    """The service on a database, as one replica."""
    service = build_on(Database(database_url, "router", clock), RouterSettings(hard_routing=hard_routing))
    running = await start(lambda _address: [service], ServerSettings(port=0))
    servicer = service.servicers[0][1]
    assert isinstance(servicer, RouterServicer)
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield Client(router_pb2_grpc.RouterServiceStub(channel), servicer.router, running.address)
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
