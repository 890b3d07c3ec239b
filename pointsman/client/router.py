"""Routing decisions: classify messages, set the policy, report outcomes, read the log."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pointsman.api.router.v1 import decision_pb2, log_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.client.calls import Calls


class Router:
    """RouterService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = RouterServiceStub(calls.channel)

    async def classify(
        self, message: decision_pb2.Message, *, run_id: str = "", session_id: str = "", request_id: str = ""
    ) -> decision_pb2.RoutingDecision:
        """Decides ANSWER or ACTION for a message, and records the decision."""
        request = decision_pb2.ClassifyRequest(
            request_id=request_id, message=message, run_id=run_id, session_id=session_id
        )
        return (await self._calls.mutate(self._stub.Classify, request)).decision

    async def preview(self, message: decision_pb2.Message) -> decision_pb2.RoutingDecision:
        """What would be decided about a message; nothing is recorded."""
        return (await self._calls.call(self._stub.Preview, decision_pb2.PreviewRequest(message=message))).decision

    async def classify_all(
        self, messages: Sequence[decision_pb2.Message], *, run_id: str = "", session_id: str = "", request_id: str = ""
    ) -> Sequence[decision_pb2.RoutingDecision]:
        """Decides for up to 1000 messages at once, in their order."""
        request = decision_pb2.BatchClassifyRequest(
            request_id=request_id, messages=messages, run_id=run_id, session_id=session_id
        )
        return (await self._calls.mutate(self._stub.BatchClassify, request)).decisions

    async def policy(self) -> policy_pb2.Policy:
        """The project's policy."""
        return (await self._calls.call(self._stub.GetPolicy, policy_pb2.GetPolicyRequest())).policy

    async def set_policy(
        self,
        *,
        hard_routing: bool,
        rules: Sequence[policy_pb2.OwnRule] = (),
        expected_revision: int | None = None,
        doubt: policy_pb2.Doubt.ValueType = policy_pb2.DOUBT_UNSPECIFIED,
        request_id: str = "",
    ) -> policy_pb2.Policy:
        """Replaces the project's policy; refused where its revision is not the expected one."""
        request = policy_pb2.SetPolicyRequest(
            request_id=request_id,
            hard_routing=hard_routing,
            rules=rules,
            expected_revision=expected_revision,
            doubt=doubt,
        )
        return (await self._calls.mutate(self._stub.SetPolicy, request)).policy

    async def report_outcome(
        self,
        decision_id: str,
        outcome: outcome_pb2.Outcome.ValueType,
        *,
        error_code: str = "",
        error_text: str = "",
        request_id: str = "",
    ) -> outcome_pb2.ReportOutcomeResponse:
        """Reports what came of a decision; the answer says how to react."""
        request = outcome_pb2.ReportOutcomeRequest(
            request_id=request_id,
            decision_id=decision_id,
            outcome=outcome,
            error_code=error_code,
            error_text=error_text,
        )
        return await self._calls.mutate(self._stub.ReportOutcome, request)

    async def resolve_debate(
        self,
        decision_id: str,
        kind: outcome_pb2.DebateKind.ValueType,
        *,
        advocate: outcome_pb2.Advocate,
        critic: outcome_pb2.Critic,
        request_id: str = "",
    ) -> outcome_pb2.ResolveDebateResponse:
        """Weighs advocate and critic of a debate by rule."""
        request = outcome_pb2.ResolveDebateRequest(
            request_id=request_id, decision_id=decision_id, kind=kind, advocate=advocate, critic=critic
        )
        return await self._calls.mutate(self._stub.ResolveDebate, request)

    async def route_thinking(
        self, snapshot: thinking_pb2.ThinkingSnapshot, *, run_id: str = "", request_id: str = ""
    ) -> thinking_pb2.ThinkingEnvelope:
        """Which step of the thinking workflow comes next."""
        request = thinking_pb2.RouteThinkingRequest(request_id=request_id, snapshot=snapshot, run_id=run_id)
        return (await self._calls.mutate(self._stub.RouteThinking, request)).envelope

    async def decisions(
        self,
        *,
        mode: decision_pb2.Mode.ValueType = decision_pb2.MODE_UNSPECIFIED,
        run_id: str = "",
        task_id: str = "",
        window: log_pb2.Window | None = None,
    ) -> AsyncIterator[decision_pb2.RoutingDecision]:
        """Recorded decisions, newest first."""
        request = log_pb2.ListDecisionsRequest(mode=mode, run_id=run_id, task_id=task_id, window=window)
        async for page in self._calls.pages(self._stub.ListDecisions, request):
            for decision in page.decisions:
                yield decision

    async def stats(self, window: log_pb2.Window | None = None) -> log_pb2.GetStatsResponse:
        """How the router decided, in numbers."""
        return await self._calls.call(self._stub.GetStats, log_pb2.GetStatsRequest(window=window))

    async def export_log(self, day: str) -> str:
        """The decisions of a day (YYYY-MM-DD) as Markdown."""

        async def receive(request: log_pb2.ExportLogRequest, **terms: Any) -> str:
            return "".join([part.markdown async for part in self._stub.ExportLog(request, **terms)])

        return await self._calls.call(receive, log_pb2.ExportLogRequest(day=day))

    async def forget_run(self, run_id: str, *, request_id: str = "") -> int:
        """Removes what belongs to a run (retention); returns how many entities."""
        request = log_pb2.ForgetRunRequest(request_id=request_id, run_id=run_id)
        return (await self._calls.mutate(self._stub.ForgetRun, request)).removed
