"""OrchestratorService: runs, their transitions, deliveries and evidence."""

from collections.abc import AsyncIterator
from datetime import UTC

from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence_pb
from pointsman.api.orchestrator.v1 import machine_pb2 as machine_pb
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.services.chassis.core.caller import EVERY_PROJECT, Caller
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.engine.journal import until
from pointsman.services.chassis.rpc.paging import page_key, page_size, page_token
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import TERMINAL
from pointsman.services.orchestrator.peers import Peers
from pointsman.services.orchestrator.servicer.bulk import BulkChanges
from pointsman.services.orchestrator.servicer.lines import RunLines
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.listing import Listing
from pointsman.services.orchestrator.store.run_queries import RunFilter
from pointsman.services.orchestrator.submit import SubmitMessage
from pointsman.services.orchestrator.wire import decode, encode, enums

JOURNAL_ROWS = 10_000
END_OF_TIME = 2**62


class OrchestratorServicer:
    """OrchestratorService."""

    def __init__(self, store: OrchestratorStore, peers: Peers, settings: OrchestratorSettings) -> None:
        self._store = store
        self._submit = SubmitMessage(store, peers, settings)
        self._listing = Listing(store.store, store.children, store.attention, encode.runs.run)
        self._bulk = BulkChanges(store, self._submit, self._listing)

    async def Submit(self, request: pb.SubmitRequest, caller: Caller) -> pb.SubmitResponse:
        """Route a message; one that asks for action becomes a run."""
        submission = await self._submit.submit(request, caller)
        response = pb.SubmitResponse(routing=encode.runs.shown_routing(submission.routing))
        if submission.run is not None:
            response.run.CopyFrom(encode.runs.run(submission.run))
            response.queued_epic_id = submission.run.run.queued_epic_id
        return response

    async def GetRun(self, request: pb.GetRunRequest, caller: Caller) -> pb.GetRunResponse:
        """A run as it is now."""
        return pb.GetRunResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def ListRuns(self, request: pb.ListRunsRequest, caller: Caller) -> pb.ListRunsResponse:
        """Runs in the order that is asked for."""
        key = page_key(request.page.page_token, int, str) or (END_OF_TIME, "")
        wanted, place = _run_filter(request, caller.project), (int(key[0]), str(key[1]))
        page = await self._listing.page(wanted, place, page_size(request.page))
        next_token = page_token(*page.next_place) if page.next_place else ""
        cut = request.view == pb.RUN_VIEW_LINE
        shown = [encode.runs.line(line.shown, line.at_work, line.attention, cut=cut) for line in page.runs]
        return pb.ListRunsResponse(runs=shown, next_page_token=next_token, newest_position=page.newest_position)

    async def CountRuns(self, request: pb.CountRunsRequest, caller: Caller) -> pb.CountRunsResponse:  # noqa: ARG002
        """How many runs ask what."""
        counted, position = await self._store.store.database.read(
            lambda connection: (
                self._store.attention.counts(connection, caller.project),
                self._listing.position(connection),
            )
        )
        return encode.runs.counts(counted, position)

    async def ListProjects(self, request: pb.ListProjectsRequest, caller: Caller) -> pb.ListProjectsResponse:
        """The projects of the caller, with counts."""
        key = page_key(request.page.page_token, str)
        after, size = str(key[0]) if key else "", page_size(request.page)
        named = None if EVERY_PROJECT in caller.projects else caller.projects
        found = await self._store.store.database.read(
            lambda connection: self._store.attention.projects(connection, named, after, size)
        )
        return pb.ListProjectsResponse(
            projects=[encode.runs.project(name, counted) for name, counted in found],
            next_page_token=page_token(found[-1][0]) if len(found) == size else "",
        )

    async def ChangeRequirement(
        self, request: pb.ChangeRequirementRequest, caller: Caller
    ) -> pb.ChangeRequirementResponse:
        """Add to what is wanted."""
        await self._store.ledger.submit(caller, commands.ChangeRequirement(request.run_id, request.message))
        return pb.ChangeRequirementResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def Answer(self, request: pb.AnswerRequest, caller: Caller) -> pb.AnswerResponse:
        """Answer the open question."""
        await self._store.ledger.submit(caller, decode.runs.answer(request, caller.principal))
        return pb.AnswerResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def CancelRun(self, request: pb.CancelRunRequest, caller: Caller) -> pb.CancelRunResponse:
        """End a run."""
        await self._store.ledger.submit(caller, commands.Cancel(request.run_id, request.reason))
        return pb.CancelRunResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def LabelRun(self, request: pb.LabelRunRequest, caller: Caller) -> pb.LabelRunResponse:
        """Set labels."""
        await self._store.ledger.submit(caller, commands.Label(request.run_id, dict(request.labels)))
        return pb.LabelRunResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def Rerun(self, request: pb.RerunRequest, caller: Caller) -> pb.RerunResponse:
        """Do again what a run did."""
        return pb.RerunResponse(run=encode.runs.run(await self._submit.rerun(request, caller)))

    async def ChangeRuns(self, request: pb.ChangeRunsRequest, caller: Caller) -> pb.ChangeRunsResponse:
        """Do the same to every selected run."""
        return await self._bulk.change(request, caller)

    async def WatchRun(self, request: pb.WatchRunRequest, caller: Caller) -> AsyncIterator[pb.WatchRunResponse]:
        """A run's transitions, to its end."""
        entity, lines = ("run", request.run_id), RunLines(self._store, caller.project, are_wanted=request.with_line)
        batches = self._store.journal.tail(caller.project, entity, request.after_seq, request.batch_size)
        async for rows in until(batches, lambda row: row.target in TERMINAL and row.source != row.target):
            first, *more = [encode.transitions.transition(row, request.view) for row in rows]
            line = next(iter(await lines.of(rows)), None)
            yield pb.WatchRunResponse(transition=first, more=more, line=line)

    async def WatchChanges(
        self, request: pb.WatchChangesRequest, caller: Caller
    ) -> AsyncIterator[pb.WatchChangesResponse]:
        """Every transition of the project."""
        lines = RunLines(self._store, caller.project, are_wanted=request.with_line)
        batches = self._store.journal.changes(caller.project, request.after_position, request.batch_size)
        async for rows in batches:
            first, *more = [encode.transitions.transition(row, request.view) for row in rows]
            yield pb.WatchChangesResponse(transition=first, more=more, lines=await lines.of(rows))

    async def ListTransitions(self, request: pb.ListTransitionsRequest, caller: Caller) -> pb.ListTransitionsResponse:
        """A page of a run's journal."""
        size, key = page_size(request.page), page_key(request.page.page_token, int) or (0,)
        rows = await self._store.journal.page(caller.project, ("run", request.run_id), int(key[0]), size)
        next_token = page_token(rows[-1].seq) if len(rows) == size else ""
        shown = [encode.transitions.transition(row, request.view) for row in rows]
        return pb.ListTransitionsResponse(transitions=shown, next_page_token=next_token)

    async def GetDelivery(self, request: pb.GetDeliveryRequest, caller: Caller) -> pb.GetDeliveryResponse:
        """What was accepted."""
        documents, rows = await self._store.store.database.read(
            lambda connection: (
                encode.documents.RunDocuments(
                    self._store.view_on(connection, caller.project, request.run_id).run,
                    self._store.documents(connection, request.run_id),
                ),
                self._store.journal.rows(connection, request.run_id, 0, JOURNAL_ROWS),
            )
        )
        return pb.GetDeliveryResponse(delivery=encode.delivery.deliver(documents, rows))

    async def GetEvidence(
        self, request: evidence_pb.GetEvidenceRequest, caller: Caller
    ) -> evidence_pb.GetEvidenceResponse:
        """The attempts at a run's tasks."""
        size, key = page_size(request.page), page_key(request.page.page_token, int) or (0,)
        documents, rows = await self._store.store.database.read(
            lambda connection: (
                encode.documents.RunDocuments(
                    self._store.view_on(connection, caller.project, request.run_id).run,
                    self._store.documents(connection, request.run_id),
                ),
                self._store.history(connection, request.run_id),
            )
        )
        found = [item for item in encode.evidence.attempts(documents, rows) if request.task_id in ("", item.task_id)]
        page = encode.evidence.page(found[int(key[0]) :], size)
        reached = int(key[0]) + len(page)
        next_token = page_token(reached) if reached < len(found) else ""
        return evidence_pb.GetEvidenceResponse(attempts=page, next_page_token=next_token)

    async def GetMachine(
        self,
        request: machine_pb.GetMachineRequest,  # noqa: ARG002
        caller: Caller,  # noqa: ARG002
    ) -> machine_pb.GetMachineResponse:
        """The table."""
        return encode.machine.machine()


def _run_filter(request: pb.ListRunsRequest, project: str) -> RunFilter:
    after_us = to_us(request.created_after.ToDatetime(UTC)) if request.HasField("created_after") else 0
    before_us = to_us(request.created_before.ToDatetime(UTC)) if request.HasField("created_before") else END_OF_TIME
    states, labels = decode.runs.state_names(request.states), tuple(request.labels.items())
    return RunFilter(
        project, states, labels, request.session_id, after_us, before_us, request.id_prefix,
        frozenset(enums.ATTENTION.all_to_domain(request.attention)), request.text,
        by_end=request.order == pb.RUN_ORDER_ENDED,
    )  # fmt: skip
