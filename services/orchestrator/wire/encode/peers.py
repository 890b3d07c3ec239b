"""A run's words to the other services."""

from collections.abc import Mapping
from typing import Any

from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.pipeline.v1 import route_pb2 as route
from pointsman.api.router.v1 import outcome_pb2 as outcome
from pointsman.api.workflow.v1 import constraints_pb2 as constraints
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.api.workflow.v1 import tasks_pb2 as tasks
from pointsman.services.chassis.core.ids import derived_id
from pointsman.services.orchestrator.domain.calls.report_outcome import ReportOutcome
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage
from pointsman.services.orchestrator.domain.calls.workflow_status import ForwardAnswer
from pointsman.services.orchestrator.domain.enums import Reply, Severity
from pointsman.services.orchestrator.wire import enums

MAX_PHASE = 100


def task_spec(task: work.PlanTask) -> model.TaskSpec:
    """A planned task as the workflow service keeps it."""
    return model.TaskSpec(
        task_id=task.id,
        name=task.name[:500],
        phase=derived_id(task.phase, MAX_PHASE),
        files=task.files[:100],
        actions=[action[:2000] for action in task.actions] or [task.name[:500]],
        depends=task.depends,
        blocked_by=task.blocked_by,
        quality_gate=task.quality_gate,
        requirement=task.requirement[:4000],
    )


def forwarded_answer(stub: Any, data: ForwardAnswer, key: Mapping[str, Any]) -> tuple[Any, Any]:
    """A person's answer as a method of the workflow service and its request."""
    reason = data.text[:2000] or "decided by a person"
    by_reply: dict[Reply, tuple[Any, Any]] = {
        Reply.RESUME: (stub.Resume, plans.ResumeRequest(**key)),
        Reply.UNBLOCK: (stub.Unblock, plans.UnblockRequest(**key, dependency=data.text or "all")),
        Reply.RETRY: (stub.RetryTask, tasks.RetryTaskRequest(**key, task_id=data.task_id)),
        Reply.SKIP: (stub.SkipTask, tasks.SkipTaskRequest(**key, task_id=data.task_id, reason=reason)),
        Reply.WAIVE: (
            stub.WaiveConstraint,
            constraints.WaiveConstraintRequest(**key, constraint_id=data.text, reason="waived by a person"),
        ),
    }
    return by_reply[data.reply]


def route_of(data: CompleteStage) -> route.Route:
    """A stage's typed word."""
    targets = {name.removeprefix("ROUTE_TARGET_"): value for name, value in route.RouteTarget.items()}
    return route.Route(
        verdict=route.VERDICT_PASS if data.verdict == "PASS" else route.VERDICT_FAIL,
        route=targets.get(data.route, route.ROUTE_TARGET_UNSPECIFIED),
        severity=enums.ROUTE_SEVERITY.to_wire(data.severity),
        hint=data.hint[:4000],
        nonce=data.nonce,
    )


def critic_severity(severity: Severity | None) -> outcome.Severity.ValueType:
    """How bad the critic's worst remark is, in the router's words."""
    by_name = {
        Severity.LOW: outcome.SEVERITY_LOW,
        Severity.MEDIUM: outcome.SEVERITY_MEDIUM,
        Severity.HIGH: outcome.SEVERITY_HIGH,
        Severity.CRITICAL: outcome.SEVERITY_HIGH,
    }
    return by_name[severity] if severity else outcome.SEVERITY_UNSPECIFIED


def reported_outcome(data: ReportOutcome) -> outcome.Outcome.ValueType:
    """How it went, in the router's words."""
    if data.clarification:
        return outcome.OUTCOME_CLARIFICATION_REQUESTED
    return outcome.OUTCOME_FAILURE if data.failed else outcome.OUTCOME_SUCCESS
