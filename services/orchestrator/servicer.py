"""The orchestrator's services: decode, one call of the store, encode."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

from sqlalchemy import Connection

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence_pb
from pointsman.api.orchestrator.v1 import machine_pb2 as machine_pb
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.errors import Refusal, invalid_field, not_found
from pointsman.services.chassis.core.ids import secret_digest
from pointsman.services.chassis.rpc.paging import page_key, page_size, page_token, seconds_of, transition
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import TERMINAL
from pointsman.services.orchestrator.domain.mocking import MockPolicy
from pointsman.services.orchestrator.peers import Peers
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.artifacts import Artifact
from pointsman.services.orchestrator.store.listing import Listing, RunFilter
from pointsman.services.orchestrator.store.polling import Holder, LeaseKey, PollRequest, Waiter, run_of
from pointsman.services.orchestrator.submit import SubmitMessage
from pointsman.services.orchestrator.wire import decode, encode, enums

JOURNAL_ROWS = 10_000
END_OF_TIME = 2**62


class OrchestratorServicer:
    """OrchestratorService."""

    def __init__(self, store: OrchestratorStore, peers: Peers, settings: OrchestratorSettings) -> None:
        self._store = store
        self._submit = SubmitMessage(store, peers, settings)
        self._listing = Listing(store.store, encode.runs.run)

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
        """Runs, newest first."""
        key = page_key(request.page.page_token, int, str) or (END_OF_TIME, "")
        wanted, place = _run_filter(request, caller.project), (int(key[0]), str(key[1]))
        page = await self._listing.page(wanted, place, page_size(request.page))
        next_token = page_token(*page.next_place) if page.next_place else ""
        return pb.ListRunsResponse(runs=page.runs, next_page_token=next_token, newest_position=page.newest_position)

    async def ChangeRequirement(
        self, request: pb.ChangeRequirementRequest, caller: Caller
    ) -> pb.ChangeRequirementResponse:
        """Add to what is wanted."""
        await self._store.ledger.submit(caller, commands.ChangeRequirement(request.run_id, request.message))
        return pb.ChangeRequirementResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def Answer(self, request: pb.AnswerRequest, caller: Caller) -> pb.AnswerResponse:
        """Answer the open question."""
        await self._store.ledger.submit(caller, decode.runs.answer(request))
        return pb.AnswerResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def CancelRun(self, request: pb.CancelRunRequest, caller: Caller) -> pb.CancelRunResponse:
        """End a run."""
        await self._store.ledger.submit(caller, commands.Cancel(request.run_id, request.reason))
        return pb.CancelRunResponse(run=encode.runs.run(await self._store.view(caller.project, request.run_id)))

    async def WatchRun(self, request: pb.WatchRunRequest, caller: Caller) -> AsyncIterator[pb.WatchRunResponse]:
        """A run's transitions, to its end."""
        entity = ("run", request.run_id)
        async for row in self._store.journal.tail(caller.project, entity, request.after_seq):
            yield pb.WatchRunResponse(transition=transition(row))
            if row.target in TERMINAL and row.source != row.target:
                return

    async def WatchChanges(
        self, request: pb.WatchChangesRequest, caller: Caller
    ) -> AsyncIterator[pb.WatchChangesResponse]:
        """Every transition of the project."""
        async for row in self._store.journal.changes(caller.project, request.after_position):
            yield pb.WatchChangesResponse(transition=transition(row))

    async def ListTransitions(self, request: pb.ListTransitionsRequest, caller: Caller) -> pb.ListTransitionsResponse:
        """A page of a run's journal."""
        size, key = page_size(request.page), page_key(request.page.page_token, int) or (0,)
        rows = await self._store.journal.page(caller.project, ("run", request.run_id), int(key[0]), size)
        next_token = page_token(rows[-1].seq) if len(rows) == size else ""
        return pb.ListTransitionsResponse(transitions=[transition(row) for row in rows], next_page_token=next_token)

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


