"""Domain values to messages."""

from collections.abc import Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from pointsman.services.chassis.rpc.paging import page_token
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import Constraint, ConstraintSet
from pointsman.services.workflow.domain.model import Header, Pause, Workflow
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.domain.views import Progress, progress_of, waits_for
from pointsman.services.workflow.domain.zero_decision_audit import Audit
from pointsman.services.workflow.wire import enums


def timestamp(moment: datetime) -> Timestamp:
    """A time on the wire."""
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def progress(value: Progress) -> model_pb2.Progress:
    """The progress of a workflow."""
    return model_pb2.Progress(
        workflow_id=value.workflow_id,
        status=enums.WORKFLOW_STATUS.to_wire(value.status),
        counts=model_pb2.TaskCounts(**value.counts),
        pause=_pause(value.pause) if value.pause else None,
        failure_reason=value.failure_reason,
        current_task=value.current_task,
        blocking=value.blocking,
        warnings=value.warnings,
    )


def _pause(pause: Pause) -> model_pb2.Pause:
    return model_pb2.Pause(
        cause=enums.PAUSE_CAUSE.to_wire(pause.cause),
        message=pause.message,
        constraint_ids=pause.constraint_ids,
        since=timestamp(pause.since),
    )


def task(value: Task) -> model_pb2.Task:
    """A task with its state."""
    return model_pb2.Task(
        spec=_spec(value.spec),
        status=enums.TASK_STATUS.to_wire(value.status),
        position=value.position,
        open_dependencies=value.open_dependencies,
        attempt=value.attempt,
        retry_count=value.retry_count,
        reason=value.reason,
        worker=value.worker,
    )


def _spec(spec: TaskSpec) -> model_pb2.TaskSpec:
    return model_pb2.TaskSpec(
        task_id=spec.task_id,
        name=spec.name,
        phase=spec.phase,
        files=spec.files,
        actions=spec.actions,
        depends=spec.depends,
        blocked_by=spec.blocked_by,
        quality_gate=spec.quality_gate,
        threshold=spec.threshold,
        leverage=spec.leverage,
        design_ref=spec.design_ref,
        requirement=spec.requirement,
        priority=spec.priority,
    )


def handed_out(answer: commands.HandedOut) -> tasks_pb2.NextTasksResponse:
    """The response of NextTasks."""
    return tasks_pb2.NextTasksResponse(tasks=[task(one) for one in answer.tasks], progress=progress(answer.progress))


def plan_stored(answer: commands.PlanAnswer) -> plans_pb2.UpsertPlanResponse:
    """The response of UpsertPlan."""
    return plans_pb2.UpsertPlanResponse(
        progress=progress(answer.progress),
        collaboration=collaboration(answer.collaboration),
        created=answer.created,
    )


def collaboration(value: Collaboration | None) -> constraints_pb2.Collaboration | None:
    """A collaboration; None stays absent."""
    if value is None:
        return None
    return constraints_pb2.Collaboration(
        mode=value.mode,
        lead=value.lead,
        support=value.support,
        parallel_phases=value.parallel_phases,
        reason=value.reason,
        confidence=value.confidence,
    )


def merged(answer: commands.MergeAnswer) -> constraints_pb2.MergeConstraintsResponse:
    """The response of MergeConstraints."""
    return constraints_pb2.MergeConstraintsResponse(
        progress=progress(answer.progress),
        constraints=constraint_set(answer.constraints),
        dropped=constraint_set(answer.dropped),
    )


def constraint_set(value: ConstraintSet) -> constraints_pb2.ConstraintSet:
    """A set of constraints, questions and criteria."""
    return constraints_pb2.ConstraintSet(
        hard=[_constraint(one) for one in value.hard],
        soft=[_constraint(one) for one in value.soft],
        open_questions=[constraints_pb2.OpenQuestion(text=one.text, source=one.source) for one in value.open_questions],
        success_criteria=value.success_criteria,
    )


def _constraint(value: Constraint) -> constraints_pb2.Constraint:
    return constraints_pb2.Constraint(
        constraint_id=value.constraint_id,
        description=value.description,
        type=enums.CONSTRAINT_TYPE.to_wire(value.type),
        category=enums.CATEGORY.to_wire(value.category),
        source_model=enums.SOURCE_MODEL.to_wire(value.source_model),
        phase=enums.CONSTRAINT_PHASE.to_wire(value.phase),
        verify_cmd=value.verify_cmd,
        verification=enums.VERIFICATION.to_wire(value.verification),
        details=value.details,
    )


