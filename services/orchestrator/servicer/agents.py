"""AgentService: leases, heartbeats, results, and what agents print."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.ids import secret_digest
from pointsman.services.chassis.rpc.paging import page_key, page_size, page_token, seconds_of
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.completion import not_granted
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.servicer.holders import granted, holder_of, lease_key, own
from pointsman.services.orchestrator.servicer.permissions import PermissionServicer
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.polling import PollRequest, Waiter, run_of
from pointsman.services.orchestrator.wire import decode, encode, enums


class AgentServicer(PermissionServicer):
    """AgentService."""

    async def Poll(self, request: agent.PollRequest, caller: Caller) -> agent.PollResponse:
        """Lease work, waiting for it if there is none."""
        wait_seconds = seconds_of(request.wait)
        waiter = await self._enter(_poll_request(request.agent_id, request.wanted, caller), wait_seconds)
        return agent.PollResponse(leases=encode.leases.all_of(await waiter.future))

    async def Heartbeat(self, request: agent.HeartbeatRequest, caller: Caller) -> agent.HeartbeatResponse:
        """Extend leases."""
        keys, holder = [lease_key(key) for key in request.leases], holder_of(request.agent_id, caller)
        await self._store.agents.touch(holder, None)
        outputs = decode.outputs.outputs(request)

        def job(connection: Connection) -> tuple[int, list[str]]:
            until_us, lost = self._store.matcher.renew(connection, holder, keys, granted(caller))
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
        asked = replace(_poll_request(request.agent_id, request.next, caller), waits_for_room=True)
        completing = asyncio.create_task(self._complete(request, caller))
        wait_seconds = seconds_of(request.wait)
        waiter = await self._enter(asked, wait_seconds)
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
        rows, working, usage, paused = await self._store.store.database.read(
            lambda connection: (
                self._store.agents.page(connection, caller.project, after, size),
                self._store.working_agents(connection, caller.project),
                self._store.usage_by_agent(connection, caller.project),
                self._store.accounts.paused(connection),
            )
        )
        lost_us = now_us - self._store.agents.present_us
        shown = [encode.agents.agent_row(row, working, usage, lost_us) for row in rows]
        for row, message in zip(rows, shown, strict=True):
            encode.agents.add_pause(message, paused.of(caller.project, row.account, row.principal))
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

    async def _enter(self, asked: PollRequest, wait_seconds: float) -> Waiter:
        able = (asked.capabilities, asked.repository_ids, asked.run_ids, asked.offers)
        await self._store.agents.touch(asked.holder, *able)
        return self._store.matcher.enter(asked, wait_seconds)

    async def _complete(self, request: agent.CompleteRequest, caller: Caller) -> list[agent.CompletionOutcome]:
        """The outcome of each result; the results for one run are one command."""
        by_run: dict[str, dict[str, commands.CompleteAssignment]] = {}
        holder, capabilities = holder_of(request.agent_id, caller), granted(caller)
        for item in request.completions:
            command = _completion(item, holder, capabilities)
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
            answer = await self._store.ledger.submit(own(caller, run_id), commands.CompleteAssignments(run_id, group))
        except Refusal as refusal:
            return [encode.agents.refused(item.assignment_id, refusal) for item in group]
        pairs = zip(group, answer.outcomes, strict=True)
        return [encode.agents.outcome(item.assignment_id, outcome) for item, outcome in pairs]

    async def _fail(self, agent_id: str, item: agent.Failure, caller: Caller) -> agent.CompletionOutcome:
        assignment_id = item.lease.assignment_id
        if item.returned:
            key, holder = lease_key(item.lease), holder_of(agent_id, caller)
            limit = decode.results.provider_limit(item.limit) if item.HasField("limit") else None
            held = await self._store.store.write(lambda c: self._store.matcher.give_back(c, holder, key, limit))
            return encode.agents.returned(assignment_id, held=held)
        command = commands.FailAssignment(
            run_of(assignment_id), assignment_id, item.lease.epoch, agent_id, item.error, item.permanent,
            decode.results.usage(item.usage), holder_of(agent_id, caller).principal, secret_digest(item.lease.secret),
        )  # fmt: skip
        return await self._decide_completion(command, caller)

    async def _decide_completion(
        self, command: commands.CompleteAssignment | commands.FailAssignment, caller: Caller
    ) -> agent.CompletionOutcome:
        try:
            answer = await self._store.ledger.submit(own(caller, command.assignment_id), command)
        except Refusal as refusal:
            return encode.agents.refused(command.assignment_id, refusal)
        return encode.agents.outcome(command.assignment_id, answer)


def _poll_request(agent_id: str, wanted: agent.Wanted, caller: Caller) -> PollRequest:
    """What an agent wants to be given, all of which its principal has to be granted."""
    capabilities = frozenset(enums.CAPABILITY.all_to_domain(wanted.capabilities))
    for capability in sorted(capabilities - granted(caller)):
        raise not_granted(capability, caller.principal)
    key = "\0".join((caller.project, caller.principal, agent_id, caller.request_id))
    poll_id, limit = hashlib.sha256(key.encode()).hexdigest(), max(1, wanted.max_leases)
    return PollRequest(
        replace(holder_of(agent_id, caller), account=wanted.account),
        poll_id,
        capabilities,
        frozenset(wanted.repository_ids),
        limit,
        frozenset(wanted.run_ids),
        frozenset(wanted.instead_of),
        frozenset(wanted.first_run_ids),
        decode.results.offers(wanted) if Capability.VERIFY in capabilities and not wanted.run_ids else (),
    )


def _completion(
    item: agent.Completion, holder: Holder, capabilities: frozenset[Capability]
) -> commands.CompleteAssignment:
    assignment_id = item.lease.assignment_id
    return commands.CompleteAssignment(
        run_of(assignment_id), assignment_id, item.lease.epoch, holder.agent_id,
        decode.results.result(holder.agent_id, item), decode.results.usage(item.usage), holder.principal,
        secret_digest(item.lease.secret), capabilities,
    )  # fmt: skip
