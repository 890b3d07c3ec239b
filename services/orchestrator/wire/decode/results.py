"""What agents hand in."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pointsman._shared.excerpt import excerpt
from pointsman._shared.test_commands import is_bare_test_run
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import proof_pb2 as proofs
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.commands import MalformedResult, Result
from pointsman.services.orchestrator.domain.enums import Severity
from pointsman.services.orchestrator.domain.model import (
    ClaimOutline,
    Criterion,
    Plan,
    Remark,
    Risk,
    SlotOutline,
    TaskOutline,
    Usage,
    Work,
)
from pointsman.services.orchestrator.domain.views import BranchHead, OfferedRepository, ProviderLimit
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.decode.documents import document

NO_REMARK = "no-remark"
MOST_USED = 10**15
"""More than any provider sells; with this bound the sums of a run stay within 64 bits, whatever agents say."""


def usage(message: Any) -> Usage:
    """What an agent says that it spent."""
    said = (message.tokens, message.cost_micros, message.unpriced_tokens)
    tokens, cost_micros, unpriced_tokens = (min(number, MOST_USED) for number in said)
    return Usage(tokens=tokens, cost_micros=cost_micros, unpriced_tokens=unpriced_tokens)


def provider_limit(message: agent.ProviderLimit) -> ProviderLimit:
    """A limit that an agent ran into."""
    reset_us = message.reset_at.ToMicroseconds() if message.HasField("reset_at") else 0
    return ProviderLimit(agent.LimitKind.Name(message.kind).removeprefix("LIMIT_KIND_"), reset_us, message.message)


def offers(message: agent.Wanted) -> tuple[OfferedRepository, ...]:
    """What an agent says about the repositories that it has."""
    return tuple(_offer(one) for one in message.repositories if one.id in message.repository_ids)


def _offer(message: agent.OfferedRepository) -> OfferedRepository:
    heads = tuple(BranchHead(head.branch, head.commit) for head in message.branches)
    return OfferedRepository(message.id, message.name, message.branch, message.head, tuple(message.verify), heads)


def result(agent_id: str, completion: agent.Completion) -> Result:
    """What an agent hands in; what cannot be taken says which field is at fault."""
    kind = completion.WhichOneof("result")
    if kind is None:
        return MalformedResult("result", "nothing was handed in")
    taken: Result = _RESULTS[kind](agent_id, getattr(completion, kind))
    return taken


def plan(message: work.Plan) -> Plan:
    """A planner's plan."""
    tasks = tuple(
        TaskOutline(t.id, t.name, _criteria(t.acceptance_criteria), tuple(t.files), tuple(t.depends))
        for t in message.tasks
    )
    slots = tuple(SlotOutline(slot.id, slot.question) for slot in message.research_slots)
    risks = tuple(_risk(risk) for risk in message.residual_risks)
    return Plan(tasks, slots, message.confidence, document(message), risks=risks)


def _criteria(messages: Iterable[handoff.AcceptanceCriterion]) -> tuple[Criterion, ...]:
    return tuple(Criterion(c.id, c.required, bool(c.verify_command), tuple(c.test_files)) for c in messages)


def _plan_result(_agent_id: str, message: work.Plan) -> Result:
    return commands.PlanResult(plan(message))


def _review_result(_agent_id: str, message: handoff.ReviewDecision) -> Result:
    if message.review_level == handoff.REVIEW_LEVEL_ORCHESTRATOR:
        return _debate_result(message)
    verdict = enums.REVIEW_VERDICT.required(message.decision)
    return commands.ReviewResult(
        verdict,
        tuple(message.rejected_claims),
        tuple(item.statement for item in message.feedback),
        (*map(_risk, message.residual_risks), *_bare_runs(message.evidence)),
    )


def _debate_result(message: handoff.ReviewDecision) -> commands.DebateResult:
    """The critic's remarks and risks; a rejection without a remark is one itself, so that it cannot pass the plan."""
    remarks = tuple(_remark(item) for item in message.feedback)
    if not remarks and message.decision != handoff.REVIEW_VERDICT_PASS:
        blocking = message.decision == handoff.REVIEW_VERDICT_REPLAN
        remarks = (Remark(NO_REMARK, "the critic wants another plan and does not say why", blocking=blocking),)
    return commands.DebateResult(remarks, tuple(_risk(risk) for risk in message.residual_risks))


def _remark(item: handoff.Feedback) -> Remark:
    return Remark(item.key, item.statement, item.counter, severity(item.severity), item.blocking)


def severity(value: int) -> Severity:
    """How bad it is; not said means MEDIUM."""
    return enums.SEVERITY.or_default(value, Severity.MEDIUM)


def _risk(item: handoff.ResidualRisk) -> Risk:
    return Risk(item.key, item.statement, severity(item.severity), item.task_id)


def _answers_result(_agent_id: str, message: work.FeedbackAnswers) -> Result:
    settled = tuple(item.key for item in message.answers if item.accepted)
    statement = "; ".join(item.statement for item in message.answers)[:2000]
    return commands.AnswersResult(settled, statement, message.confidence)


def _research_result(agent_id: str, message: handoff.ResearchReport) -> Result:
    for name in ("summary_md", "memory_jsonl"):
        if not _is_present(getattr(message, name)):
            return MalformedResult(f"research.{name}", "is required and must not be empty")
    problem = _broken_line(message.memory_jsonl.text)
    if problem:
        return MalformedResult("research.memory_jsonl", problem)
    signed = handoff.ResearchReport()
    signed.CopyFrom(message)
    signed.agent_id = agent_id
    return commands.ResearchResult(message.confidence, document(signed), message.is_survey)


