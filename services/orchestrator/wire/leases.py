"""What an agent is given with a lease: the typed bundle, put together from the run's documents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.completion import lease_lost
from pointsman.services.orchestrator.domain.enums import Capability, Purpose, TaskStatus
from pointsman.services.orchestrator.domain.model import NOTHING_SPENT, Assignment, GivenCriterion, Usage
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.views import AgentRow, LeaseView, PollResult
from pointsman.services.orchestrator.wire.handoffs import revive, seen

_PURPOSES = {value: assignments.Purpose.Value(f"PURPOSE_{value}") for value in Purpose}
_CAPABILITIES = {value: assignments.Capability.Value(f"CAPABILITY_{value}") for value in Capability}


@dataclass(frozen=True)
class RunDocuments:
    """A run with what was handed in for it; each document is read once."""

    run: Run
    documents: Mapping[str, str]

    @cached_property
    def plan(self) -> work.Plan:
        """The plan."""
        plan: work.Plan = seen(self.documents.get("plan", ""), work.Plan)
        return plan

    @cached_property
    def budget_left(self) -> runs.Budget:
        """What may still be spent."""
        budget, spent = self.run.budget, self.run.spent
        return runs.Budget(
            assignments=max(0, budget.assignments - spent.assignments),
            tokens=max(0, budget.tokens - spent.tokens),
            cost_micros=max(0, budget.cost_micros - spent.cost_micros),
        )

    @cached_property
    def research(self) -> list[handoff.ResearchReport]:
        """The usable reports."""
        names = sorted(name for name, body in self.documents.items() if name.startswith("research/") and body)
        return [seen(self.documents[name], handoff.ResearchReport) for name in names]

    def coder_result(self, task_id: str) -> handoff.CoderResult:
        """What the coder of a task handed in."""
        made: handoff.CoderResult = seen(self.documents.get(f"work/{task_id}", ""), handoff.CoderResult)
        return made

    def criteria(self, task_id: str) -> list[handoff.AcceptanceCriterion]:
        """A task's criteria."""
        return [c for task in self.plan.tasks if task.id == task_id for c in task.acceptance_criteria]

    def handoff(self, task_id: str) -> handoff.CoderHandoff:
        """The typed bundle of a task."""
        planned = next((task for task in self.plan.tasks if task.id == task_id), work.PlanTask(id=task_id))
        task = self.run.tasks[task_id]
        return handoff.CoderHandoff(
            master_task=handoff.MasterTask(
                run_id=self.run.run_id,
                task_id=task_id,
                attempt=task.attempt,
                name=planned.name,
                intent=self.run.intent[:60000],
                actions=planned.actions,
                files=planned.files,
                requirement=planned.requirement,
                rejections=[reason[:4000] for reason in task.rejections],
                reflections=[said[:4000] for said in (*task.reflections, *task.setbacks)][-16:],
            ),
            detail_design=seen(self.documents.get("design", ""), handoff.DetailDesign),
            acceptance_criteria=planned.acceptance_criteria,
            research_bundle=self.research,
        )


def all_of(given: PollResult) -> list[agent.Lease]:
    """Every lease that an agent was given, with its work."""
    documents_of = {run_id: RunDocuments(run, given.documents.get(run_id, {})) for run_id, run in given.runs.items()}
    return [lease(held, documents_of[held.run_id]) for held in given.leases]


def lease(held: LeaseView, documents: RunDocuments) -> agent.Lease:
    """A lease with its work."""
    item: Assignment = from_json(held.body, Assignment)
    message = agent.Lease(epoch=held.epoch, budget_left=documents.budget_left)
    _set_time(message.expires_at, held.lease_until_us)
    _assign(message.assignment, held, item, documents.run)
    _WORK[item.purpose](message, item, documents)
    return message


def _assign(message: assignments.Assignment, held: LeaseView, item: Assignment, run: Run) -> None:
    """Tell of an assignment in an agent's hands; field by field, for a message in another one is written twice."""
    message.id, message.run_id = held.assignment_id, held.run_id
    message.purpose, message.capability = _PURPOSES[item.purpose], _CAPABILITIES[item.capability]
    message.task_id, message.stage = item.task_id, item.stage
    message.attempt, message.priority = held.attempt, held.priority
    message.state, message.agent_id = assignments.ASSIGNMENT_STATE_LEASED, held.agent_id
    message.traceparent = held.traceparent
    _set_time(message.deadline, held.deadline_us)
    _set_time(message.created_at, held.created_at_us)
    if run.order.repository_id:
        message.repository.id = run.order.repository_id
        message.repository.base_commit = run.accepted_commit or run.order.base_commit
    if run.accepted_bundle:
        message.base_bundle.CopyFrom(revive(run.accepted_bundle, handoff.ArtifactRef()))
    tried = run.assignments.get(held.assignment_id)
    if tried and tried.setbacks:
        message.earlier_failures.extend(tried.setbacks)


def _set_time(message: Timestamp, microseconds: int) -> None:
    message.seconds, rest = divmod(microseconds, 1_000_000)
    message.nanos = rest * 1000


def agent_row(row: AgentRow, working: frozenset[str], usage: Mapping[str, Usage], lost_us: int) -> agent.Agent:
    """An agent and how it is; one that was not heard of since then is lost, unless it holds a lease."""
    state = agent.AGENT_STATE_IDLE if row.last_seen_us > lost_us else agent.AGENT_STATE_LOST
    if row.agent_id in working:
        state = agent.AGENT_STATE_WORKING
    spent = usage.get(row.agent_id, NOTHING_SPENT)
    message = agent.Agent(
        id=row.agent_id,
        capabilities=[_CAPABILITIES[item] for item in row.capabilities],
        state=state,
        usage=runs.Usage(assignments=spent.assignments, tokens=spent.tokens, cost_micros=spent.cost_micros),
    )
    message.last_seen_at.CopyFrom(timestamp(row.last_seen_us))
    return message


