"""Calls to the pipeline service, one pipeline for each attempt at a task; its stages become assignments."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.contest import takes_over
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage, StageFailure, note_failure
from pointsman.services.orchestrator.domain.calls.workflow_status import answer_refused
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import (
    PIPELINE_ENDED,
    WRITES_TESTS,
    AssignmentEnd,
    Call,
    Capability,
    PipelineStatus,
    Purpose,
    Question,
    Reply,
    Severity,
    State,
    Trigger,
)
from pointsman.services.orchestrator.domain.model import Assignment, Delegation, Risk, Task
from pointsman.services.orchestrator.domain.run import Run

BARRIER_TIMER = "barrier/"
"""A timer for each task whose pipeline has a barrier, with the task's id behind it."""
BARRIER_GRACE_SECONDS = 1.0
"""How long after a barrier's time the run looks: the pipeline service has to resolve it first."""
BARRIER_OVERDUE_SECONDS = 10.0
"""How long the run waits before it looks again at a barrier that is still there after its time."""
_CAPABILITIES = {
    "PLAN": Capability.PLAN,
    "ARCH": Capability.DESIGN,
    "DESIGN": Capability.DESIGN,
    "DEV": Capability.CODE,
    "DOCS": Capability.CODE,
    WRITES_TESTS: Capability.CODE,
}
_TEST = "TEST"
NOT_JUDGED = "not judged: the verifier's proof failed first"


@dataclass(frozen=True, slots=True)
class StartPipeline:
    """Start the pipeline of one attempt at a task."""

    call_id: str
    pipeline_id: str
    task_id: str
    template: str
    earlier_pipeline_id: str
    """The attempt before, whose reflections are handed on; empty for the first."""
    barrier_timeout_seconds: float = 0.0
    """How long its barriers wait; 0 leaves it to the pipeline service."""
    lenient: bool = False
    """Whether it may go on past an unreadable judge."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Do something with a pipeline."""

    call_id: str
    pipeline_id: str
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class ForwardStageAnswer:
    """Pass a person's answer on."""

    call_id: str
    pipeline_id: str
    task_id: str
    reply: Reply
    stage: str
    text: str


@dataclass(frozen=True, slots=True)
class PipelineSeen:
    """How a task's pipeline is, and which stages are to be done now."""

    call_id: str
    task_id: str
    status: PipelineStatus
    delegations: tuple[Delegation, ...] = ()
    risks: tuple[Risk, ...] = ()
    reflections: tuple[str, ...] = ()
    """What earlier attempts taught, for the coder of this one."""
    failure: StageFailure | None = None
    """The stage that was just handed in failed."""
    barrier_due_at: datetime | None = None
    """When the first of its barriers times out, however many stages have arrived."""


def capability_of(stage: str, *, can_be_proven: bool) -> Capability:
    """Who can do a stage; whatever is not writing is judging, and tests are the verifier's where it can prove something."""
    kind = stage.partition(":")[0]
    found = _CAPABILITIES.get(stage) or _CAPABILITIES.get(kind, Capability.REVIEW)
    return Capability.VERIFY if kind == _TEST and found is Capability.REVIEW and can_be_proven else found


def _capability(run: Run, wanted: Capability) -> Capability:
    """Who does a stage in this run: a resolver writes where it is a resolver's."""
    return Capability.RESOLVE if wanted is Capability.CODE and run.order.resolver else wanted


def start_pipeline(builder: DecisionBuilder, task_id: str, template: str) -> None:
    """Start the pipeline of the attempt at a task that begins now."""
    task = builder.run.tasks[task_id]
    earlier = f"{builder.run.run_id}/{task_id}/{task.attempt - 1}" if task.attempt > 1 else ""
    order = builder.run.order
    builder.call(
        Call.START_PIPELINE,
        lambda call: StartPipeline(
            call, task.pipeline_id, task_id, template, earlier, order.barrier_timeout_seconds, order.lenient
        ),
        subject=task_id,
    )


