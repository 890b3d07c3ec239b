"""What people ask of runs, and the router's decision about it."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.chassis.rpc.paging import seconds_of
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import ExecutionMode, Resume
from pointsman.services.orchestrator.domain.model import Budget, GivenCriterion, Order, ProofTerms, Routing
from pointsman.services.orchestrator.domain.rerun import Point
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.decode import results

STRONG, WEAK, VAGUE = 0.9, 0.7, 0.5
_RESERVED = re.compile(r"V[0-9]+")


def order(request: pb.SubmitRequest, routing: Routing, project: str, traceparent: str) -> Order:
    """What was submitted, and on which terms."""
    resumes = {pb.RESUME_ASK: Resume.ASK, pb.RESUME_YES: Resume.YES}
    return Order(
        routing,
        project,
        session_id=request.session_id,
        resume=resumes.get(request.resume, Resume.NO),
        auto_resume=request.auto_resume,
        repository_id=request.repository.id,
        base_commit=request.repository.base_commit,
        criteria=given_criteria(request),
        execution_mode=enums.EXECUTION_MODE.or_default(request.execution_mode, ExecutionMode.QUALITY_GATE),
        template=request.template,
        require_audit=request.require_audit,
        research_expected=max(1, request.research_expected),
        priority=request.priority,
        labels=dict(request.labels),
        traceparent=traceparent,
        barrier_timeout_seconds=seconds_of(request.barrier_timeout),
        lenient=request.lenient,
        proof_terms=proof_terms(request.proof_terms),
        crew=tuple(enums.CAPABILITY.all_to_domain(request.crew.capabilities)),
        reserved=request.crew.reserved,
        parallel=request.crew.parallel,
        best_of=request.crew.best_of,
        review_plan=request.review_plan,
        brings_plan=request.brings_plan,
    )


def proof_terms(message: runs.ProofTerms) -> ProofTerms:
    """What the proof has to show besides the commands."""
    required = enums.GRADE.to_domain(message.require_grade) if message.require_grade else None
    return ProofTerms(tuple(message.fixes), message.held_out.sha256, required, message.tests_may_change)


def given_criteria(request: pb.SubmitRequest) -> tuple[GivenCriterion, ...]:
    """What the user said must hold: each verify command is a criterion of its own, then those in words."""
    commands_given = [tuple(item.arguments) for item in request.verify_commands]
    if request.verify_command and tuple(request.verify_command) not in commands_given[:1]:
        commands_given.insert(0, tuple(request.verify_command))
    proofs = [
        GivenCriterion(f"V{number}", f"`{shlex.join(command)}` succeeds"[:4096], command)
        for number, command in enumerate(commands_given, 1)
    ]
    stated = [
        GivenCriterion(c.id, c.statement, tuple(c.verify_command), c.required, tuple(c.test_files))
        for c in request.acceptance_criteria
    ]
    for place, item in enumerate(stated):
        earlier = {other.criterion_id for other in stated[:place]}
        if item.criterion_id in earlier or _RESERVED.fullmatch(item.criterion_id):
            raise invalid_field(f"acceptance_criteria[{place}].id", "must be unique, and not V1, V2, …")
    return (*proofs, *stated)


def routing(decided: decision.RoutingDecision) -> Routing:
    """The router's decision as the run keeps it: STRONG 0.9, WEAK 0.7, WEAK with vague terms 0.5."""
    strong = decided.confidence == decision.CONFIDENCE_STRONG
    vague = any(r.trigger == decision.PLANNING_TRIGGER_AMBIGUOUS_SCOPE for r in decided.debate_reasons)
    return Routing(
        decided.decision_id,
        STRONG if strong else VAGUE if vague else WEAK,
        debate=decided.debate == decision.DEBATE_PLANNING,
        high_stakes=decided.stakes == decision.STAKES_HIGH,
    )


def budget(message: runs.Budget, default: Budget) -> Budget:
    """What the run may spend, with the server's defaults for what is not said."""
    wall_clock = seconds_of(message.wall_clock)
    return Budget(
        message.assignments or default.assignments,
        message.transitions or default.transitions,
        message.fan_out or default.fan_out,
        message.tokens or default.tokens,
        message.cost_micros or default.cost_micros,
        wall_clock or default.wall_clock_seconds,
    )


def point(message: pb.RerunPoint) -> Point:
    """From where a run goes on that does again what another did."""
    return Point(message.wave, message.task_id)


def with_crew(order: Order, request: pb.RerunRequest) -> Order:
    """The terms with the workers that come along this time; as many tasks at once as before, where they do not say."""
    crew = request.crew
    capabilities = tuple(enums.CAPABILITY.all_to_domain(crew.capabilities))
    parallel, best_of = crew.parallel or order.parallel, crew.best_of or order.best_of
    return replace(order, crew=capabilities, reserved=crew.reserved, parallel=parallel, best_of=best_of)


def answer(request: pb.AnswerRequest, principal: str) -> commands.Answer:
    """A person's answer."""
    raised = budget(request.budget, Budget(0, 0, 0, 0, 0, 0.0)) if request.HasField("budget") else None
    return commands.Answer(
        request.run_id,
        request.question_id,
        enums.ANSWER_KIND.required(request.answer),
        request.text,
        request.confidence if request.HasField("confidence") else None,
        raised,
        request.task_id,
        request.stage,
        results.plan(request.plan) if request.HasField("plan") else None,
        principal,
    )


def state_names(values: Sequence[runs.RunState.ValueType]) -> frozenset[str]:
    """States of a filter by their names."""
    return frozenset(map(str, enums.STATE.all_to_domain(values)))
