"""What an agent is given with a lease: the typed bundle, put together from the run's documents."""

from collections.abc import Callable, Mapping, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.orchestrator.domain.enums import WRITES_TESTS, WRITING, Capability, Purpose, TaskStatus
from pointsman.services.orchestrator.domain.model import Assignment, Task
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.views import LeaseView, PollResult
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.encode.documents import RunDocuments, revive
from pointsman.services.orchestrator.wire.encode.runs import criterion, held_out_ref

_JUDGING = (Capability.REVIEW, Capability.VERIFY)


def all_of(given: PollResult) -> list[agent.Lease]:
    """Every lease that an agent was given, with its work."""
    documents_of = {run_id: RunDocuments(run, given.documents.get(run_id, {})) for run_id, run in given.runs.items()}
    return [lease(held, documents_of[held.run_id]) for held in given.leases]


def lease(held: LeaseView, documents: RunDocuments) -> agent.Lease:
    """A lease with its work."""
    item: Assignment = from_json(held.body, Assignment)
    message = agent.Lease(epoch=held.epoch, secret=held.secret, budget_left=documents.budget_left(item))
    _set_time(message.expires_at, held.lease_until_us)
    _assign(message.assignment, held, item, documents.run)
    _WORK[item.purpose](message, item, documents)
    return message


def _assign(message: assignments.Assignment, held: LeaseView, item: Assignment, run: Run) -> None:
    """Tell of an assignment in an agent's hands; field by field, for a message in another one is written twice."""
    message.id, message.run_id = held.assignment_id, held.run_id
    message.purpose, message.capability = enums.PURPOSE.to_wire(item.purpose), enums.CAPABILITY.to_wire(item.capability)
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
            severity=enums.SEVERITY.to_wire(open_one.remark.severity),
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
            nonce=item.nonce if item.capability not in _JUDGING else "",
            handoff=documents.handoff(item.task_id),
            finding=documents.finding(item.task_id) if item.capability is Capability.REVIEW else None,
        )
    )
    if item.capability is Capability.VERIFY:
        _ask_proof(message.stage.verify, (item.task_id,), documents, item.contender)
        return
    task = documents.run.tasks[item.task_id]
    if item.capability in WRITING and (start := task.start_of(item.stage)):
        message.stage.first.CopyFrom(documents.work_of(item.task_id, start.stage))
    if documents.run.tasks[item.task_id].work is not None:
        message.stage.coder_result.CopyFrom(documents.coder_result(item.task_id))


def _review(message: agent.Lease, item: Assignment, documents: RunDocuments) -> None:
    message.review.CopyFrom(
        work.ReviewRequest(
            handoff=documents.handoff(item.task_id),
            coder_result=documents.coder_result(item.task_id),
            finding=documents.finding(item.task_id),
        )
    )


def _standing(run: Run, task_ids: Sequence[str]) -> list[handoff.AcceptanceCriterion]:
    """The user's commands that hold already, or will once one of these tasks is accepted."""
    begun = {
        c.criterion_id
        for key, task in run.tasks.items()
        if task.status is TaskStatus.ACCEPTED or key in task_ids
        for c in task.outline.criteria
    }
    return [criterion(c) for c in run.given_criteria if c.command and c.required and c.criterion_id in begun]


def _verify(message: agent.Lease, _item: Assignment, documents: RunDocuments) -> None:
    wave = documents.run.wave_tasks.items()
    undecided = [key for key, task in wave if task.judgement.accepted is None and task.work is not None]
    _ask_proof(message.verify, undecided, documents)


def _ask_proof(
    message: work.VerifyRequest, task_ids: Sequence[str], documents: RunDocuments, contender: int = 0
) -> None:
    """What the verifier has to know: the work of these tasks, and what it is merged onto."""
    run = documents.run
    message.standing_criteria.extend(_standing(run, task_ids))
    message.accepted_commit = run.accepted_commit or run.order.base_commit
    if run.accepted_bundle:
        message.accepted_bundle.CopyFrom(revive(run.accepted_bundle, handoff.ArtifactRef()))
    if run.is_last_work(task_ids):
        terms = run.proof_terms
        message.delivery_terms.fixes.extend(terms.fixes)
        if held_out := held_out_ref(terms):
            message.delivery_terms.held_out.CopyFrom(held_out)
    every = run.proof_terms.tests_may_change
    changing = {task.id for task in documents.plan.tasks if every or (task.tests_may_change and run.plan_approved)}
    for task_id in task_ids:
        message.tasks.append(
            work.VerifyTask(
                task_id=task_id,
                acceptance_criteria=documents.criteria(task_id),
                coder_result=documents.coder_result(task_id, contender),
                tests_may_change=task_id in changing,
                earlier=None if contender else documents.finding(task_id),
            )
        )
        if not contender and _has_tests_of_another(run.tasks[task_id]):
            message.tasks[-1].first.CopyFrom(documents.work_of(task_id, WRITES_TESTS))


def _has_tests_of_another(task: Task) -> bool:
    """Whether somebody else wrote tests before the code that there is now: they judge it."""
    tests, made = task.first, task.work
    if tests is None or made is None or tests.stage != WRITES_TESTS:
        return False
    return bool(tests.principal and made.principal) and tests.principal != made.principal


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