def pipeline_advanced(builder: DecisionBuilder, answer: PipelineSeen) -> None:
    """Offer the delegated stages, and go on when every pipeline of the wave has ended."""
    task = builder.run.tasks[answer.task_id]
    builder.emit(
        events.PipelineAdvanced(answer.call_id, answer.task_id, task.pipeline_id, answer.status, answer.reflections)
    )
    if answer.failure is not None:
        note_failure(builder, answer.task_id, answer.failure)
    builder.named_risks(answer.risks)
    if answer.status in PIPELINE_ENDED:
        _withdraw_stages(builder, answer.task_id)
    offer_stages(builder, answer.task_id, answer.delegations)
    if answer.status is PipelineStatus.ESCALATED and builder.run.question is None:
        _ask_about_stage(builder, answer.task_id)
    if answer.barrier_due_at is not None and builder.in_state(State.DISPATCH, State.CODER_EXEC):
        _look_when_due(builder, answer.task_id, answer.barrier_due_at)
    advance_wave(builder)


def _look_when_due(builder: DecisionBuilder, task_id: str, due_at: datetime) -> None:
    left_seconds = (due_at - builder.now).total_seconds()
    builder.set_timer(
        f"{BARRIER_TIMER}{task_id}",
        left_seconds + BARRIER_GRACE_SECONDS if left_seconds > 0 else BARRIER_OVERDUE_SECONDS,
    )


def _ask_about_stage(builder: DecisionBuilder, task_id: str) -> None:
    said = builder.run.tasks[task_id].setbacks[-1:]
    reason = said[0] if said else "its barrier or its retries ran out"
    text = f"A stage of {task_id} cannot go on by itself ({reason}). Restart a stage, or skip it."
    builder.ask(Question.PIPELINE_ESCALATED, text, (task_id,))


def _withdraw_stages(builder: DecisionBuilder, task_id: str) -> None:
    """The pipeline has ended without waiting for these."""
    for item in (*builder.run.assignments.values(), *builder.run.held):
        if item.purpose is Purpose.STAGE and item.task_id == task_id:
            builder.end_assignment(item.assignment_id, AssignmentEnd.CANCELLED)


def offer_stages(builder: DecisionBuilder, task_id: str, delegations: Sequence[Delegation]) -> None:
    """Offer stages to agents, the verifier's first: judges wait for what it finds."""
    proven = builder.run.needs_verifier
    by_capability = [
        (_capability(builder.run, capability_of(item.stage, can_be_proven=proven)), item) for item in delegations
    ]
    for capability, delegation in sorted(by_capability, key=lambda pair: pair[0] is not Capability.VERIFY):
        if not _is_offered(builder.run, task_id, delegation):
            _offer_stage(builder, task_id, capability, delegation)


def _is_offered(run: Run, task_id: str, delegation: Delegation) -> bool:
    offered = {(item.task_id, item.delegation_id) for item in (*run.assignments.values(), *run.held)}
    return (task_id, delegation.delegation_id) in offered


def _is_being_proven(run: Run, task_id: str) -> bool:
    """Whether the verifier has yet to say what it finds about a task's work."""
    stages = (item for item in (*run.assignments.values(), *run.held) if item.purpose is Purpose.STAGE)
    return any(item.task_id == task_id and item.capability is Capability.VERIFY for item in stages)


def _offer_stage(builder: DecisionBuilder, task_id: str, capability: Capability, delegation: Delegation) -> None:
    run = builder.run
    if capability is Capability.REVIEW and _is_being_proven(run, task_id):
        if delegation not in run.tasks[task_id].deferred:
            builder.emit(events.StageDeferred(task_id, delegation.stage, delegation))
        return
    work = run.tasks[task_id].work
    judges = capability in (Capability.REVIEW, Capability.VERIFY)
    assignment = Assignment(
        "",
        Purpose.STAGE,
        capability,
        task_id,
        delegation.stage,
        delegation_id=delegation.delegation_id,
        node_context=delegation.node_context,
        directive=delegation.directive,
        nonce=delegation.nonce,
        patch=work.result_commit if work and judges else "",
        excluded_agent=author_of(run.tasks[task_id]) if judges else "",
        excluded_principals=_barred_from_code(builder, task_id, delegation.stage) if not judges else (),
        needs_repository=bool(run.order.repository_id),
    )
    if not takes_over(builder, assignment):
        builder.assign(assignment)


