"""PipelineService over gRPC: decode, one call of the store, encode."""

from collections.abc import AsyncIterator
from hashlib import sha256

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import not_found
from pointsman.services.chassis.core.ids import new_id, new_nonce
from pointsman.services.chassis.rpc.paging import page_size, seconds_of, transition
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.pipeline.domain import commands, reflection
from pointsman.services.pipeline.domain.decision import CLEAN_UP_SECONDS
from pointsman.services.pipeline.domain.delegation import context_handle, split_delegation_id
from pointsman.services.pipeline.domain.enums import StageKind
from pointsman.services.pipeline.domain.model import DEFAULT_BARRIER_TIMEOUT_SECONDS
from pointsman.services.pipeline.domain.route import repair
from pointsman.services.pipeline.domain.template_choice import classify
from pointsman.services.pipeline.domain.templates import TEMPLATES
from pointsman.services.pipeline.formats.route_marker import parse_route
from pointsman.services.pipeline.formats.state_file_reader import read_state_file
from pointsman.services.pipeline.formats.state_file_writer import write_state_file
from pointsman.services.pipeline.store import PipelineStore
from pointsman.services.pipeline.wire import decode, encode, enums

RUN_BARRIER_TIMEOUT_SECONDS = 3600.0


class PipelineServicer:
    """Every RPC of PipelineService."""

    def __init__(self, pipelines: PipelineStore, settings: PipelineSettings) -> None:
        self.pipelines = pipelines
        self._settings = settings
        self._secret = new_nonce()

    async def Classify(self, request: pb.ClassifyRequest, _caller: Caller) -> pb.ClassifyResponse:
        """Chooses the template of a task."""
        found = classify(request.text, answer_only=request.answer_only)
        return pb.ClassifyResponse(template=found.template, rule=found.rule, matched=found.matched)

    async def StartPipeline(self, request: pb.StartPipelineRequest, caller: Caller) -> pb.StartPipelineResponse:
        """Starts a pipeline."""
        new_pipeline_id = new_id("pl", self.pipelines.store.database.clock.now())
        timeout = self._settings.barrier_timeout_seconds
        if timeout is None:  # agents of a run may take longer to review than the five minutes of the seed
            timeout = RUN_BARRIER_TIMEOUT_SECONDS if request.run_id else DEFAULT_BARRIER_TIMEOUT_SECONDS
        command = decode.start_command(request, caller, new_pipeline_id, self._seed(caller), timeout)
        return encode.started(await self.pipelines.submit(caller, command))

    async def DelegateStage(self, request: pb.DelegateStageRequest, caller: Caller) -> pb.DelegateStageResponse:
        """Delegates a stage to an agent."""
        answer: commands.Answer = await self.pipelines.submit(
            caller, decode.delegate_command(request, caller, self._seed(caller))
        )
        return pb.DelegateStageResponse(delegation=encode.delegation(answer.next[0]))

    async def CompleteStage(self, request: pb.CompleteStageRequest, caller: Caller) -> pb.CompleteStageResponse:
        """Completes a delegation."""
        report = await self._store_report(caller, request.pipeline_id, request.report)
        command = decode.complete_command(request, caller, self._seed(caller), report)
        return encode.completed(await self.pipelines.submit(caller, command))

    async def SkipStage(self, request: rq.SkipStageRequest, caller: Caller) -> rq.SkipStageResponse:
        """Skips a stage."""
        command = commands.SkipStage(request.pipeline_id, request.stage, request.reason)
        answer: commands.Answer = await self.pipelines.submit(caller, command)
        return rq.SkipStageResponse(
            state=enums.PIPELINE_STATE.to_wire(answer.status), next=encode.delegations(answer.next)
        )

    async def RestartFrom(self, request: rq.RestartFromRequest, caller: Caller) -> rq.RestartFromResponse:
        """Runs a stage and all stages after it again."""
        command = commands.RestartFrom(request.pipeline_id, request.stage, request.reason)
        answer: commands.Answer = await self.pipelines.submit(caller, command)
        return rq.RestartFromResponse(
            state=enums.PIPELINE_STATE.to_wire(answer.status), next=encode.delegations(answer.next)
        )

    async def CancelPipeline(self, request: rq.CancelPipelineRequest, caller: Caller) -> rq.CancelPipelineResponse:
        """Cancels a pipeline."""
        answer: commands.Answer = await self.pipelines.submit(
            caller, commands.CancelPipeline(request.pipeline_id, request.reason)
        )
        return rq.CancelPipelineResponse(state=enums.PIPELINE_STATE.to_wire(answer.status))

    async def GetPipeline(self, request: rq.GetPipelineRequest, caller: Caller) -> rq.GetPipelineResponse:
        """Returns a pipeline."""
        stored = await self.pipelines.get(caller.project, request.pipeline_id)
        return rq.GetPipelineResponse(pipeline=encode.pipeline(stored))

    async def ListPipelines(self, request: rq.ListPipelinesRequest, caller: Caller) -> rq.ListPipelinesResponse:
        """Returns a page of pipelines."""
        limit = page_size(request.page)
        after = decode.cursor(request.page)
        listed = await self.pipelines.page(caller.project, decode.list_filter(request), after, limit + 1)
        return encode.pipeline_page(listed, limit)

    async def WatchPipeline(
        self, request: rq.WatchPipelineRequest, caller: Caller
    ) -> AsyncIterator[rq.WatchPipelineResponse]:
        """Streams the transitions of a pipeline until it has ended."""
        batches = self.pipelines.watch(caller.project, request.pipeline_id, request.after_seq, request.batch_size)
        async for rows in batches:
            first, *more = [transition(row) for row in rows]
            yield rq.WatchPipelineResponse(transition=first, more=more)

    async def WatchChanges(
        self, request: rq.WatchChangesRequest, caller: Caller
    ) -> AsyncIterator[rq.WatchChangesResponse]:
        """Streams the transitions of all pipelines of the project."""
        batches = self.pipelines.journal.changes(caller.project, request.after_position, request.batch_size)
        async for rows in batches:
            first, *more = [transition(row) for row in rows]
            yield rq.WatchChangesResponse(transition=first, more=more)

    async def PutContext(self, request: rq.PutContextRequest, caller: Caller) -> rq.PutContextResponse:
        """Attaches a report to a stage."""
        report = await self.pipelines.store_report(caller, request.pipeline_id, request.body)
        await self.pipelines.submit(caller, decode.put_command(request, caller, report))
        handle = context_handle(split_delegation_id(request.delegation_id)[0])
        return rq.PutContextResponse(handle=handle, sha256=report.sha256)

    async def GetContext(self, request: rq.GetContextRequest, caller: Caller) -> rq.GetContextResponse:
        """Returns a report that is addressed to the reading delegation."""
        body = await self.pipelines.context(caller.project, request.pipeline_id, request.delegation_id, request.handle)
        return rq.GetContextResponse(body=body, sha256=sha256(body.encode()).hexdigest())

    async def GetReflection(self, request: rq.GetReflectionRequest, caller: Caller) -> rq.GetReflectionResponse:
        """Returns the reflection of a stage."""
        stored = await self.pipelines.get(caller.project, request.pipeline_id)
        known = stored.pipeline.stages.get(request.stage)
        if known is None or not known.reflection:
            raise not_found("reflection", request.stage)
        return rq.GetReflectionResponse(body=reflection.body(known.reflection), rounds=len(known.reflection))

    async def ListTemplates(self, _request: rq.ListTemplatesRequest, _caller: Caller) -> rq.ListTemplatesResponse:
        """Returns all templates."""
        return rq.ListTemplatesResponse(templates=[encode.template(known) for known in TEMPLATES.values()])

    async def ParseRoute(self, request: rq.ParseRouteRequest, _caller: Caller) -> rq.ParseRouteResponse:
        """Reads the route from a transcript, without a pipeline."""
        reported = parse_route(request.transcript, request.nonce or None)
        if reported is None:
            return rq.ParseRouteResponse(found=False)
        return rq.ParseRouteResponse(found=True, route=encode.effective_route(repair(reported, StageKind.DEV)))

    async def ImportState(self, request: rq.ImportStateRequest, caller: Caller) -> rq.ImportStateResponse:
        """Continues a pipeline from a state file."""
        now = self.pipelines.store.database.clock.now()
        read = read_state_file(request.state_json, request.barrier_json, request.run_id, now)
        pipeline_id = request.pipeline_id or read.session_id or new_id("pl", now)
        answer: commands.Answer = await self.pipelines.submit(
            caller, commands.ImportPipeline(pipeline_id, read.imported)
        )
        return rq.ImportStateResponse(
            pipeline_id=answer.pipeline_id,
            state=enums.PIPELINE_STATE.to_wire(answer.status),
            migrated=read.migrated,
            barriers_rebuilt=read.barriers_rebuilt,
        )

    async def ExportState(self, request: rq.ExportStateRequest, caller: Caller) -> rq.ExportStateResponse:
        """Returns a pipeline as a state file."""
        stored = await self.pipelines.get(caller.project, request.pipeline_id)
        state_json, barrier_json = write_state_file(request.pipeline_id, stored.pipeline)
        return rq.ExportStateResponse(state_json=state_json, barrier_json=barrier_json)

    async def CleanUp(self, request: rq.CleanUpRequest, caller: Caller) -> rq.CleanUpResponse:
        """Removes reports and reflections of pipelines that ended long ago."""
        seconds = seconds_of(request.older_than) if request.HasField("older_than") else CLEAN_UP_SECONDS
        done = await self.pipelines.clean_up(caller, seconds)
        return rq.CleanUpResponse(pipelines=done.pipelines, ended_before=encode.timestamp(done.ended_before))

    async def ForgetRun(self, request: rq.ForgetRunRequest, caller: Caller) -> rq.ForgetRunResponse:
        """Deletes the ended pipelines of a run."""
        return rq.ForgetRunResponse(pipelines=await self.pipelines.forget_run(caller, request.run_id))

    def _seed(self, caller: Caller) -> str:
        """The seed of this request's nonces; secret, since only this process knows a part of it."""
        return f"{self._secret}/{caller.request_scope}/{caller.request_id}"

    async def _store_report(self, caller: Caller, pipeline_id: str, body: str) -> commands.NewReport | None:
        return await self.pipelines.store_report(caller, pipeline_id, body) if body else None