def assignment_row(row: Any) -> assignments.Assignment:
    """An assignment as it stands in its row."""
    item: Assignment = from_json(row.body, Assignment)
    message = assignments.Assignment(
        id=row.assignment_id,
        run_id=row.entity_id,
        purpose=_PURPOSES[item.purpose],
        capability=_CAPABILITIES[item.capability],
        task_id=item.task_id,
        stage=item.stage,
        attempt=row.attempt,
        state=assignments.AssignmentState.Value(f"ASSIGNMENT_STATE_{row.status}"),
        agent_id=row.agent_id,
        priority=row.priority,
        traceparent=row.traceparent,
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


def _plan(message: agent.Lease, item: Assignment, documents: RunDocuments) -> None:
    run = documents.run
    message.plan.intent = run.intent[:60000]
    message.plan.reasons.extend(reason[:4000] for reason in run.reasons[-16:])
    given = run.given_criteria
    message.plan.acceptance_criteria.extend(criterion(item) for item in given)
    message.plan.verify_command.extend(next((item.command for item in given if item.command), ()))
    message.plan.research.extend(documents.research)
    message.plan.feedback.extend(
        handoff.Feedback(
            key=key,
            statement=open_one.remark.statement,
            counter=open_one.remark.counter,
            severity=handoff.Severity.Value(f"SEVERITY_{open_one.remark.severity}"),
            blocking=open_one.remark.blocking,
        )
        for key, open_one in run.remarks.items()
    )
    if item.purpose is not Purpose.PLAN or run.plan_count:
        message.plan.current_plan.CopyFrom(documents.plan)


def _debate(message: agent.Lease, _item: Assignment, documents: RunDocuments) -> None:
    rounds = max((open_one.rounds for open_one in documents.run.remarks.values()), default=0)
    message.debate.CopyFrom(
        work.DebateRequest(intent=documents.run.intent[:60000], plan=documents.plan, round=rounds + 1)
    )


def _research(message: agent.Lease, item: Assignment, documents: RunDocuments) -> None:
    message.research.intent = documents.run.intent[:60000]
    message.research.slot.id, message.research.slot.question = item.slot, documents.run.slots[item.slot].question


def _design(message: agent.Lease, _item: Assignment, documents: RunDocuments) -> None:
    message.design.CopyFrom(
        work.DesignRequest(intent=documents.run.intent[:60000], plan=documents.plan, research=documents.research)
    )


def _stage(message: agent.Lease, item: Assignment, documents: RunDocuments) -> None:
    message.stage.CopyFrom(
        work.StageRequest(
            stage=item.stage,
            pipeline_id=documents.run.tasks[item.task_id].pipeline_id,
            node_context_json=item.node_context,
            directive=item.directive,
            handoff=documents.handoff(item.task_id),
        )
    )
    if documents.run.tasks[item.task_id].work is not None:
        message.stage.coder_result.CopyFrom(documents.coder_result(item.task_id))


def _review(message: agent.Lease, item: Assignment, documents: RunDocuments) -> None:
    message.review.CopyFrom(
        work.ReviewRequest(handoff=documents.handoff(item.task_id), coder_result=documents.coder_result(item.task_id))
    )


def criterion(item: GivenCriterion) -> handoff.AcceptanceCriterion:
    """A given criterion on the wire."""
    return handoff.AcceptanceCriterion(
        id=item.criterion_id,
        statement=item.statement,
        verify_command=item.command,
        required=item.required,
        test_files=item.test_files,
    )


def _standing(run: Run) -> list[handoff.AcceptanceCriterion]:
    """The user's commands that hold already, or will once their task of this wave is accepted."""
    begun = {
        c.criterion_id
        for key, task in run.tasks.items()
        if task.status is TaskStatus.ACCEPTED or key in run.wave
        for c in task.outline.criteria
    }
    return [criterion(c) for c in run.given_criteria if c.command and c.required and c.criterion_id in begun]


def _verify(message: agent.Lease, _item: Assignment, documents: RunDocuments) -> None:
    run = documents.run
    message.verify.standing_criteria.extend(_standing(run))
    message.verify.accepted_commit = run.accepted_commit or run.order.base_commit
    if run.accepted_bundle:
        message.verify.accepted_bundle.CopyFrom(revive(run.accepted_bundle, handoff.ArtifactRef()))
    for task_id, task in run.wave_tasks.items():
        if task.judgement.accepted is None and task.work is not None:
            message.verify.tasks.append(
                work.VerifyTask(
                    task_id=task_id,
                    acceptance_criteria=documents.criteria(task_id),
                    coder_result=documents.coder_result(task_id),
                )
            )


_WORK: Mapping[Purpose, Callable[[agent.Lease, Assignment, RunDocuments], None]] = {
    Purpose.PLAN: _plan,
    Purpose.PATCH: _plan,
    Purpose.PLAN_ANSWER: _plan,
    Purpose.DEBATE: _debate,
    Purpose.RESEARCH: _research,
    Purpose.DESIGN: _design,
    Purpose.STAGE: _stage,
    Purpose.REVIEW: _review,
    Purpose.VERIFY: _verify,
}