class AgentServicer:
    """AgentService."""

    def __init__(self, store: OrchestratorStore) -> None:
        self._store = store

    async def Poll(self, request: agent.PollRequest, caller: Caller) -> agent.PollResponse:
        """Lease work, waiting for it if there is none."""
        wait_seconds = seconds_of(request.wait)
        waiter = await self._enter(request.agent_id, request.wanted, caller, wait_seconds)
        return agent.PollResponse(leases=encode.leases.all_of(await waiter.future))

    async def Heartbeat(self, request: agent.HeartbeatRequest, caller: Caller) -> agent.HeartbeatResponse:
        """Extend leases."""
        keys = [_key(key) for key in request.leases]
        await self._store.agents.touch(caller.project, request.agent_id, None)
        outputs = decode.outputs.outputs(request)

        def job(connection: Connection) -> tuple[int, list[str]]:
            until_us, lost = self._store.matcher.renew(connection, _holder(request.agent_id, caller), keys)
            for output in outputs:
                if output.assignment_id not in lost:
                    self._store.outputs.append(connection, run_of(output.assignment_id), output)
            return until_us, lost

        until_us, lost = await self._store.store.write(job)
        if outputs:
            self._store.outputs.notify({run_of(output.assignment_id) for output in outputs})
        message = agent.HeartbeatResponse(lost_assignment_ids=lost)
        message.expires_at.FromDatetime(from_us(until_us))
        return message

    async def Complete(self, request: agent.CompleteRequest, caller: Caller) -> agent.CompleteResponse:
        """Record results, and lease the next work; a refused result is answered without waiting for work."""
        if not request.HasField("next"):
            return agent.CompleteResponse(outcomes=await self._complete(request, caller))
        completing = asyncio.create_task(self._complete(request, caller))
        wait_seconds = seconds_of(request.wait)
        waiter = await self._enter(request.agent_id, request.next, caller, wait_seconds)
        try:
            outcomes = await completing
            if not all(outcome.accepted for outcome in outcomes):
                self._store.matcher.hurry(waiter)
            given = await waiter.future
        finally:
            waiter.future.cancel()
        return agent.CompleteResponse(outcomes=outcomes, leases=encode.leases.all_of(given))

    async def Fail(self, request: agent.FailRequest, caller: Caller) -> agent.FailResponse:
        """Take failures."""
        outcomes = await asyncio.gather(*(self._fail(request.agent_id, item, caller) for item in request.failures))
        return agent.FailResponse(outcomes=outcomes)

    async def ListAgents(self, request: agent.ListAgentsRequest, caller: Caller) -> agent.ListAgentsResponse:
        """Agents and how they are."""
        size, key = page_size(request.page), page_key(request.page.page_token, str) or ("",)
        after = str(key[0])
        now_us = to_us(self._store.now)
        rows, working, usage = await self._store.store.database.read(
            lambda connection: (
                self._store.agents.page(connection, caller.project, after, size),
                self._store.working_agents(connection, caller.project),
                self._store.usage_by_agent(connection, caller.project),
            )
        )
        lost_us = now_us - self._store.agents.present_us
        shown = [encode.agents.agent_row(row, working, usage, lost_us) for row in rows]
        return agent.ListAgentsResponse(
            agents=shown, next_page_token=page_token(rows[-1].agent_id) if len(rows) == size else ""
        )

    async def ListAssignments(
        self, request: agent.ListAssignmentsRequest, caller: Caller
    ) -> agent.ListAssignmentsResponse:
        """Assignments by id."""
        size, key = page_size(request.page), page_key(request.page.page_token, str) or ("",)
        after = str(key[0])

        def query(connection: Connection) -> tuple[Sequence[Any], Mapping[str, Sequence[Any]]]:
            rows = self._store.assignments(connection, caller.project, request.run_id, after, size)
            return rows, self._store.outputs.transcripts(connection, [row.assignment_id for row in rows])

        rows, printed = await self._store.store.database.read(query)
        wanted = {assignments.AssignmentState.Name(s).removeprefix("ASSIGNMENT_STATE_") for s in request.states}
        shown = [
            encode.agents.assignment_row(row, printed.get(row.assignment_id, ()))
            for row in rows
            if not wanted or row.status in wanted
        ]
        return agent.ListAssignmentsResponse(
            assignments=shown, next_page_token=page_token(rows[-1].assignment_id) if len(rows) == size else ""
        )

    async def WatchOutput(
        self, request: agent.WatchOutputRequest, caller: Caller
    ) -> AsyncIterator[agent.WatchOutputResponse]:
        """What a run's agents print."""

        async def is_over() -> bool:
            view = await self._store.view(caller.project, request.run_id)
            return not request.follow or view.run.ended

        reader = encode.outputs.OutputReader(request.task_id)
        async for rows in self._store.outputs.tail(request.run_id, is_over):
            for chunk in reader.unseen(rows):
                yield agent.WatchOutputResponse(chunk=chunk)

    async def _enter(self, agent_id: str, wanted: agent.Wanted, caller: Caller, wait_seconds: float) -> Waiter:
        capabilities = frozenset(enums.CAPABILITY.all_to_domain(wanted.capabilities))
        repository_ids = frozenset(wanted.repository_ids)
        await self._store.agents.touch(caller.project, agent_id, capabilities, repository_ids)
        key = "\0".join((caller.project, caller.principal, agent_id, caller.request_id))
        poll_id = hashlib.sha256(key.encode()).hexdigest()
        holder = _holder(agent_id, caller)
        asked = PollRequest(holder, poll_id, capabilities, repository_ids, max(1, wanted.max_leases))
        return self._store.matcher.enter(asked, wait_seconds)

    async def _complete(self, request: agent.CompleteRequest, caller: Caller) -> list[agent.CompletionOutcome]:
        """The outcome of each result; the results for one run are one command."""
        by_run: dict[str, dict[str, commands.CompleteAssignment]] = {}
        for item in request.completions:
            command = _completion(request.agent_id, item, caller)
            by_run.setdefault(command.entity_id, {}).setdefault(command.assignment_id, command)
        groups = [self._complete_run(tuple(group.values()), caller) for group in by_run.values()]
        found = [await groups[0]] if len(groups) == 1 else await asyncio.gather(*groups)
        outcomes = {outcome.assignment_id: outcome for group in found for outcome in group}
        return [outcomes[item.lease.assignment_id] for item in request.completions]

    async def _complete_run(
        self, group: tuple[commands.CompleteAssignment, ...], caller: Caller
    ) -> list[agent.CompletionOutcome]:
        """The outcomes of the results for one run."""
        if len(group) == 1:
            return [await self._decide_completion(group[0], caller)]
        run_id = group[0].entity_id
        try:
            answer = await self._store.ledger.submit(_own(caller, run_id), commands.CompleteAssignments(run_id, group))
        except Refusal as refusal:
            return [encode.agents.refused(item.assignment_id, refusal) for item in group]
        pairs = zip(group, answer.outcomes, strict=True)
        return [encode.agents.outcome(item.assignment_id, outcome) for item, outcome in pairs]

    async def _fail(self, agent_id: str, item: agent.Failure, caller: Caller) -> agent.CompletionOutcome:
        assignment_id = item.lease.assignment_id
        if item.returned:
            key, holder = _key(item.lease), _holder(agent_id, caller)
            held = await self._store.store.write(lambda c: self._store.matcher.give_back(c, holder, key))
            return encode.agents.returned(assignment_id, held=held)
        command = commands.FailAssignment(
            run_of(assignment_id), assignment_id, item.lease.epoch, agent_id, item.error, item.permanent,
            decode.results.usage(item.usage), caller.principal, secret_digest(item.lease.secret),
        )  # fmt: skip
        return await self._decide_completion(command, caller)

    async def _decide_completion(
        self, command: commands.CompleteAssignment | commands.FailAssignment, caller: Caller
    ) -> agent.CompletionOutcome:
        try:
            answer = await self._store.ledger.submit(_own(caller, command.assignment_id), command)
        except Refusal as refusal:
            return encode.agents.refused(command.assignment_id, refusal)
        return encode.agents.outcome(command.assignment_id, answer)


