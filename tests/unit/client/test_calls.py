"""A call happens once, whatever the network does; a watch has neither gap nor repeat."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as Packed
from google.rpc import error_details_pb2, status_pb2

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.handoff.v1.handoff_pb2 import ArtifactRef
from pointsman.api.orchestrator.v1 import artifact_pb2, orchestrator_pb2
from pointsman.api.orchestrator.v1.artifact_pb2_grpc import (
    ArtifactServiceServicer,
    add_ArtifactServiceServicer_to_server,
)
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import (
    OrchestratorServiceServicer,
    add_OrchestratorServiceServicer_to_server,
)
from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.client import Client, NotFound, StateForbids, Terms, Unavailable, WrongContent, connect
from pointsman.client.errors import DETAILS_KEY


def details(code: grpc.StatusCode, reason: str, metadata: dict[str, str]) -> tuple[tuple[str, bytes], ...]:
    packed = Packed()
    packed.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="pointsman", metadata=metadata))
    status = status_pb2.Status(code=code.value[0], details=[packed])
    return ((DETAILS_KEY, status.SerializeToString()),)


class FailingOrchestrator(OrchestratorServiceServicer):
    """Fails as often as it is told to, and remembers what it was asked."""

    def __init__(self, failures: list[grpc.StatusCode]) -> None:
        self.failures = failures
        self.asked: list[Any] = []
        self.metadata: list[dict[str, str]] = []

    async def _fail_first(self, context: Any) -> None:
        self.metadata.append(dict(context.invocation_metadata()))
        if self.failures:
            code = self.failures.pop(0)
            reason = "STATE_FORBIDS" if code is grpc.StatusCode.FAILED_PRECONDITION else ""
            await context.abort(code, "no", details(code, reason, {"state": "COMPLETE"}))

    async def CancelRun(self, request: Any, context: Any) -> orchestrator_pb2.CancelRunResponse:
        self.asked.append(request)
        await self._fail_first(context)
        return orchestrator_pb2.CancelRunResponse(run=Run(id=request.run_id))

    async def ListRuns(self, request: Any, context: Any) -> orchestrator_pb2.ListRunsResponse:
        place = int(request.page.page_token or 0)
        token = str(place + 1) if place < 2 else ""
        return orchestrator_pb2.ListRunsResponse(runs=[Run(id=f"run{place}")], next_page_token=token)

    async def WatchRun(self, request: Any, context: Any) -> AsyncIterator[orchestrator_pb2.WatchRunResponse]:
        self.asked.append(request)
        if not request.after_seq:  # two in one message
            yield orchestrator_pb2.WatchRunResponse(transition=Transition(seq=1), more=[Transition(seq=2)])
        for seq in range(max(request.after_seq, 2) + 1, 7):
            if self.failures and seq == (3 if len(self.failures) == 2 else 5):
                await self._fail_first(context)
            yield orchestrator_pb2.WatchRunResponse(transition=Transition(seq=seq))


def orchestrator_that(fails_with: list[grpc.StatusCode]) -> FailingOrchestrator:
    return FailingOrchestrator(fails_with)  # type: ignore[abstract]


class Artifacts(ArtifactServiceServicer):
    """Gives out what it has, right or wrong."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def Put(self, request_iterator: Any, context: Any) -> artifact_pb2.PutResponse:
        body, named = bytearray(), ArtifactRef()
        async for request in request_iterator:
            named = request.start.artifact if request.HasField("start") else named
            body += request.chunk
        self.body = bytes(body)
        return artifact_pb2.PutResponse(artifact=named)

    async def Get(self, request: Any, context: Any) -> AsyncIterator[artifact_pb2.GetResponse]:
        for start in range(0, len(self.body), 1000):
            yield artifact_pb2.GetResponse(chunk=self.body[start : start + 1000])


@asynccontextmanager
async def serving(
    orchestrator: FailingOrchestrator, artifacts: Artifacts | None = None, **terms: Any
) -> AsyncIterator[Client]:
    server = grpc.aio.server()
    add_OrchestratorServiceServicer_to_server(orchestrator, server)
    add_ArtifactServiceServicer_to_server(artifacts or Artifacts(b""), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with connect(f"127.0.0.1:{port}", Terms(**terms)) as client:
            yield client
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED, grpc.StatusCode.RESOURCE_EXHAUSTED]
)
async def test_a_mutation_is_tried_again_with_the_same_request_id(code: grpc.StatusCode) -> None:
    orchestrator = orchestrator_that([code, code])
    async with serving(orchestrator) as client:
        assert (await client.runs.cancel("r1")).id == "r1"
    assert len(orchestrator.asked) == 3
    assert len({request.request_id for request in orchestrator.asked}) == 1


async def test_two_mutations_have_different_request_ids() -> None:
    orchestrator = orchestrator_that([])
    async with serving(orchestrator) as client:
        await client.runs.cancel("r1")
        await client.runs.cancel("r1")
    assert len({request.request_id for request in orchestrator.asked}) == 2


async def test_a_refusal_is_raised_at_once_with_its_reason_and_metadata() -> None:
    orchestrator = orchestrator_that([grpc.StatusCode.FAILED_PRECONDITION])
    async with serving(orchestrator) as client:
        with pytest.raises(StateForbids) as caught:
            await client.runs.cancel("r1")
    assert (caught.value.reason, caught.value.metadata) == ("STATE_FORBIDS", {"state": "COMPLETE"})
    assert len(orchestrator.asked) == 1


async def test_a_missing_run_is_told_apart() -> None:
    async with serving(orchestrator_that([grpc.StatusCode.NOT_FOUND])) as client:
        with pytest.raises(NotFound):
            await client.runs.cancel("r1")


async def test_patience_ends() -> None:
    orchestrator = orchestrator_that([grpc.StatusCode.UNAVAILABLE] * 100)
    async with serving(orchestrator, patience_seconds=0.3) as client:
        with pytest.raises(Unavailable):
            await client.runs.cancel("r1")


async def test_project_token_and_trace_travel_with_every_call() -> None:
    orchestrator = orchestrator_that([])
    trace = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
    async with serving(orchestrator, project="p", token="t", traceparent=trace) as client:
        await client.runs.cancel("r1")
    sent = orchestrator.metadata[0]
    assert (sent["pointsman-project"], sent["authorization"], sent["traceparent"]) == ("p", "Bearer t", trace)


async def test_a_list_is_read_to_its_last_page() -> None:
    async with serving(orchestrator_that([])) as client:
        assert [run.id async for run in client.runs.all()] == ["run0", "run1", "run2"]


async def test_a_broken_watch_goes_on_without_gap_or_repeat() -> None:
    orchestrator = orchestrator_that([grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED])
    async with serving(orchestrator) as client:
        seen = [transition.seq async for transition in client.runs.watch("r1")]
    assert seen == [1, 2, 3, 4, 5, 6]
    assert [request.after_seq for request in orchestrator.asked] == [0, 2, 4]


async def test_an_artifact_comes_back_as_it_was_put() -> None:
    body = bytes(range(256)) * 10_000
    async with serving(orchestrator_that([]), Artifacts(b"")) as client:
        stored = await client.artifacts.put(body, "x/y")
        assert await client.artifacts.get(stored) == body


async def test_an_artifact_with_another_content_than_its_name_is_refused() -> None:
    async with serving(orchestrator_that([]), Artifacts(b"other")) as client:
        with pytest.raises(WrongContent):
            await client.artifacts.get(ArtifactRef(sha256="0" * 64))