def audit(value: Audit) -> constraints_pb2.AuditResult:
    """The result of an audit."""
    findings = [
        constraints_pb2.AuditFinding(
            finding_id=one.finding_id,
            subject_id=one.subject_id,
            field=one.field,
            rule=one.rule,
            excerpt=one.excerpt,
            error=one.error,
        )
        for one in value.findings
    ]
    return constraints_pb2.AuditResult(
        passed=value.passed,
        findings=findings,
        error_count=value.error_count,
        warning_count=value.warning_count,
        audited_at=timestamp(value.audited_at),
    )


def workflow(state: Workflow, seq: int) -> plans_pb2.Workflow:
    """A workflow without its tasks."""
    header, details = state.header, state.details
    return plans_pb2.Workflow(
        workflow_id=header.workflow_id,
        title=header.title,
        progress=progress(progress_of(header)),
        settings=_settings(header),
        mode=enums.WORKFLOW_MODE.to_wire(header.mode),
        intake_text=details.intake_text,
        priority=header.priority,
        owner_run_id=header.owner_run_id,
        run_id=header.run_id,
        consecutive_count=header.consecutive_count,
        context_metrics=_metrics(header),
        unblocked=header.unblocked,
        sessions={model: session or "" for model, session in header.sessions.items()},
        collaboration=collaboration(header.collaboration),
        constraints=constraint_set(details.constraints),
        audit=audit(details.audit) if details.audit else None,
        risks=[_risk(state, index) for index in range(len(details.risks))],
        tasks_file=header.tasks_file,
        tech_design=header.tech_design,
        created_at=timestamp(header.created_at),
        updated_at=timestamp(header.updated_at),
        seq=seq,
    )


def _settings(header: Header) -> plans_pb2.ExecutionSettings:
    return plans_pb2.ExecutionSettings(
        execution_mode=enums.EXECUTION_MODE.to_wire(header.execution_mode),
        use_subagent=header.subagents,
        pause_before_commit=header.pause_before_commit,
        require_audit=header.require_audit,
    )


def _metrics(header: Header) -> model_pb2.ContextMetrics:
    history = [
        model_pb2.UsageRecord(task_id=one.task_id, tokens=one.tokens, at=timestamp(one.at)) for one in header.history
    ]
    return model_pb2.ContextMetrics(
        estimated_tokens=header.estimated_tokens,
        warning_threshold=header.warning_threshold,
        danger_threshold=header.danger_threshold,
        max_consecutive_tasks=header.max_consecutive_tasks,
        window_tokens=header.window_tokens,
        history=history,
    )


def _risk(state: Workflow, index: int) -> model_pb2.Risk:
    risk = state.details.risks[index]
    return model_pb2.Risk(
        severity=risk.severity, subject_id=risk.subject_id, description=risk.description, at=timestamp(risk.at)
    )


def entry(header: Header) -> reading_pb2.WorkflowEntry:
    """A workflow in a list."""
    return reading_pb2.WorkflowEntry(
        workflow_id=header.workflow_id,
        title=header.title,
        status=enums.WORKFLOW_STATUS.to_wire(header.status),
        priority=header.priority,
        executable=header.executable,
        owner_run_id=header.owner_run_id,
        updated_at=timestamp(header.updated_at),
        waits_for=waits_for(header),
        intake_text=header.intake_excerpt,
        counts=model_pb2.TaskCounts(**header.counts),
    )


def classified(
    specs: Sequence[TaskSpec], found: Sequence[tuple[str, ...]]
) -> constraints_pb2.ClassifyDependenciesResponse:
    """The inferred dependencies of each task."""
    tasks = [
        constraints_pb2.ClassifiedTask(task_id=spec.task_id, dependencies=dependencies)
        for spec, dependencies in zip(specs, found, strict=True)
    ]
    return constraints_pb2.ClassifyDependenciesResponse(tasks=tasks)


def next_page_token(keys: Sequence[tuple[int | str, ...]], size: int) -> str:
    """The token of the next page, out of the keys of one item more than a page holds."""
    return page_token(*keys[size - 1]) if len(keys) > size else ""