class ArtifactServicer:
    """ArtifactService."""

    def __init__(self, store: OrchestratorStore, max_bytes: int, quota_bytes: int = 0) -> None:
        self._store = store
        self._max_bytes, self._quota_bytes = max_bytes, quota_bytes

    async def Put(self, requests: AsyncIterator[artifact.PutRequest], caller: Caller) -> artifact.PutResponse:
        """Store a body, checked against its digest."""
        first = await anext(requests, artifact.PutRequest())
        if not first.HasField("start"):
            raise invalid_field("start", "the first message says what is put")
        wanted = first.start.artifact
        with self._store.artifacts.receiving(caller.project, self._max_bytes) as body:
            async for request in requests:
                if body.size_bytes + len(request.chunk) > min(self._max_bytes, wanted.size_bytes):
                    raise invalid_field("chunk", "the body is longer than it may be")
                body.write(request.chunk)
            if (body.sha256, body.size_bytes) != (wanted.sha256, wanted.size_bytes):
                raise invalid_field("start.artifact", "digest or size do not match the body")
            stored = Artifact(caller.project, body.sha256, body.size_bytes, wanted.media_type, first.start.run_id)
            await self._store.artifacts.put(stored, body.file, self._quota_bytes)
        return artifact.PutResponse(artifact=wanted)

    async def Get(self, request: artifact.GetRequest, caller: Caller) -> AsyncIterator[artifact.GetResponse]:
        """A body in chunks."""
        number = 0
        while (chunk := await self._store.artifacts.chunk(caller.project, request.sha256, number)) is not None:
            yield artifact.GetResponse(chunk=chunk)
            number += 1
        if number == 0 and request.sha256 != hashlib.sha256(b"").hexdigest():
            raise not_found("artifact", request.sha256)


