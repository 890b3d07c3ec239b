"""Converts the result of a handler to the completion that its assignment's purpose takes."""

from google.protobuf.message import Message

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Usage

MAX_HINT = 200
_FIELDS: dict[type[Message], str] = {
    work.Plan: "plan",
    handoff.ReviewDecision: "review",
    work.FeedbackAnswers: "answers",
    handoff.ResearchReport: "research",
    handoff.DetailDesign: "design",
    work.StageResult: "stage",
    work.VerificationReport: "verification",
}


def completion(
    key: pb.LeaseKey, purpose: assignments.Purpose.ValueType, result: Message, usage: Usage
) -> pb.Completion:
    """The completion of a result; for a stage, reviews and coder results become a stage result."""
    if purpose == assignments.PURPOSE_STAGE:
        result = stage_result(result)
    field = _FIELDS.get(type(result))
    if field is None:
        raise TypeError(f"a handler cannot return a {type(result).__name__}")
    message = pb.Completion(lease=key, usage=usage)
    getattr(message, field).CopyFrom(result)
    return message


def stage_result(result: Message) -> Message:
    """The stage result of a coder result, which passes, or of a review, which decides."""
    if isinstance(result, handoff.CoderResult):
        return work.StageResult(route=work.StageRoute(verdict="PASS"), coder_result=result)
    if isinstance(result, handoff.DetailDesign):
        return work.StageResult(route=work.StageRoute(verdict="PASS"), report_md=result.design_md)
    if isinstance(result, handoff.ReviewDecision):
        passed = result.decision == handoff.REVIEW_VERDICT_PASS
        remarks = "; ".join(item.statement for item in result.feedback)
        severity = handoff.SEVERITY_UNSPECIFIED if passed else handoff.SEVERITY_MEDIUM
        route = work.StageRoute(verdict="PASS" if passed else "FAIL", severity=severity, hint=remarks[:MAX_HINT])
        report = handoff.Document(text=remarks) if remarks else None
        return work.StageResult(
            route=route, report_md=report, residual_risks=result.residual_risks, evidence=result.evidence
        )
    return result
