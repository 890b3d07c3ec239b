"""`pointsman trace RUN`: the run's trace from the stores: a waterfall for people, or OTLP JSON for any viewer."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
import typer

from pointsman.api.common.v1.common_pb2 import Page, Transition
from pointsman.api.orchestrator.v1.landing_pb2 import Entry
from pointsman.api.pipeline.v1 import requests_pb2 as pipelines
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.router.v1 import decision_pb2, log_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import reading_pb2 as workflows
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.session.control_plane import Plane, control_plane
from pointsman.cli.session.run_client import AsJson, InProject, RunId, ServerAt, find_run
from pointsman.client import CallFailed, Client, Terms
from pointsman.tracing.waterfall import draw, summary, tree_of

app = typer.Typer(add_completion=False)
LOOK_BACK_NS = 60 * 10**9
READ_SECONDS = 60.0


@app.command()
def trace(*, run_id: RunId, server: ServerAt = "", project: InProject = "local", as_json: AsJson = False) -> None:
    """Draw where a run's time went; --json gives the spans, with the ids that a collector has them under."""

    async def work() -> int:
        async with control_plane(server) as plane:
            client = plane.client(Terms(project=project))
            journals = await read_journals(plane, await find_run(client, run_id), project)
        if as_json:
            print(json.dumps(spans_as_json(journals), ensure_ascii=False))
            return 0
        run, *others = journals
        whole = tree_of(run, {rows[0].entity_id: rows for rows in others})
        print(f"trace {trace_of_run(run)}")
        print("\n".join((*draw(whole), "", *summary(whole))))
        return 0

    try:
        sys.exit(asyncio.run(work()))
    except CallFailed as failure:
        print(f"pointsman: {failure.message or failure}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


async def read_journals(plane: Plane, run_id: str, project: str) -> list[list[Transition]]:
    """The run's journal, then those of its decision, epic, pipelines and entries, without rows of other runs."""
    client = plane.client(Terms(project=project))
    run = await client.runs.get(run_id)
    journals = [[row async for row in client.runs.transitions(run_id)]]
    metadata = client.terms.metadata
    pipeline: Any = PipelineServiceStub(plane.channels["pipeline"])
    journals.append(await _decision(plane, run, metadata))
    if run.epic_id:
        read = _workflow_rows(WorkflowServiceStub(plane.channels["workflow"]), run.epic_id, metadata)
        journals.append([row async for row in read if row.run_id in ("", run_id)])
    listed = pipelines.ListPipelinesRequest(run_id=run_id, page=Page(page_size=1000))
    found = (await pipeline.ListPipelines(listed, metadata=metadata)).pipelines
    journals += [[row async for row in _pipeline_rows(pipeline, one.pipeline_id, metadata)] for one in found]
    journals += [await _entry_rows(client, entry) async for entry in client.landing.all(run_id=run_id)]
    return [journals[0], *(rows for rows in journals[1:] if rows)]


async def _entry_rows(client: Client, entry: Entry) -> list[Transition]:
    """The way of the run's work into a branch, so far."""
    rows: list[Transition] = []
    async for row in client.landing.watch(entry.id):
        rows.append(row)
        if row.seq >= entry.seq:
            break
    return rows


async def _workflow_rows(stub: Any, workflow_id: str, metadata: Any) -> AsyncIterator[Transition]:
    with _unless_removed():
        found = await stub.GetWorkflow(workflows.GetWorkflowRequest(workflow_id=workflow_id), metadata=metadata)
        request = workflows.WatchWorkflowRequest(workflow_id=workflow_id)
        watched = stub.WatchWorkflow(request, metadata=metadata, timeout=READ_SECONDS)
        async for row in _rows_until(watched, found.workflow.seq):
            yield row


async def _pipeline_rows(stub: Any, pipeline_id: str, metadata: Any) -> AsyncIterator[Transition]:
    with _unless_removed():
        found = await stub.GetPipeline(pipelines.GetPipelineRequest(pipeline_id=pipeline_id), metadata=metadata)
        request = pipelines.WatchPipelineRequest(pipeline_id=pipeline_id)
        watched = stub.WatchPipeline(request, metadata=metadata, timeout=READ_SECONDS)
        async for row in _rows_until(watched, found.pipeline.seq):
            yield row


async def _rows_until(watched: Any, last_seq: int) -> AsyncIterator[Transition]:
    """The rows of a watched journal up to the one that was the last when it was looked at."""
    try:
        async for answer in watched:
            yield answer.transition
            if answer.transition.seq >= last_seq:
                return
    finally:
        watched.cancel()


@contextmanager
def _unless_removed() -> Iterator[None]:
    """Nothing is read of an entity that was removed after its run."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise


async def _decision(plane: Plane, run: Any, metadata: Any) -> list[Transition]:
    """The routing decision that started the run."""
    stub: Any = RouterServiceStub(plane.channels["router"])
    request = log_pb2.ListDecisionsRequest()
    request.page.page_size = 1000
    request.window.start.FromNanoseconds(run.created_at.ToNanoseconds() - LOOK_BACK_NS)
    request.window.end.FromNanoseconds(run.created_at.ToNanoseconds() + LOOK_BACK_NS)
    try:
        found = (await stub.ListDecisions(request, metadata=metadata)).decisions
    except grpc.aio.AioRpcError:
        return []
    return [_as_transition(one, run) for one in found if one.decision_id == run.decision_id]


def _as_transition(decided: decision_pb2.RoutingDecision, run: Any) -> Transition:
    """A decision as the transition that stored it."""
    return Transition(
        entity_id=decided.decision_id, kind="decision", seq=1, at=decided.decided_at, event="DECISION_MADE",
        to_state="STORED", traceparent=run.traceparent,
    )  # fmt: skip


def trace_of_run(run: Sequence[Transition]) -> str:
    """The trace id of the run's spans."""
    from pointsman.services.chassis.telemetry.context import new_traceparent

    return (run[0].traceparent or new_traceparent(run[0].entity_id, run[0].at.ToMicroseconds()))[3:35]


def spans_as_json(journals: Sequence[Sequence[Transition]]) -> dict[str, Any]:
    """The spans as one OTLP request in JSON, each service's under its own name."""
    from pointsman._shared.otlp.span import otlp_json, request_of, resource_of
    from pointsman.services.chassis.spans.transition_spans import spans_of
    from pointsman.services.chassis.spans.transitions import states_by_kind
    from pointsman.services.orchestrator.domain.landing.machine import MACHINE as ENTRIES
    from pointsman.services.orchestrator.domain.machine import MACHINE as RUNS
    from pointsman.services.pipeline.domain.machine import MACHINE as PIPELINES
    from pointsman.services.workflow.domain.machine import MACHINE as WORKFLOWS

    kinds = states_by_kind([RUNS, ENTRIES, PIPELINES, WORKFLOWS])
    resources = []
    for rows in journals:
        spans = [span for step in _steps(rows) for _, span in spans_of(step, kinds)]
        service = {"run": "orchestrator", "entry": "orchestrator", "decision": "router"}.get(rows[0].kind, rows[0].kind)
        resources += otlp_json(request_of(spans, resource_of({"service.name": f"pointsman-{service}"})))[
            "resourceSpans"
        ]
    return {"resourceSpans": resources}


def _steps(rows: Sequence[Transition]) -> Iterator[Any]:
    """A journal from its first row, as the span exporter reads it."""
    from pointsman.services.chassis.spans.transitions import JournaledTransition

    before: Transition | None = None
    owners: dict[str, str] = {}
    for row in rows:
        owner = owners.setdefault(row.run_id, row.traceparent)
        yield JournaledTransition(
            row.entity_id, row.seq, row.position, row.kind, "", row.run_id, row.event, row.from_state, row.to_state,
            row.actor, row.at.ToMicroseconds(), row.traceparent, before.at.ToMicroseconds() if before else None,
            before.run_id if before else None, rows[0].at.ToMicroseconds(), rows[0].traceparent, owner,
        )  # fmt: skip
        before = row