def _is_present(body: handoff.Document) -> bool:
    return bool(body.text.strip()) or body.HasField("artifact")


def _broken_line(text: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                json.loads(line)
            except (ValueError, RecursionError):
                return f"line {number} is no JSON"
    return ""


def _design_result(_agent_id: str, message: handoff.DetailDesign) -> Result:
    if not _is_present(message.design_md):
        return MalformedResult("design.design_md", "is required and must not be empty")
    return commands.DesignResult(document(message))


def _stage_result(agent_id: str, message: work.StageResult) -> Result:
    made: Work | MalformedResult | None = None
    if message.HasField("coder_result"):
        made = coder_work(agent_id, message.coder_result)
    if isinstance(made, MalformedResult):
        return made
    route, finding = message.route, message.finding
    if message.HasField("route") and route.verdict not in ("PASS", "FAIL"):
        return MalformedResult("stage.route.verdict", "must be PASS or FAIL")
    risks = (*map(_risk, message.residual_risks), *_bare_runs(message.evidence))
    return commands.StageResult(
        route.verdict, route.route, severity(route.severity) if route.severity else None, route.hint,
        message.transcript, message.report_md.text, made, risks,
        *((_finding(finding), document(finding)) if message.HasField("finding") else ()),
    )  # fmt: skip


def _bare_runs(evidence: Iterable[handoff.Evidence]) -> Iterator[Risk]:
    """What a judge ran in the author's tree, with the author's settings, and not in a proof of its own."""
    for item in evidence:
        if item.kind == handoff.EVIDENCE_KIND_COMMAND and is_bare_test_run(item.command):
            statement = (
                f"a judge ran `{shlex.join(item.command)}` itself, in the author's tree with the author's settings"
            )
            yield Risk("bare-run", statement[:4096], Severity.MEDIUM)


def coder_work(agent_id: str, message: handoff.CoderResult) -> Work | MalformedResult:
    """A coder's work; claims and evidence must fit together."""
    repeated = _repeated(claim.id for claim in message.claims) or _repeated(item.id for item in message.evidence)
    if repeated:
        return MalformedResult("stage.coder_result.claims", f"the id {repeated} is used twice")
    kinds = {item.id: enums.EVIDENCE_KIND.required(item.kind) for item in message.evidence}
    for claim in message.claims:
        unknown = [key for key in claim.evidence_ids if key not in kinds]
        if unknown:
            return MalformedResult("stage.coder_result.claims.evidence_ids", f"there is no evidence {unknown[0]}")
    claims = tuple(
        ClaimOutline(c.id, tuple(c.criterion_ids), tuple(kinds[key] for key in c.evidence_ids)) for c in message.claims
    )
    files = tuple(item.path for item in message.changed_files)
    return Work(agent_id, claims, files, document(message), message.result_commit)


def _repeated(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _verification_result(_agent_id: str, message: work.VerificationReport) -> Result:
    findings = tuple(_finding(task) for task in message.tasks)
    bundle = document(message.bundle) if message.HasField("bundle") else ""
    return commands.VerifyResult(findings, message.accepted_commit, bundle, document(message))


_FOUND: Mapping[int, str] = {
    work.CLAIM_STATUS_UNSPECIFIED: "was not judged",
    work.CLAIM_STATUS_UNSUPPORTED: "is not supported by its evidence",
    work.CLAIM_STATUS_STALE: "has no evidence that counts on the accepted tree",
    work.CLAIM_STATUS_MISSING: "has no evidence",
}


def _finding(task: work.TaskFinding) -> commands.TaskFinding:
    problems = [f"conflict in {path}" for path in task.conflicts]
    problems += [f"{c.criterion_id}: {c.detail or 'failed'}" for c in task.criteria if not c.passed]
    unsupported = sorted(
        (c for c in task.claims if c.status != work.CLAIM_STATUS_SUPPORTED),
        key=lambda c: c.status != work.CLAIM_STATUS_MISSING,
    )
    if not task.accepted:
        problems = [*task.proof.reasons, *problems]
    problems += [f"claim {c.claim_id} {_FOUND[c.status]}{f': {c.detail}' if c.detail else ''}" for c in unsupported]
    return commands.TaskFinding(
        task.task_id,
        task.accepted,
        tuple(c.claim_id for c in task.claims if c.status == work.CLAIM_STATUS_SUPPORTED),
        tuple(c.criterion_id for c in task.criteria if c.passed),
        excerpt("; ".join(problems), 2000),
        enums.GRADE.to_domain(task.proof.grade) if task.accepted else None,
        tuple(task.proof.questions),
        tuple(_proof_risk(task.task_id, statement) for statement in task.proof.risks),
        tuple(_failing(task.proof)),
        task.proof.reused,
    )


_RED = (proofs.TEST_OUTCOME_FAILED, proofs.TEST_OUTCOME_ERROR)


def _failing(proof: proofs.Proof) -> Iterator[str]:
    """Tests that fail and did not fail on the base."""
    for command in proof.commands:
        yield from (test.id for test in command.tests if test.outcome in _RED and test.before not in _RED)


def _proof_risk(task_id: str, statement: str) -> Risk:
    """Something that the proof of a task leaves open."""
    return Risk(f"proof-{task_id}", f"{task_id}: {statement}"[:4096], Severity.MEDIUM, task_id)


_RESULTS: Mapping[str, Any] = {
    "plan": _plan_result,
    "review": _review_result,
    "answers": _answers_result,
    "research": _research_result,
    "design": _design_result,
    "stage": _stage_result,
    "verification": _verification_result,
}
