"""The span of an agent's work on an assignment, below the span of its transition; only where spans are exported."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pointsman._shared.otlp import derived_span_id, exports_genai, exports_spans
from pointsman._shared.otlp.span_record import Kind, SpanRecord, SpanTemplate, Value, now_ns, span_id_in
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1.assignment_pb2 import PURPOSE_PLAN, Purpose
from pointsman.usage.output import ToolCall

if TYPE_CHECKING:
    from pointsman._shared.otlp.recorder import Recorder

DONE, GIVEN_UP, NOT_TAKEN, LOST, STOPPED = "done", "given_up", "not_taken", "lost", "stopped"


class WorkSpans:
    """Records a span for each assignment that the worker's agents work on."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Records during the block, if the standard variables name a collector; exports the rest at its end."""
        if exports_spans() and self._recorder is None:
            from pointsman._shared.otlp.recorder import new_recorder  # noqa: PLC0415 - slow to import

            self._recorder = new_recorder()
        try:
            yield
        finally:
            recorder, self._recorder = self._recorder, None
            if recorder is not None:
                await asyncio.to_thread(recorder.close)

    def context_of(self, lease: pb.Lease) -> str:
        """The trace context of the work: its own span, or that of the assignment where no spans are recorded."""
        outer = lease.assignment.traceparent
        if self._recorder is None or not outer:
            return outer
        return f"{outer[:36]}{_span_id(lease).hex()}{outer[52:]}"

    def record(
        self, lease: pb.Lease, agent: tuple[str, str], begin_ns: int, outcome: str, extra: Mapping[str, Value]
    ) -> None:
        """Records the span of one assignment that has ended."""
        assignment = lease.assignment
        if self._recorder is None or not assignment.traceparent:
            return
        agent_id, role = agent
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "pointsman",
            "gen_ai.agent.id": agent_id,
            "gen_ai.agent.name": role,
            "gen_ai.conversation.id": assignment.run_id,
            "pointsman.run.id": assignment.run_id,
            "pointsman.assignment.id": assignment.id,
            "pointsman.assignment.purpose": Purpose.Name(assignment.purpose).removeprefix("PURPOSE_"),
            "pointsman.assignment.attempt": assignment.attempt,
            "pointsman.assignment.outcome": outcome,
            **extra,
        }
        failed = outcome != DONE
        if failed:
            attributes["error.type"] = outcome
        name = f"invoke_agent {role}".strip()
        outer = assignment.traceparent
        template = SpanTemplate("agent", name, Kind.CLIENT, tuple(attributes.items()), failed)
        own_id, end_ns = _span_id(lease), now_ns()
        self._recorder.record(SpanRecord(template, outer, span_id_in(outer), own_id, begin_ns, end_ns))
        if exports_genai() and assignment.purpose == PURPOSE_PLAN:
            template = SpanTemplate("agent", "plan", Kind.INTERNAL, _genai(lease, "plan", agent_id), failed)
            self._recorder.record(SpanRecord(template, outer, own_id, _span_id(lease, "plan"), begin_ns, end_ns))

    def record_tools(self, lease: pb.Lease, calls: Sequence[ToolCall]) -> None:
        """Records a span for each tool call of an assignment's agent, if the GenAI conventions are opted in to."""
        outer = lease.assignment.traceparent
        if self._recorder is None or not outer or not exports_genai():
            return
        for number, call in enumerate(calls):
            tool = (("gen_ai.tool.name", call.kind), ("gen_ai.tool.call.id", call.id))
            attributes = (*_genai(lease, "execute_tool"), *tool)
            template = SpanTemplate("agent", f"execute_tool {call.kind}", Kind.INTERNAL, attributes, call.failed)
            own_id = _span_id(lease, f"tool#{number}")
            end_ns = call.end_ns or call.begin_ns
            self._recorder.record(SpanRecord(template, outer, _span_id(lease), own_id, call.begin_ns, end_ns))


def _genai(lease: pb.Lease, operation: str, agent_id: str = "") -> tuple[tuple[str, Value], ...]:
    run_id = lease.assignment.run_id
    return (
        ("gen_ai.operation.name", operation),
        ("gen_ai.provider.name", "pointsman"),
        ("gen_ai.agent.id", agent_id),
        ("gen_ai.conversation.id", run_id),
        ("pointsman.run.id", run_id),
        ("pointsman.assignment.id", lease.assignment.id),
    )


def _span_id(lease: pb.Lease, part: str = "work") -> bytes:
    """The span id of the work under a lease, or of a part of it: the same however often it is recorded."""
    return derived_span_id(f"{lease.assignment.id}#{part}#{lease.epoch}")
