"""LandingService: merge queues, their entries, and the integrator."""

from collections.abc import AsyncIterator
from dataclasses import replace

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.errors import invalid_field, state_forbids
from pointsman.services.chassis.engine.journal import until
from pointsman.services.chassis.rpc.paging import page_key, page_size, page_token, seconds_of, timestamp, transition
from pointsman.services.orchestrator.domain.enums import State
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import TERMINAL, Way
from pointsman.services.orchestrator.domain.landing.machine import KIND
from pointsman.services.orchestrator.domain.landing.model import entry_id_for
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.views import EntryFilter, Integrator
from pointsman.services.orchestrator.servicer.predictions import PredictionServicer, require_integrator
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.wire import decode, encode, enums

DEFAULT_ENTRIES = 32
END_OF_TIME = 2**62


class LandingServicer(PredictionServicer):
    """LandingService."""

    def __init__(self, store: OrchestratorStore) -> None:
        super().__init__(store)
        self._entries = store.entries

    async def Enqueue(self, request: pb.EnqueueRequest, caller: Caller) -> pb.EnqueueResponse:
        """Put accepted work into the queue of a branch."""
        run = (await self._store.view(caller.project, request.run_id)).run
        _require_delivered(run)
        terms = decode.landing.terms(request.terms, run)
        _require_branch(terms.target)
        if terms.stack and terms.way is not Way.PULL_REQUEST:
            raise invalid_field("terms.stack", "a stack is one of pull requests; say LANDING_WAY_PULL_REQUEST too")
        queue_id = terms.queue_id(caller.project)
        entry_id = entry_id_for(caller.request_scope, run.run_id, queue_id, request.request_id)
        command = commands.Enqueue(entry_id, queue_id, terms, decode.landing.work_of(run))
        in_trace = replace(caller, traceparent=run.order.traceparent or caller.traceparent)
        answer = await self._entries.ledger.submit(in_trace, command)
        return pb.EnqueueResponse(entry=await self._entry(caller, answer.entry_id))

    async def GetEntry(self, request: pb.GetEntryRequest, caller: Caller) -> pb.GetEntryResponse:
        """An entry as it is now."""
        return pb.GetEntryResponse(entry=await self._entry(caller, request.entry_id))

    async def ListEntries(self, request: pb.ListEntriesRequest, caller: Caller) -> pb.ListEntriesResponse:
        """Entries, newest first."""
        key = page_key(request.page.page_token, int, str) or (END_OF_TIME, "")
        states = tuple(str(state) for state in enums.ENTRY_STATE.all_to_domain(request.states))
        wanted = EntryFilter(caller.project, states, request.repository_id, request.run_id)
        size = page_size(request.page)
        found = await self._entries.page(wanted, (int(key[0]), str(key[1])), size)
        last = found[-1] if len(found) == size else None
        token = page_token(last.created_at_us, last.entry.entry_id) if last else ""
        shown = encode.landing.brief if request.brief else encode.landing.entry
        return pb.ListEntriesResponse(entries=map(shown, found), next_page_token=token)

    async def AnswerEntry(self, request: pb.AnswerEntryRequest, caller: Caller) -> pb.AnswerEntryResponse:
        """A person's answer."""
        reply = enums.ENTRY_REPLY.required(request.reply)
        await self._entries.ledger.submit(caller, commands.AnswerEntry(request.entry_id, reply, request.text))
        return pb.AnswerEntryResponse(entry=await self._entry(caller, request.entry_id))

    async def CancelEntry(self, request: pb.CancelEntryRequest, caller: Caller) -> pb.CancelEntryResponse:
        """Out of the queue."""
        await self._entries.ledger.submit(caller, commands.CancelEntry(request.entry_id, request.reason))
        return pb.CancelEntryResponse(entry=await self._entry(caller, request.entry_id))

    async def WatchEntry(self, request: pb.WatchEntryRequest, caller: Caller) -> AsyncIterator[pb.WatchEntryResponse]:
        """An entry's transitions, to its end."""
        entity = (KIND, request.entry_id)
        batches = self._store.journal.tail(caller.project, entity, request.after_seq, request.batch_size)
        async for rows in until(batches, lambda row: row.target in TERMINAL and row.source != row.target):
            first, *more = [transition(row) for row in rows]
            yield pb.WatchEntryResponse(transition=first, more=more)

    async def TakeEntries(self, request: pb.TakeEntriesRequest, caller: Caller) -> pb.TakeEntriesResponse:
        """Lease a queue with its first entries."""
        require_integrator(caller)
        who = Integrator(
            caller.project, _principal(caller, request.agent_id), request.agent_id, tuple(request.repository_ids)
        )
        limit, wait = request.max_entries or DEFAULT_ENTRIES, seconds_of(request.wait)
        held = await self._entries.take(who, caller, limit, wait)
        if held is None:
            return pb.TakeEntriesResponse()
        return pb.TakeEntriesResponse(
            queue_id=held.queue_id,
            epoch=held.epoch,
            expires_at=timestamp(held.until_us),
            entries=map(encode.landing.entry, held.entries),
        )

    async def KeepQueue(self, request: pb.KeepQueueRequest, caller: Caller) -> pb.KeepQueueResponse:
        """Hold a queue longer, or give it back."""
        require_integrator(caller)
        who = Integrator(caller.project, _principal(caller, request.agent_id), request.agent_id)
        until_us = await self._entries.keep(who, request.queue_id, request.epoch, release=request.release)
        return pb.KeepQueueResponse(expires_at=timestamp(until_us))

    async def ReportEntry(self, request: pb.ReportEntryRequest, caller: Caller) -> pb.ReportEntryResponse:
        """What the integrator found or did."""
        require_integrator(caller)
        principal = _principal(caller, request.agent_id)
        command = commands.ReportEntry(request.entry_id, request.epoch, principal, decode.landing.report(request))
        await self._entries.ledger.submit(caller, command)
        return pb.ReportEntryResponse(entry=await self._entry(caller, request.entry_id))

    async def WakeForge(self, _request: pb.WakeForgeRequest, _caller: Caller) -> pb.WakeForgeResponse:
        """Ask the integrators for a look at their pull requests."""
        self._entries.wake_forge()
        return pb.WakeForgeResponse()

    async def WaitForForge(self, request: pb.WaitForForgeRequest, caller: Caller) -> pb.WaitForForgeResponse:
        """Wait until a look is asked for."""
        require_integrator(caller)
        return pb.WaitForForgeResponse(woken=await self._entries.forge_woken(seconds_of(request.wait)))

    async def _entry(self, caller: Caller, entry_id: str) -> pb.Entry:
        return encode.landing.entry(await self._entries.view(caller.project, entry_id))


def _principal(caller: Caller, agent_id: str) -> str:
    """Who asks; the control plane itself, which everybody on an insecure loopback is, names the agent it speaks for."""
    return f"{caller.principal}/{agent_id}" if Role.SERVICE in caller.roles else caller.principal


def _require_delivered(run: Run) -> None:
    if run.status is not State.COMPLETE:
        raise state_forbids(
            "run", run.run_id, str(run.status), (), f"the run is {run.status}; only COMPLETE work lands"
        )
    if not run.accepted_commit:
        raise state_forbids("run", run.run_id, str(run.status), (), "the run has no accepted commit; nothing can land")


def _require_branch(target: str) -> None:
    """Refuses what git refuses as the name of a branch."""
    parts = target.split("/")
    bad = ".." in target or any(not part or part.startswith(".") or part.endswith((".", ".lock")) for part in parts)
    if bad:
        raise invalid_field("terms.target", f"'{target}' cannot be the name of a branch")
