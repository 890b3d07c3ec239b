"""What an agent's token is good for elsewhere: over HTTP it is what it is over gRPC, and other projects stay out of sight."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.api.orchestrator.v1 import agent_pb2, landing_pb2, schedule_pb2
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from pointsman.api.pipeline.v1 import requests_pb2
from pointsman.api.router.v1 import log_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import reading_pb2
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.status import refusal_from
from tests.contract.access.guarded import guarded
from tests.contract.access.loopbacks import loopback
from tests.contract.access.test_matrix import their_entities
from tests.contract.access.test_stream_rights import enqueue_an_entry
from tests.contract.gateway.gateways import Web
from tests.helpers.limits import within
from tests.scenarios.planes import MOCKED, WISH, Plane

AGENTS, RUNS = "/api/v1/orchestrator.AgentService", "/api/v1/orchestrator.OrchestratorService"
LANDING = "/api/v1/orchestrator.LandingService"
FORBIDDEN: Mapping[str, dict[str, Any]] = {
    f"{RUNS}/Submit": {"message": WISH},
    f"{RUNS}/CancelRun": {"run_id": "run_1", "reason": "no"},
    f"{RUNS}/Answer": {"run_id": "run_1", "question_id": "q", "answer": "ANSWER_KIND_ACCEPT"},
    f"{RUNS}/ChangeRequirement": {"run_id": "run_1", "text": "pass"},
    f"{LANDING}/AnswerEntry": {"entry_id": "entry_1", "reply": "ENTRY_REPLY_APPROVE"},
    f"{LANDING}/TakeEntries": {"agent_id": "box-1", "repository_ids": ["r"]},
    "/api/v1/orchestrator.MockService/SetMockPolicy": {},
    **{
        f"{AGENTS}/Poll?{name}": {"agent_id": "box-1", "wanted": {"capabilities": [f"CAPABILITY_{name}"]}}
        for name in ("REVIEW", "VERIFY", "PLAN", "DEBATE")
    },
}


async def test_a_coders_token_is_a_coders_over_http_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        operator = await there.acting_as()
        web = Web(int(there.gateway.address.rpartition(":")[2]), operator)
        token = {"authorization": f"Bearer {mint(Identity.named(there.folder, 'coder/box-1'))}"}
        for number, (path, body) in enumerate(FORBIDDEN.items()):
            answer = await web.post(path.partition("?")[0], {"request_id": f"r{number}", **body}, **token)
            assert (path, answer.status, answer.reason) == (path, 403, "PERMISSION_DENIED")
        polled = {"request_id": "p", "agent_id": "box-1", "wanted": {"capabilities": ["CAPABILITY_CODE"]}}
        assert (await web.post(f"{AGENTS}/Poll", polled, **token)).status == 200, "its own work it may have"
        (listed,) = (await operator.agents.ListAgents(agent_pb2.ListAgentsRequest())).agents
        assert listed.id == "box-1"


def lists(plane: Plane) -> Mapping[str, Any]:
    """Every list and its request."""
    landing: Any = LandingServiceStub(plane.channel)
    schedules: Any = ScheduleServiceStub(plane.channel)
    router: Any = RouterServiceStub(plane.channel)
    return {
        "runs": plane.runs.ListRuns(pb.ListRunsRequest(), metadata=OWN),
        "agents": plane.agents.ListAgents(agent_pb2.ListAgentsRequest(), metadata=OWN),
        "assignments": plane.agents.ListAssignments(agent_pb2.ListAssignmentsRequest(), metadata=OWN),
        "entries": landing.ListEntries(landing_pb2.ListEntriesRequest(), metadata=OWN),
        "predictions": landing.ListPredictions(landing_pb2.ListPredictionsRequest(), metadata=OWN),
        "snapshots": landing.ListSnapshots(landing_pb2.ListSnapshotsRequest(repository_id="repository"), metadata=OWN),
        "schedules": schedules.ListSchedules(schedule_pb2.ListSchedulesRequest(), metadata=OWN),
        "pipelines": plane.pipeline.ListPipelines(requests_pb2.ListPipelinesRequest(), metadata=OWN),
        "workflows": plane.workflow.ListWorkflows(reading_pb2.ListWorkflowsRequest(), metadata=OWN),
        "decisions": router.ListDecisions(log_pb2.ListDecisionsRequest(), metadata=OWN),
    }


OWN = (("pointsman-project", "mine"),)


async def test_an_agent_of_one_project_sees_nothing_of_another_in_lists_streams_and_by_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, mocks=MOCKED) as there:
        theirs = await there.as_principal("them", "operator", "agent", project="theirs")
        foreign = frozenset((await their_entities(theirs)).values())
        await enqueue_an_entry(there)
        spy = await there.as_principal("spy", "agent", "operator", project="mine")
        for name, call in lists(spy).items():
            shown = (await call).SerializeToString()
            assert [one for one in foreign if one.encode() in shown] == [], name
        mine = (await spy.runs.Submit(pb.SubmitRequest(request_id="m", message=WISH), metadata=OWN)).run
        streams = {
            "runs": spy.runs.WatchChanges(pb.WatchChangesRequest(), metadata=OWN),
            "pipelines": spy.pipeline.WatchChanges(requests_pb2.WatchChangesRequest(), metadata=OWN),
            "workflows": spy.workflow.WatchChanges(reading_pb2.WatchChangesRequest(), metadata=OWN),
        }
        for name, stream in streams.items():
            async with within(60):
                first = (await stream.read()).SerializeToString()
            stream.cancel()
            assert [one for one in foreign if one.encode() in first] == [], name
        assert mine.id not in foreign
        await _nothing_by_id(spy)


async def _nothing_by_id(spy: Plane) -> None:
    """The entry is in the project `local`."""
    landing: Any = LandingServiceStub(spy.channel)
    asked = {
        "get": landing.GetEntry(landing_pb2.GetEntryRequest(entry_id="entry_1"), metadata=OWN),
        "cancel": landing.CancelEntry(landing_pb2.CancelEntryRequest(request_id="c", entry_id="entry_1"), metadata=OWN),
        "answer": landing.AnswerEntry(
            landing_pb2.AnswerEntryRequest(request_id="a", entry_id="entry_1", reply=landing_pb2.ENTRY_REPLY_APPROVE),
            metadata=OWN,
        ),
        "watch": landing.WatchEntry(landing_pb2.WatchEntryRequest(entry_id="entry_1"), metadata=OWN).read(),
    }
    for name, call in asked.items():
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call
        assert (name, refusal_from(refused.value).reason) == (name, Reason.NOT_FOUND)
