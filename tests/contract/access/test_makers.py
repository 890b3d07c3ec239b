"""What the RPCs that make something tell of a foreign project: a run of theirs is like none, and what is theirs stays theirs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.pipeline.v1 import requests_pb2 as pipelines
from pointsman.api.router.v1 import decision_pb2, log_pb2, thinking_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2, plans_pb2
from pointsman.api.workflow.v1 import reading_pb2 as workflows
from tests.contract.access.guarded import guarded
from tests.contract.access.test_matrix import MAKERS, PROJECT, outcome, short, their_entities
from tests.contract.chassis.test_access import METHODS
from tests.scenarios.planes import Plane

MARKDOWN = "## T1: first\n\n- **status**: pending\n\n"
TASKS = (model_pb2.TaskSpec(task_id="T1", name="work"),)
DRAWN = frozenset({"decision_id"})
"""What is another one each time, whoever asks."""
READER_OF = {"PipelineService": "PipelineService/GetPipeline", "WorkflowService": "WorkflowService/GetWorkflow"}
FULL_NAME = {short(name): (name, method) for name, method in METHODS}
Ids = tuple[str, str, str]
"""A run, a pipeline and a workflow."""
Documents = tuple[str, str]
"""A pipeline and a workflow as files, to be imported."""


def maker(name: str, which: str, ids: Ids, documents: Documents) -> Message:
    """A request of one RPC that makes something, with these ids in it."""
    run_id, pipeline_id, workflow_id = ids
    state, plan = documents
    message = decision_pb2.Message(text="Fix the lexer in src/lexer.py")
    made: dict[str, Any] = {
        "PipelineService/StartPipeline": pipeline_pb2.StartPipelineRequest(
            pipeline_id=pipeline_id, run_id=run_id, template="quick-dev"
        ),
        "PipelineService/ImportState": pipelines.ImportStateRequest(
            pipeline_id=pipeline_id, run_id=run_id, state_json=state
        ),
        "WorkflowService/UpsertPlan": plans_pb2.UpsertPlanRequest(
            workflow_id=workflow_id, owner_run_id=run_id, tasks=TASKS
        ),
        "WorkflowService/ImportState": workflows.ImportStateRequest(
            workflow_id=workflow_id, state_json=plan, replace=True
        ),
        "WorkflowService/ImportTasks": workflows.ImportTasksRequest(workflow_id=workflow_id, markdown=MARKDOWN),
        "RouterService/Classify": decision_pb2.ClassifyRequest(message=message, run_id=run_id),
        "RouterService/BatchClassify": decision_pb2.BatchClassifyRequest(messages=[message], run_id=run_id),
        "RouterService/RouteThinking": thinking_pb2.RouteThinkingRequest(
            snapshot=thinking_pb2.ThinkingSnapshot(), run_id=run_id
        ),
    }
    assert set(made) == MAKERS
    request: Message = made[name]
    request.request_id = f"{which}-{name}"  # type: ignore[attr-defined]
    return request


async def documents_of(mine: Plane) -> Documents:
    """Something of one's own, exported."""
    metadata = ((PROJECT, "mine"),)
    start = pipeline_pb2.StartPipelineRequest(request_id="own-pipeline", pipeline_id="own", template="quick-dev")
    await mine.pipeline.StartPipeline(start, metadata=metadata)
    plan = plans_pb2.UpsertPlanRequest(request_id="own-plan", workflow_id="own", tasks=TASKS)
    await mine.workflow.UpsertPlan(plan, metadata=metadata)
    state = await mine.pipeline.ExportState(pipelines.ExportStateRequest(pipeline_id="own"), metadata=metadata)
    kept = await mine.workflow.ExportState(workflows.ExportStateRequest(workflow_id="own"), metadata=metadata)
    return state.state_json, kept.state_json


async def seen_by_them(theirs: Plane, run_id: str) -> list[bytes]:
    """All that stands under their run, for them."""
    metadata = ((PROJECT, "theirs"),)
    router: Any = RouterServiceStub(theirs.channel)
    lists = (
        await theirs.pipeline.ListPipelines(pipelines.ListPipelinesRequest(run_id=run_id), metadata=metadata),
        await theirs.workflow.ListWorkflows(workflows.ListWorkflowsRequest(run_id=run_id), metadata=metadata),
        await router.ListDecisions(log_pb2.ListDecisionsRequest(run_id=run_id), metadata=metadata),
    )
    return [listed.SerializeToString(deterministic=True) for listed in lists]


def settled(message: Message) -> Message:
    """An answer without what is another one each time: moments, and ids that are drawn."""
    for field, value in message.ListFields():
        if field.name in DRAWN or field.message_type is Timestamp.DESCRIPTOR:
            message.ClearField(field.name)
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else (value,):
                settled(inner)
    return message


@asynccontextmanager
async def two_projects(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Plane, Plane, Ids]]:
    """A caller of each, and what the other one has."""
    async with guarded(folder, monkeypatch) as there:
        theirs = await there.as_principal("them", "operator", "agent", project="theirs")
        existing = await their_entities(theirs)
        mine = await there.as_principal("me", "operator", "agent", "service", project="mine")
        yield mine, theirs, (existing["run_id"], existing["pipeline_id"], existing["workflow_id"])


async def test_what_is_made_for_a_foreign_run_is_made_as_for_none_and_they_never_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_projects(tmp_path, monkeypatch) as (mine, theirs, (run_id, _, _)):
        documents, before = await documents_of(mine), await seen_by_them(theirs, run_id)
        no_run = "".join("0" if letter.isalnum() else letter for letter in run_id)
        for number, name in enumerate(sorted(MAKERS)):
            full_name, method = FULL_NAME[name]
            said = []
            for which, run in (("theirs", run_id), ("no-one", no_run)):
                request = maker(name, which, (run, f"{which}-{number}", f"{which}-{number}"), documents)
                result, answer = await outcome(mine.channel, full_name, method, request.SerializeToString(), "mine")
                assert (name, result) == (name, "OK")
                answer = answer.replace(run_id.encode(), no_run.encode()).replace(b"theirs-", b"no-one-")
                said.append(settled(GetMessageClass(method.output_type).FromString(answer)))
            assert (name, said[0]) == (name, said[1])
        assert await seen_by_them(theirs, run_id) == before


async def test_what_is_made_under_a_foreign_id_is_refused_in_the_words_for_a_missing_one_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_projects(tmp_path, monkeypatch) as (mine, theirs, ids):
        documents, before = await documents_of(mine), await seen_by_them(theirs, ids[0])
        for name in sorted(MAKERS):
            service = name.partition("/")[0]
            if service not in READER_OF:
                continue
            full_name, method = FULL_NAME[name]
            request = maker(name, "taken", ids, documents)
            made = await outcome(mine.channel, full_name, method, request.SerializeToString(), "mine")
            reader, read = FULL_NAME[READER_OF[service]]
            field = f"{service.removesuffix('Service').lower()}_id"
            wanted = GetMessageClass(read.input_type)(**{field: getattr(request, field)})
            assert (name, made) == (name, await outcome(mine.channel, reader, read, wanted.SerializeToString(), "mine"))
            assert made[0] == "NOT_FOUND"
        assert await seen_by_them(theirs, ids[0]) == before