def _barred_from_code(builder: DecisionBuilder, task_id: str, stage: str) -> tuple[str, ...]:
    """Who wrote the tests first does not write their code, where another coder is there; else that is a risk."""
    tests = builder.run.tasks[task_id].start_of(stage)
    if tests is None or tests.stage != WRITES_TESTS or not tests.principal:
        return ()
    if builder.is_present(_capability(builder.run, Capability.CODE), (tests.principal,)):
        return (tests.principal,)
    statement = f"only the author of the tests of {task_id} was there to write its code: they count as the coder's own"
    builder.risk(f"own-tests-{task_id}", statement, severity=Severity.MEDIUM, task_id=task_id)
    return ()


def end_attempt(builder: DecisionBuilder, task_id: str) -> None:
    """Give an attempt up: its pipeline is cancelled, and what it has left open is withdrawn."""
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.send(Call.CANCEL_PIPELINE, Pipeline("", pipeline_id, task_id))
    _attempt_ended(builder, task_id, PipelineStatus.CANCELLED)


def author_of(task: Task) -> str:
    """Who wrote the work; that agent never judges it."""
    return task.work.author if task.work else ""


def advance_wave(builder: DecisionBuilder) -> None:
    """All started: into execution. All ended: into review."""
    wave = builder.run.wave_tasks.values()
    if builder.in_state(State.DISPATCH) and all(task.pipeline_status for task in wave):
        builder.transition(Trigger.DISPATCH_SUCCESS)
    elif builder.in_state(State.CODER_EXEC) and all(task.pipeline_status in PIPELINE_ENDED for task in wave):
        builder.transition(Trigger.CLAIMS_EVIDENCE_ARRIVED, "; ".join(map(_how_it_ended, wave)))


def _how_it_ended(task: Task) -> str:
    """What came of an attempt: claims with work, or none and why."""
    task_id, failed = task.outline.task_id, task.pipeline_status in (PipelineStatus.ABORTED, PipelineStatus.CANCELLED)
    if task.work is not None and not failed:
        claims = len(task.work.claims)
        return f"{task_id} handed in {claims} claim{'' if claims == 1 else 's'}"
    why = f": {task.setbacks[-1]}" if task.setbacks else ""
    return f"{task_id} was {str(task.pipeline_status).lower()}{why}" if failed else f"{task_id} handed in no work{why}"


def get_pipeline(builder: DecisionBuilder, task_id: str) -> None:
    """Ask how a task's pipeline is."""
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.call(Call.GET_PIPELINE, lambda call: Pipeline(call, pipeline_id, task_id), subject=task_id)


def _pipeline_gone(builder: DecisionBuilder, task_id: str) -> None:
    """The pipeline service does not know it any more: the attempt has failed."""
    _attempt_ended(builder, task_id, PipelineStatus.ABORTED)


def _attempt_ended(builder: DecisionBuilder, task_id: str, status: PipelineStatus) -> None:
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.emit(events.PipelineAdvanced("", task_id, pipeline_id, status))
    _withdraw_stages(builder, task_id)
    advance_wave(builder)


def _not_started(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.transition(Trigger.DISPATCH_FAILED, command.reason, is_replan=True)


def _stage_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    """The pipeline went another way: read its state."""
    for task_id, task in builder.run.wave_tasks.items():
        if task.pipeline_status not in PIPELINE_ENDED:
            get_pipeline(builder, task_id)


def _pipeline_missing(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    for task_id, task in builder.run.wave_tasks.items():
        if task.pipeline_status not in PIPELINE_ENDED:
            _pipeline_gone(builder, task_id)


CALLS = (
    PeerCall(Call.START_PIPELINE, StartPipeline, pipeline_advanced, _not_started),
    PeerCall(Call.COMPLETE_STAGE, CompleteStage, pipeline_advanced, _stage_refused),
    PeerCall(Call.FORWARD_STAGE_ANSWER, ForwardStageAnswer, pipeline_advanced, answer_refused),
    PeerCall(Call.GET_PIPELINE, Pipeline, pipeline_advanced, _pipeline_missing),
    PeerCall(Call.CANCEL_PIPELINE, Pipeline),
)
