"""Submit and Rerun: admission, the router's decision, and the run that a message becomes, or becomes again."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import from_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.telemetry.context import current_transition, new_traceparent
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.domain.origin import Scheduled
from pointsman.services.orchestrator.domain.rerun import moments, restart
from pointsman.services.orchestrator.domain.run import run_id_for
from pointsman.services.orchestrator.domain.views import RunView
from pointsman.services.orchestrator.peers import Peers
from pointsman.services.orchestrator.peers.clients import opaque
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.wire import decode

JOURNAL_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of a message: the router's decision, and the run where it asks for action."""

    routing: decision.RoutingDecision
    run: RunView | None


class SubmitMessage:
    """Turns a message into a run, if the router decides that it asks for action."""

    def __init__(self, store: OrchestratorStore, peers: Peers, settings: OrchestratorSettings) -> None:
        self._store = store
        self._peers = peers
        self._max_live_runs = settings.max_live_runs
        self._budget = Budget(
            settings.assignments, settings.transitions, settings.fan_out, wall_clock_seconds=settings.wall_clock_seconds
        )

    async def submit(self, request: pb.SubmitRequest, caller: Caller, scheduled: Scheduled | None = None) -> Submission:
        """Admission first: a project that is full costs the router nothing."""
        await self._require_held_out(request.proof_terms.held_out.sha256, caller.project)
        async with self._store.admission.slot(caller.project, self._max_live_runs):
            return await self._route(await self._with_base(request, caller.project), caller, scheduled)

    async def rehearse(self, request: pb.SubmitRequest, caller: Caller) -> None:
        """Refuses what Submit would refuse for good, or take for a question, and starts nothing."""
        await self._require_held_out(request.proof_terms.held_out.sha256, caller.project)
        decode.runs.given_criteria(request)
        run_id = run_id_for(caller.request_scope, request.request_id)
        traceparent = caller.traceparent or new_traceparent(run_id)
        require_action(await self._peers.classify(_classify(request, run_id), caller.project, traceparent))

    async def _with_base(self, request: pb.SubmitRequest, project: str) -> pb.SubmitRequest:
        """With the commit that the named branch is at now."""
        repository = request.repository
        if repository.base_commit or not repository.branch:
            return request
        commit = await self._store.agents.head_of(project, repository.id, repository.branch)
        if not commit:
            raise _nobody_knows(repository)
        based = pb.SubmitRequest()
        based.CopyFrom(request)
        based.repository.base_commit = commit
        return based

    async def _require_held_out(self, sha256: str, project: str) -> None:
        """Held-out checks have to be there, and out of every agent's reach, before anything is paid."""
        if sha256 and not await self._store.artifacts.is_held_out(project, sha256):
            raise invalid_field(
                "proof_terms.held_out", "is no artifact of this project of the class HELD_OUT; put it as one first"
            )

    async def _route(self, request: pb.SubmitRequest, caller: Caller, scheduled: Scheduled | None) -> Submission:
        run_id = run_id_for(caller.request_scope, request.request_id)
        traceparent = caller.traceparent or new_traceparent(run_id)
        decided = await self._peers.classify(_classify(request, run_id), caller.project, traceparent)
        if decided.mode != decision.MODE_ACTION or decided.fast_path:
            # there is no run: the root of the decision's trace is this call
            current_transition.set((traceparent, run_id, 0))
            return Submission(decided, None)
        order = decode.runs.order(request, decode.runs.routing(decided), caller.project, traceparent)
        order = replace(order, scheduled=scheduled)
        command = commands.Submit(run_id, request.message, order, decode.runs.budget(request.budget, self._budget))
        # the ledger looks up the conflicting run of the session in the transaction that commits the command
        answer = await self._store.ledger.submit(replace(caller, traceparent=traceparent), command)
        return Submission(decided, await self._store.view(caller.project, answer.run_id))

    async def rerun(self, request: pb.RerunRequest, caller: Caller) -> RunView:
        """Start the run that does again what another did, from a point of it."""
        async with self._store.admission.slot(caller.project, self._max_live_runs):
            past = await self._store.store.database.read(
                lambda connection: moments(self._history(connection, caller.project, request.run_id))
            )
            terms, ended = restart(past, decode.runs.point(request.point)), past[-1].run
            run_id = run_id_for(caller.request_scope, request.request_id)
            traceparent = caller.traceparent or new_traceparent(run_id)
            order = decode.runs.with_crew(replace(terms.order, traceparent=traceparent), request)
            intent = f"{ended.intent}\n\n{request.text}" if request.text.strip() else ended.intent
            command = commands.Submit(
                run_id, intent, order, decode.runs.budget(request.budget, ended.budget), terms.plan
            )
            answer = await self._store.ledger.submit(replace(caller, traceparent=traceparent), command)
        return await self._store.view(caller.project, answer.run_id)

    def _history(self, connection: Connection, project: str, run_id: str) -> Iterator[tuple[Event, datetime]]:
        """What happened to a run, in order."""
        self._store.ledger.load(connection, project, run_id)
        after = 0
        while rows := self._store.journal.rows(connection, run_id, after, JOURNAL_PAGE):
            for row in rows:
                yield (
                    Event(row.event, row.source, row.target, from_json(row.payload, EVENTS[row.event])),
                    from_us(row.at_us),
                )
            after = rows[-1].seq


def require_action(decided: decision.RoutingDecision) -> None:
    """Refuses a message that would start no run."""
    if decided.mode != decision.MODE_ACTION or decided.fast_path:
        raise invalid_field(
            "order.message", f"starts no run ({', '.join(decided.rules)[:200]}); say what is to be done"
        )


def _nobody_knows(repository: runs.Repository) -> Refusal:
    return Refusal(
        Reason.UNAVAILABLE,
        f"no verifier that is present has the branch '{repository.branch}' of this repository; start a worker with it "
        "(`pointsman up` or `pointsman agent` in the repository), or name a commit",
        metadata={"field": "repository.branch", "branch": repository.branch},
        retry_after_seconds=5.0,
    )


def _classify(request: pb.SubmitRequest, run_id: str) -> decision.ClassifyRequest:
    overrides = {pb.MODE_OVERRIDE_ANSWER: decision.MODE_ANSWER, pb.MODE_OVERRIDE_ACTION: decision.MODE_ACTION}
    return decision.ClassifyRequest(
        request_id=opaque(f"submit:{run_id}"),
        message=decision.Message(
            text=request.message, mode_override=overrides.get(request.mode_override, decision.MODE_UNSPECIFIED)
        ),
        run_id=run_id,
        session_id=request.session_id,
    )
