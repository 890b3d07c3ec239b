"""Every RPC × every role × own and foreign project, over the wire, against a table that is written down here."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import schedule_pb2 as schedule
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from pointsman.api.pipeline.v1 import requests_pb2 as pipeline
from pointsman.api.router.v1 import log_pb2 as router_log
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import reading_pb2 as workflow
from pointsman.services.chassis.rpc.status import refusal_from
from tests.contract.access.guarded import guarded
from tests.contract.chassis.test_access import METHODS
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.statuses import status_of_call
from tests.robustness.abuse.shapes import Known, valid_request
from tests.scenarios.planes import WISH, Plane

MAY = {
    "viewer": {"viewer", "operator", "agent", "service", "admin"},
    "operator": {"operator", "service", "admin"},
    "agent": {"agent", "service", "admin"},
    "service": {"service", "admin"},
    "admin": {"admin"},
}
"""The role that is the least for an RPC, and the roles that include it."""
LEAST = {
    "AgentService": {
        "viewer": "ListAgents ListAssignments WatchOutput",
        "agent": "Poll Heartbeat Complete Fail RequestPermission",
    },
    "ArtifactService": {"viewer": "Get", "agent": "Put"},
    "LandingService": {
        "viewer": "GetEntry ListEntries WatchEntry ListPredictions",
        "operator": "Enqueue AnswerEntry CancelEntry WakeForge",
        "agent": "TakeEntries KeepQueue ReportEntry PutSnapshot ListSnapshots PutPredictions WaitForForge",
    },
    "MockService": {"viewer": "GetMockPolicy", "admin": "SetMockPolicy"},
    "OrchestratorService": {
        "viewer": "GetRun ListRuns CountRuns ListProjects WatchRun WatchChanges ListTransitions GetDelivery GetEvidence "
        "GetMachine",
        "operator": "Submit ChangeRequirement Answer CancelRun LabelRun Rerun ChangeRuns",
    },
    "PipelineService": {
        "viewer": "Classify GetPipeline ListPipelines WatchPipeline WatchChanges GetReflection ListTemplates ParseRoute "
        "ExportState",
        "operator": "StartPipeline DelegateStage CompleteStage SkipStage RestartFrom CancelPipeline PutContext "
        "GetContext ImportState CleanUp",
        "service": "ForgetRun",
    },
    "RouterService": {
        "viewer": "Preview GetPolicy ListDecisions GetStats ExportLog",
        "operator": "Classify BatchClassify ReportOutcome ResolveDebate RouteThinking",
        "service": "ForgetRun",
        "admin": "SetPolicy",
    },
    "ScheduleService": {
        "viewer": "GetSchedule ListSchedules",
        "operator": "CreateSchedule PauseSchedule ResumeSchedule TriggerSchedule DeleteSchedule",
    },
    "WorkflowService": {
        "viewer": "GetWorkflow ListWorkflows ListResumable WatchWorkflow WatchChanges ClassifyDependencies ExportState "
        "ExportTasks",
        "operator": "UpsertPlan Execute NextTasks ReleaseTask CompleteTask FailTask RetryTask SkipTask SettleTasks Pause "
        "Resume Unblock CancelPlan MergeConstraints RecordVerification WaiveConstraint RecordUsage Audit ImportState "
        "ImportTasks",
        "service": "ForgetRun",
    },
}
TABLE = {
    f"{service}/{name}": role
    for service, roles in LEAST.items()
    for role, names in roles.items()
    for name in names.split()
}
PROJECT, OWN = "pointsman-project", "local"
PATIENCE_SECONDS = 30.0
STREAM_SECONDS = 3.0
"""How long a stream that may be read is read: one that has nothing to say goes on until somebody ends it."""
ENDLESS = {name for name in TABLE if name.endswith("/WatchChanges")}


def short(name: str) -> str:
    """Service and method, without the package."""
    return name.rpartition(".")[2]


ENDLESS_CALLS = [one for one in METHODS if short(one[0]) in ENDLESS]
"""To be made at the same time by all roles, since each is waited for."""
SHORT_CALLS = [one for one in METHODS if short(one[0]) not in ENDLESS]


async def outcome(channel: grpc.aio.Channel, name: str, method: Any, request: bytes, project: str) -> tuple[str, bytes]:
    """The reason of a refusal with its status, or OK with what came back; a stream that goes on is OK too."""
    metadata = ((PROJECT, project),)
    try:
        return "OK", await _answer(channel, name, method, (request, metadata))
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and short(name) in ENDLESS:
            return "OK", b""
        shown = f"{error.code()} {error.details()} ".encode()
        return str(refusal_from(error).reason), shown + status_of_call(error).SerializeToString()


async def _answer(channel: Any, name: str, method: Any, terms: tuple[bytes, Any]) -> bytes:
    request, metadata = terms
    if method.client_streaming and method.server_streaming:
        conversing = channel.stream_stream(name)(iter([request]), metadata=metadata, timeout=scaled(PATIENCE_SECONDS))
        return b"".join([part async for part in conversing])
    if method.server_streaming:
        seconds = STREAM_SECONDS if short(name) in ENDLESS and dict(metadata)[PROJECT] == OWN else PATIENCE_SECONDS
        call = channel.unary_stream(name)(request, metadata=metadata, timeout=scaled(seconds))
        return b"".join([part async for part in call])
    if method.client_streaming:
        call = channel.stream_unary(name)(iter([request]), metadata=metadata, timeout=scaled(PATIENCE_SECONDS))
    else:
        call = channel.unary_unary(name)(request, metadata=metadata, timeout=scaled(PATIENCE_SECONDS))
    answer: bytes = await call
    return answer


def test_the_table_has_every_rpc_once() -> None:
    assert sorted(TABLE) == sorted(short(name) for name, _ in METHODS)
    assert len(TABLE) > 80


async def test_each_role_may_call_just_what_the_table_says_and_nothing_in_a_foreign_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[tuple[str, str, str, str]] = []
    async with guarded(tmp_path, monkeypatch) as there:

        async def check(channel: grpc.aio.Channel, role: str, name: str, method: Any) -> None:
            own, _ = await outcome(channel, name, method, b"", OWN)
            if (own == "PERMISSION_DENIED") is (role in MAY[TABLE[short(name)]]) or own == "UNAUTHENTICATED":
                wrong.append((short(name), role, "own", own))
            foreign, _ = await outcome(channel, name, method, b"", "elsewhere")
            if foreign != "PERMISSION_DENIED":
                wrong.append((short(name), role, "foreign", foreign))

        channels = {role: (await there.as_principal(f"one-{role}", role)).channel for role in MAY}
        for role, channel in channels.items():
            await asyncio.gather(*(check(channel, role, name, method) for name, method in SHORT_CALLS))
        waiting = (check(channel, role, *one) for role, channel in channels.items() for one in ENDLESS_CALLS)
        await asyncio.gather(*waiting)
    assert wrong == []


NAMES_OF_ENTITIES = {
    "run_id",
    "pipeline_id",
    "workflow_id",
    "decision_id",
    "schedule_id",
    "sha256",
    "leases",
    "completions",
    "failures",
}
MAKERS = {
    "PipelineService/StartPipeline", "PipelineService/ImportState", "WorkflowService/UpsertPlan",
    "WorkflowService/ImportState", "WorkflowService/ImportTasks", "RouterService/Classify",
    "RouterService/BatchClassify", "RouterService/RouteThinking",
}  # fmt: skip
"""What they name is not looked for: it is made, or is only written down; `test_access_makers.py` compares these."""
ANSWERED = {
    "AgentService/ListAssignments", "PipelineService/ListPipelines", "RouterService/ListDecisions",
    "WorkflowService/ListWorkflows", "PipelineService/ForgetRun", "RouterService/ForgetRun",
    "WorkflowService/ForgetRun", "AgentService/Heartbeat", "AgentService/Complete", "AgentService/Fail",
    "LandingService/ListEntries", "LandingService/ListPredictions",
}  # fmt: skip
"""They find nothing, and say so in an answer: lists, what is forgotten already, and leases, each with an outcome."""
READERS = (
    "OrchestratorService/GetRun",
    "PipelineService/GetPipeline",
    "WorkflowService/GetWorkflow",
    "ArtifactService/Get",
    "ScheduleService/GetSchedule",
)


async def their_entities(theirs: Plane) -> dict[str, str]:
    """One of each kind of entity in project theirs, by the name of the field that names it."""
    metadata = (("pointsman-project", "theirs"),)
    run = (await theirs.runs.Submit(pb.SubmitRequest(request_id="r", message=WISH), metadata=metadata)).run

    async def found() -> str:
        listed = await theirs.pipeline.ListPipelines(pipeline.ListPipelinesRequest(run_id=run.id), metadata=metadata)
        return str(listed.pipelines[0].pipeline_id) if listed.pipelines else ""

    pipeline_id = await eventually(found, 30)
    plans = await theirs.workflow.ListWorkflows(workflow.ListWorkflowsRequest(run_id=run.id), metadata=metadata)
    router: Any = RouterServiceStub(theirs.channel)
    decisions = await router.ListDecisions(router_log.ListDecisionsRequest(run_id=run.id), metadata=metadata)
    body = b"a body of theirs"
    digest = hashlib.sha256(body).hexdigest()

    async def parts() -> AsyncIterator[artifact.PutRequest]:
        named = handoff.ArtifactRef(sha256=digest, size_bytes=len(body), media_type="text/plain")
        yield artifact.PutRequest(start=artifact.PutStart(artifact=named, run_id=run.id))
        yield artifact.PutRequest(chunk=body)

    await theirs.artifacts.Put(parts(), metadata=metadata)
    order = pb.SubmitRequest(request_id="s", message=WISH)
    nightly = schedule.CreateScheduleRequest(request_id="s", spec=schedule.ScheduleSpec(cron="0 3 * * *"), order=order)
    schedules: Any = ScheduleServiceStub(theirs.channel)
    made = (await schedules.CreateSchedule(nightly, metadata=metadata)).schedule
    return {
        "schedule_id": made.id, "run_id": run.id, "pipeline_id": pipeline_id,
        "workflow_id": plans.workflows[0].workflow_id, "decision_id": decisions.decisions[0].decision_id, "assignment_id": f"{run.id}.a1",
        "sha256": digest,
    }  # fmt: skip


def missing_like(ids: Mapping[str, str]) -> dict[str, str]:
    """Ids of the same shape and length of which there are none."""
    return {name: "".join("0" if letter.isalnum() else letter for letter in value) for name, value in ids.items()}


def request_for(name: str, method: Any, ids: Mapping[str, str], which: str) -> bytes:
    """A request that is right in everything but perhaps the ids."""
    data = valid_request(method.input_type, Known({**ids, "handle": "context:DEV"}), f"{which}-{short(name)}")
    request: Any = GetMessageClass(method.input_type).FromString(data)
    if "page" in method.input_type.fields_by_name:
        request.ClearField("page")
    for verification in getattr(request, "verifications", ()):
        verification.checked_at.FromSeconds(1)
    whole: bytes = request.SerializeToString()
    return whole


def without_time(name: str, answer: bytes) -> bytes:
    """What a heartbeat says but until when."""
    if not name.endswith("/Heartbeat"):
        return answer
    message = agent.HeartbeatResponse.FromString(answer)
    message.ClearField("expires_at")
    return message.SerializeToString()


async def test_a_foreign_id_is_answered_byte_for_byte_like_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        theirs = await there.as_principal("them", "operator", "agent", project="theirs")
        existing = await their_entities(theirs)
        missing = missing_like(existing)
        mine = (await there.as_principal("me", "operator", "agent", "service", project="mine")).channel
        looked_for = 0
        for name, method in METHODS:
            named = NAMES_OF_ENTITIES & set(method.input_type.fields_by_name)
            if method.client_streaming or not named or short(name) in MAKERS:
                continue
            foreign, absent = [
                await outcome(mine, name, method, request_for(name, method, ids, which), "mine")
                for which, ids in (("foreign", existing), ("missing", missing))
            ]
            expected = "OK" if short(name) in ANSWERED else "NOT_FOUND"
            assert (short(name), foreign[0], absent[0]) == (short(name), expected, expected)
            said = without_time(name, foreign[1])
            for kind in sorted(existing, key=lambda kind: -len(existing[kind])):
                said = said.replace(existing[kind].encode(), missing[kind].encode())
            assert (short(name), said) == (short(name), without_time(name, absent[1]))
            looked_for += 1
        assert looked_for > 50
        for name, method in METHODS:
            if short(name) in READERS:
                request = request_for(name, method, existing, "own")
                found, _ = await outcome(theirs.channel, name, method, request, "theirs")
                assert (short(name), found) == (short(name), "OK"), "it is there, and still is"
