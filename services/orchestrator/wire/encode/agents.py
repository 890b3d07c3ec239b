"""Agents, their assignments and what became of their results."""

from collections.abc import Mapping, Sequence
from typing import Any

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.completion import lease_lost
from pointsman.services.orchestrator.domain.model import NOTHING_SPENT, Assignment, Usage
from pointsman.services.orchestrator.domain.views import AgentRow, Pause
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.encode.outputs import transcript


def agent_row(row: AgentRow, working: frozenset[str], usage: Mapping[str, Usage], lost_us: int) -> agent.Agent:
    """An agent and how it is; one that was not heard of since then is lost, unless it holds a lease."""
    state = agent.AGENT_STATE_IDLE if row.last_seen_us > lost_us else agent.AGENT_STATE_LOST
    if row.agent_id in working:
        state = agent.AGENT_STATE_WORKING
    spent = usage.get(row.agent_id, NOTHING_SPENT)
    message = agent.Agent(
        id=row.agent_id,
        capabilities=[enums.CAPABILITY.to_wire(item) for item in row.capabilities],
        state=state,
        repository_ids=row.repository_ids,
        usage=runs.Usage(assignments=spent.assignments, tokens=spent.tokens, cost_micros=spent.cost_micros),
    )
    message.account = row.account
    for one in row.offers:
        message.repositories.add(id=one.id, name=one.name, branch=one.branch, head=one.head, verify=one.verify)
    message.last_seen_at.CopyFrom(timestamp(row.last_seen_us))
    return message


def add_pause(message: agent.Agent, pause: Pause | None) -> None:
    """Until when the agent's account rests, and why."""
    if pause is not None:
        message.paused_until.CopyFrom(timestamp(pause.until_us))
        message.pause_reason = pause.reason


def assignment_row(row: Any, printed: Sequence[Any] = ()) -> assignments.Assignment:
    """An assignment as it stands in its row, with the transcripts of what was printed under its leases."""
    item: Assignment = from_json(row.body, Assignment)
    message = assignments.Assignment(
        id=row.assignment_id,
        run_id=row.entity_id,
        purpose=enums.PURPOSE.to_wire(item.purpose),
        capability=enums.CAPABILITY.to_wire(item.capability),
        task_id=item.task_id,
        stage=item.stage,
        attempt=row.attempt,
        state=assignments.AssignmentState.Value(f"ASSIGNMENT_STATE_{row.status}"),
        agent_id=row.agent_id,
        priority=row.priority,
        traceparent=row.traceparent,
        transcripts=map(transcript, printed),
    )
    message.deadline.CopyFrom(timestamp(row.deadline_us))
    message.created_at.CopyFrom(timestamp(row.created_at_us))
    return message


def outcome(assignment_id: str, answer: commands.CompletionOutcome) -> agent.CompletionOutcome:
    """What became of a result."""
    if answer.accepted:
        return agent.CompletionOutcome(assignment_id=assignment_id, accepted=True)
    if answer.refusal:
        return _refused(assignment_id, answer.refusal, answer.problem)
    return agent.CompletionOutcome(
        assignment_id=assignment_id,
        reason=common.ERROR_REASON_INVALID_FIELD,
        message=f"{answer.field}: {answer.problem}",
        field=answer.field,
    )


def refused(assignment_id: str, refusal: Refusal) -> agent.CompletionOutcome:
    """Why a result was not taken."""
    return _refused(assignment_id, str(refusal.reason), refusal.message)


def returned(assignment_id: str, *, held: bool) -> agent.CompletionOutcome:
    """Whether a lease was taken back."""
    if held:
        return agent.CompletionOutcome(assignment_id=assignment_id, accepted=True)
    return refused(assignment_id, lease_lost(assignment_id, "another agent holds it"))


def _refused(assignment_id: str, reason: str, message: str) -> agent.CompletionOutcome:
    number = common.ErrorReason.Value(f"ERROR_REASON_{reason}")
    return agent.CompletionOutcome(assignment_id=assignment_id, reason=number, message=message)
