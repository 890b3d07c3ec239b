"""RouterService over gRPC: decode, one call of the store, encode."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import date

from pointsman.api.router.v1 import decision_pb2, log_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.chassis.core.ids import new_id
from pointsman.services.chassis.rpc.paging import page_size
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.decision_record import (
    ClarificationCounted,
    CountClarification,
    DecisionContext,
    RoutingDecision,
    StoredDecision,
    make_routing_decision,
)
from pointsman.services.router.domain.enums import Mode
from pointsman.services.router.domain.identity import fingerprint, task_id
from pointsman.services.router.domain.policy import Policy
from pointsman.services.router.domain.thinking import route_thinking
from pointsman.services.router.domain.thinking_journal import RecordThinking, Routed
from pointsman.services.router.formats.daily_log import log_entry
from pointsman.services.router.rules import rule_book_with
from pointsman.services.router.store import RouterStore
from pointsman.services.router.wire import decode, encode, enums

LONG_LETTERS = 8_192
"""Requests with more letters are classified in a thread; up to here the worst case takes some hundredths of a second."""


class RouterServicer:
    """Every RPC of RouterService."""

    def __init__(self, router: RouterStore, settings: RouterSettings) -> None:
        self.router = router
        self._default = Policy(0, settings.hard_routing)

    async def Classify(self, request: decision_pb2.ClassifyRequest, caller: Caller) -> decision_pb2.ClassifyResponse:
        """Decides one message."""
        (stored,) = await self._decide([request.message], request.run_id, request.session_id, caller)
        return decision_pb2.ClassifyResponse(decision=encode.decision(stored.made, stored.decided_at))

    async def Preview(self, request: decision_pb2.PreviewRequest, caller: Caller) -> decision_pb2.PreviewResponse:
        """Decides one message and stores nothing."""
        message = decision_pb2.Message(text=request.message.text, system_generated=request.message.system_generated)
        (made,) = await self._made([message], "", "", caller.project)
        return decision_pb2.PreviewResponse(decision=encode.decision(made, self.router.store.database.clock.now()))

    async def BatchClassify(
        self, request: decision_pb2.BatchClassifyRequest, caller: Caller
    ) -> decision_pb2.BatchClassifyResponse:
        """Decides several messages."""
        stored = await self._decide(request.messages, request.run_id, request.session_id, caller)
        decisions = [encode.decision(one.made, one.decided_at) for one in stored]
        return decision_pb2.BatchClassifyResponse(decisions=decisions)

    async def SetPolicy(self, request: policy_pb2.SetPolicyRequest, caller: Caller) -> policy_pb2.SetPolicyResponse:
        """Replaces the project's policy."""
        answer: Policy = await self.router.policies.submit(caller, decode.set_policy(request, caller.project))
        version = rule_book_with(answer.rules, answer.doubt).version
        return policy_pb2.SetPolicyResponse(policy=encode.policy(answer, version))

    async def GetPolicy(self, _request: policy_pb2.GetPolicyRequest, caller: Caller) -> policy_pb2.GetPolicyResponse:
        """Returns the project's policy."""
        known = await self.router.policy(caller.project) or self._default
        return policy_pb2.GetPolicyResponse(
            policy=encode.policy(known, rule_book_with(known.rules, known.doubt).version)
        )

    async def ReportOutcome(
        self, request: outcome_pb2.ReportOutcomeRequest, caller: Caller
    ) -> outcome_pb2.ReportOutcomeResponse:
        """Reports the outcome of a task."""
        decision = await self.router.decision(caller.project, request.decision_id)
        if request.outcome == outcome_pb2.OUTCOME_CLARIFICATION_REQUESTED:
            counted: ClarificationCounted = await self.router.decisions.submit(
                caller, CountClarification(request.decision_id)
            )
            reaction = outcome_pb2.REACTION_NONE
            return outcome_pb2.ReportOutcomeResponse(reaction=reaction, task_id=counted.task_id)
        error = fingerprint(request.error_code, request.error_text)
        command = decode.report(request, caller.project, decision, error)
        answer = await self.router.outcomes.submit(caller, command)
        return encode.reported(answer, command.fingerprint, decision.task_id)

    async def ResolveDebate(
        self, request: outcome_pb2.ResolveDebateRequest, caller: Caller
    ) -> outcome_pb2.ResolveDebateResponse:
        """Resolves a debate by its verdict."""
        decision = await self.router.decision(caller.project, request.decision_id)
        command = decode.resolve(request, caller.project, decision)
        return encode.resolved(await self.router.outcomes.submit(caller, command))

    async def RouteThinking(
        self, request: thinking_pb2.RouteThinkingRequest, caller: Caller
    ) -> thinking_pb2.RouteThinkingResponse:
        """Routes the thinking workflow to its next step."""
        now = self.router.store.database.clock.now()
        routed = Routed(route_thinking(decode.snapshot(request.snapshot), now), request.run_id)
        answer = await self.router.thinking_decisions.submit(caller, RecordThinking(new_id("th", now), routed))
        return thinking_pb2.RouteThinkingResponse(envelope=encode.envelope(answer))

    async def ListDecisions(
        self, request: log_pb2.ListDecisionsRequest, caller: Caller
    ) -> log_pb2.ListDecisionsResponse:
        """Lists decisions."""
        limit = page_size(request.page)
        after = decode.cursor(request.page)
        rows = await self.router.page(caller.project, decode.list_filter(request), after, limit + 1)
        return encode.decision_page(rows, limit)

    async def GetStats(self, request: log_pb2.GetStatsRequest, caller: Caller) -> log_pb2.GetStatsResponse:
        """Counts decisions."""
        return encode.stats(await self.router.stats(caller.project, decode.window(request.window)))

    async def ExportLog(
        self, request: log_pb2.ExportLogRequest, caller: Caller
    ) -> AsyncIterator[log_pb2.ExportLogResponse]:
        """Streams one day's log."""
        first = True
        async for rows in self.router.day(caller.project, _day(request.day)):
            entries = "\n".join(log_entry(decision, at) for decision, at in rows)
            yield log_pb2.ExportLogResponse(markdown=entries if first else f"\n{entries}")
            first = False

    async def ForgetRun(self, request: log_pb2.ForgetRunRequest, caller: Caller) -> log_pb2.ForgetRunResponse:
        """Removes everything of a run."""
        return log_pb2.ForgetRunResponse(removed=await self.router.forget_run(caller, request.run_id))

    async def _decide(
        self, messages: Sequence[decision_pb2.Message], run_id: str, session_id: str, caller: Caller
    ) -> list[StoredDecision]:
        """Classifies all messages before any is stored, so that a refusal stores none."""
        return await self.router.store_decisions(caller, await self._made(messages, run_id, session_id, caller.project))

    async def _made(
        self, messages: Sequence[decision_pb2.Message], run_id: str, session_id: str, project: str
    ) -> list[RoutingDecision]:
        """What is decided about the messages."""
        tasks = [task_id(message.text) for message in messages] if session_id else []
        known, debated = await self.router.decision_context(project, session_id, tasks)
        policy = known or self._default
        book = rule_book_with(policy.rules, policy.doubt)
        now = self.router.store.database.clock.now()
        # Decisions of the same time are listed by id: sorted ids keep the messages of a batch in their order.
        ids = sorted(new_id("dec", now) for _ in messages)

        def decide_all() -> list[RoutingDecision]:
            decisions: list[RoutingDecision] = []
            for item, message in enumerate(messages):
                debated_before = bool(tasks) and tasks[item] in debated
                found = classify(
                    book, message.text, already_debated=debated_before, system_generated=message.system_generated
                )
                override = enums.MODE.to_domain(message.mode_override)
                forced = override is Mode.ACTION and found.mode is Mode.ANSWER
                as_action = (
                    classify(book, message.text, already_debated=debated_before, as_action=True) if forced else None
                )
                context = DecisionContext(ids[item], run_id, session_id, policy.hard_routing, override, item)
                decisions.append(make_routing_decision(message.text, found, context, as_action))
            return decisions

        # Long texts must not block the event loop; for short ones a thread would cost more than the decision.
        long = sum(len(message.text) for message in messages) > LONG_LETTERS
        return await asyncio.to_thread(decide_all) if long else decide_all()


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise invalid_field("day", "must be a day of the calendar: YYYY-MM-DD") from None
