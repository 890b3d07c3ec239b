"""Pipelines: start, delegate and complete stages, read what they reported."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as requests
from pointsman.api.pipeline.v1 import state_pb2 as state
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.client.calls import Calls


class Pipelines:
    """PipelineService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = PipelineServiceStub(calls.channel)

    async def classify(self, text: str, *, answer_only: bool = False) -> pb.ClassifyResponse:
        """Which template a task needs, and by which rule."""
        return await self._calls.call(self._stub.Classify, pb.ClassifyRequest(text=text, answer_only=answer_only))

    async def start(self, request: pb.StartPipelineRequest) -> pb.StartPipelineResponse:
        """Starts a pipeline from a template or a DAG; a request_id is added where none is set."""
        return await self._calls.mutate(self._stub.StartPipeline, request)

    async def delegate(
        self, pipeline_id: str, stage: str, agent_id: str, *, replace: bool = False, request_id: str = ""
    ) -> state.Delegation:
        """Delegates a ready stage to an agent."""
        request = pb.DelegateStageRequest(
            request_id=request_id, pipeline_id=pipeline_id, stage=stage, agent_id=agent_id, replace=replace
        )
        return (await self._calls.mutate(self._stub.DelegateStage, request)).delegation

    async def complete(self, request: pb.CompleteStageRequest) -> pb.CompleteStageResponse:
        """Hands in the result of a delegation; a request_id is added where none is set."""
        return await self._calls.mutate(self._stub.CompleteStage, request)

    async def skip(
        self, pipeline_id: str, stage: str, *, reason: str = "", request_id: str = ""
    ) -> requests.SkipStageResponse:
        """Skips a stage that has not finished."""
        request = requests.SkipStageRequest(request_id=request_id, pipeline_id=pipeline_id, stage=stage, reason=reason)
        return await self._calls.mutate(self._stub.SkipStage, request)

    async def restart_from(
        self, pipeline_id: str, stage: str, *, reason: str = "", request_id: str = ""
    ) -> requests.RestartFromResponse:
        """Runs a stage again, and everything after it."""
        request = requests.RestartFromRequest(
            request_id=request_id, pipeline_id=pipeline_id, stage=stage, reason=reason
        )
        return await self._calls.mutate(self._stub.RestartFrom, request)

    async def cancel(
        self, pipeline_id: str, *, reason: str = "", request_id: str = ""
    ) -> state.PipelineState.ValueType:
        """Ends a pipeline at once."""
        request = requests.CancelPipelineRequest(request_id=request_id, pipeline_id=pipeline_id, reason=reason)
        return (await self._calls.mutate(self._stub.CancelPipeline, request)).state

    async def get(self, pipeline_id: str) -> state.Pipeline:
        """A pipeline with its stages, barriers and delegations."""
        request = requests.GetPipelineRequest(pipeline_id=pipeline_id)
        return (await self._calls.call(self._stub.GetPipeline, request)).pipeline

    async def all(
        self, *, states: Sequence[state.PipelineState.ValueType] = (), run_id: str = ""
    ) -> AsyncIterator[state.PipelineSummary]:
        """Pipelines, newest first."""
        request = requests.ListPipelinesRequest(states=states, run_id=run_id)
        async for page in self._calls.pages(self._stub.ListPipelines, request):
            for pipeline in page.pipelines:
                yield pipeline

    def watch(self, pipeline_id: str, *, after_seq: int = 0) -> AsyncIterator[Transition]:
        """A pipeline's transitions to its end, over lost connections and restarts."""
        request = requests.WatchPipelineRequest(pipeline_id=pipeline_id, after_seq=after_seq)
        return self._calls.watch_entity(self._stub.WatchPipeline, request)

    def changes(self, *, after_position: int = 0) -> AsyncIterator[Transition]:
        """The transitions of all pipelines of the project in commit order; it does not end."""
        request = requests.WatchChangesRequest(after_position=after_position)
        return self._calls.watch_store(self._stub.WatchChanges, request)

    async def put_context(
        self, pipeline_id: str, delegation_id: str, *, agent_id: str, body: str, request_id: str = ""
    ) -> requests.PutContextResponse:
        """Stores the report of a stage while its delegation is active."""
        request = requests.PutContextRequest(
            request_id=request_id, pipeline_id=pipeline_id, delegation_id=delegation_id, agent_id=agent_id, body=body
        )
        return await self._calls.mutate(self._stub.PutContext, request)

    async def get_context(self, pipeline_id: str, handle: str, *, delegation_id: str) -> requests.GetContextResponse:
        """Reads a report that is addressed to the stage of a delegation."""
        request = requests.GetContextRequest(pipeline_id=pipeline_id, handle=handle, delegation_id=delegation_id)
        return await self._calls.call(self._stub.GetContext, request)

    async def reflection(self, pipeline_id: str, stage: str) -> requests.GetReflectionResponse:
        """What failed rounds of a stage teach the next one."""
        request = requests.GetReflectionRequest(pipeline_id=pipeline_id, stage=stage)
        return await self._calls.call(self._stub.GetReflection, request)

    async def templates(self) -> Sequence[state.Template]:
        """The templates with their DAGs."""
        return (await self._calls.call(self._stub.ListTemplates, requests.ListTemplatesRequest())).templates

    async def parse_route(self, transcript: str, *, nonce: str = "") -> requests.ParseRouteResponse:
        """Parses and repairs the route of a transcript, without a pipeline."""
        request = requests.ParseRouteRequest(transcript=transcript, nonce=nonce)
        return await self._calls.call(self._stub.ParseRoute, request)

    async def import_state(
        self, state_json: str, *, barrier_json: str = "", pipeline_id: str = "", run_id: str = "", request_id: str = ""
    ) -> requests.ImportStateResponse:
        """Stores a state file of version 3 or 4 as a new pipeline."""
        request = requests.ImportStateRequest(
            request_id=request_id,
            pipeline_id=pipeline_id,
            run_id=run_id,
            state_json=state_json,
            barrier_json=barrier_json,
        )
        return await self._calls.mutate(self._stub.ImportState, request)

    async def export_state(self, pipeline_id: str) -> requests.ExportStateResponse:
        """A pipeline as a state file of version 4, and its barrier file."""
        request = requests.ExportStateRequest(pipeline_id=pipeline_id)
        return await self._calls.call(self._stub.ExportState, request)

    async def clean_up(self, older_than: timedelta, *, request_id: str = "") -> requests.CleanUpResponse:
        """Removes reports, reflections and barriers of pipelines that ended long ago."""
        age = Duration()
        age.FromTimedelta(older_than)
        request = requests.CleanUpRequest(request_id=request_id, older_than=age)
        return await self._calls.mutate(self._stub.CleanUp, request)

    async def forget_run(self, run_id: str, *, request_id: str = "") -> int:
        """Removes the ended pipelines of a run (retention); returns how many."""
        request = requests.ForgetRunRequest(request_id=request_id, run_id=run_id)
        return (await self._calls.mutate(self._stub.ForgetRun, request)).pipelines