class MockServicer:
    """MockService, where mocks or debugging are on."""

    def __init__(self, policy: MockPolicy) -> None:
        self._policy = policy

    async def GetMockPolicy(
        self,
        request: mock.GetMockPolicyRequest,  # noqa: ARG002
        caller: Caller,  # noqa: ARG002
    ) -> mock.GetMockPolicyResponse:
        """How each mock behaves."""
        return mock.GetMockPolicyResponse(policies=encode.mocking.policies(self._policy))

    async def SetMockPolicy(
        self,
        request: mock.SetMockPolicyRequest,
        caller: Caller,  # noqa: ARG002
    ) -> mock.SetMockPolicyResponse:
        """Change how a mock behaves."""
        self._policy.set(decode.mocking.roles(request.role), decode.mocking.outcome(request.outcome))
        return mock.SetMockPolicyResponse(policies=encode.mocking.policies(self._policy))


def _holder(agent_id: str, caller: Caller) -> Holder:
    """Who asks; what has the role of a service, as everybody on loopback has, may be many agents under one name."""
    return Holder(caller.project, caller.principal, agent_id, Role.SERVICE in caller.roles)


def _key(key: agent.LeaseKey) -> LeaseKey:
    """A lease as the caller names it; the secret itself goes no further."""
    return LeaseKey(key.assignment_id, key.epoch, secret_digest(key.secret))


def _completion(agent_id: str, item: agent.Completion, caller: Caller) -> commands.CompleteAssignment:
    assignment_id = item.lease.assignment_id
    return commands.CompleteAssignment(
        run_of(assignment_id), assignment_id, item.lease.epoch, agent_id,
        decode.results.result(agent_id, item), decode.results.usage(item.usage), caller.principal,
        secret_digest(item.lease.secret),
    )  # fmt: skip


def _own(caller: Caller, part: str) -> Caller:
    """The caller, for one part of what it asks: each part has an answer of its own."""
    return replace(caller, request_id=f"{caller.request_id}/{part}")


def _run_filter(request: pb.ListRunsRequest, project: str) -> RunFilter:
    after_us = to_us(request.created_after.ToDatetime(UTC)) if request.HasField("created_after") else 0
    before_us = to_us(request.created_before.ToDatetime(UTC)) if request.HasField("created_before") else END_OF_TIME
    states, labels = decode.runs.state_names(request.states), tuple(request.labels.items())
    return RunFilter(project, states, labels, request.session_id, after_us, before_us, request.id_prefix)
