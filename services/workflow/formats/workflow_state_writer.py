"""Writes a workflow-state.json: what was imported and did not change comes back as it was, unknown fields included."""

import json
from datetime import UTC, datetime
from typing import Any

from pointsman._shared.strict_json import decode_object
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.machine import Event
from pointsman.services.workflow.domain.apply import apply
from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import Constraint, ConstraintSet
from pointsman.services.workflow.domain.enums import EventName, TaskStatus, Verification
from pointsman.services.workflow.domain.model import DEFAULT_WINDOW_TOKENS, Header, Workflow
from pointsman.services.workflow.domain.zero_decision_audit import Audit, Finding
from pointsman.services.workflow.formats.workflow_state_reader import PROGRESS_LISTS, read_state

SCHEMA_VERSION = "2.1"


def write_state(state: Workflow) -> str:
    """The workflow as workflow-state.json; what was imported and did not change comes back as it was written."""
    ours = _written(state)
    if state.details.document:
        ours = _laid_over(*_imported_again(state), ours)
    return json.dumps(ours, ensure_ascii=False, indent=2) + "\n"


def _imported_again(state: Workflow) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document as it was imported, and as we would have written it right then."""
    original = decode_object(state.details.document)
    try:
        imported = read_state(state.details.document, state.header.workflow_id, state.header.created_at)
    except Refusal:
        return original, {}
    fresh = apply(None, Event(EventName.IMPORTED, "", imported.header.status, imported), imported.header.updated_at)
    return original, _written(fresh)


def _laid_over(original: Any, as_imported: Any, ours: Any) -> Any:
    """Ours where it changed since the import, the original everywhere else."""
    if ours == as_imported:
        return original
    if isinstance(original, dict) and isinstance(ours, dict):
        return _object_laid_over(original, as_imported if isinstance(as_imported, dict) else {}, ours)
    if isinstance(original, list) and isinstance(ours, list):
        return [_item_laid_over(original, as_imported, item) for item in ours]
    return ours


def _object_laid_over(original: dict[str, Any], as_imported: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    merged = {name: value for name, value in original.items() if name in ours or name not in as_imported}
    for name, value in ours.items():
        if name in original:
            merged[name] = _laid_over(original[name], as_imported.get(name), value)
        elif name not in as_imported or as_imported[name] != value:
            merged[name] = value
    return merged


def _item_laid_over(original: list[Any], as_imported: Any, item: Any) -> Any:
    """An item of a list of objects with ids keeps what the original object of that id had beyond ours."""
    own_id = item.get("id") if isinstance(item, dict) else None
    if own_id is None:
        return item
    return _laid_over(_by_id(original, own_id), _by_id(as_imported, own_id), item)


def _by_id(items: Any, own_id: str) -> Any:
    listed = items if isinstance(items, list) else []
    return next((one for one in listed if isinstance(one, dict) and one.get("id") == own_id), None)


def _written(state: Workflow) -> dict[str, Any]:
    header = state.header
    document: dict[str, Any] = {
        "project_id": header.workflow_id,
        "project_name": header.title,
        "status": header.status.value,
        "current_task": header.current_task or None,
        "execution_mode": header.execution_mode.value,
        "mode": header.mode.value,
        "use_subagent": header.subagents,
        "pause_before_commit": header.pause_before_commit,
        "consecutive_count": header.consecutive_count,
        "tasks_file": header.tasks_file,
        "tech_design": header.tech_design or None,
        "unblocked": list(header.unblocked),
        "sessions": {**dict.fromkeys(("codex", "gemini", "claude")), **header.sessions},
        "progress": {status.value: _ids(state, status) for status in PROGRESS_LISTS},
        "contextMetrics": _written_metrics(header),
    }
    if header.collaboration is not None:
        document["collaboration"] = _written_collaboration(header.collaboration)
    document["constraints"] = _written_constraints(state.details.constraints)
    if state.details.audit is not None:
        document["zeroDecisionAudit"] = _written_audit(state.details.audit)
    retries = {task.task_id: task.retry_count for task in state.tasks.in_order() if task.retry_count}
    if retries:
        document["retry_counts"] = retries
    document["created_at"] = _stamp(header.created_at)
    document["updated_at"] = _stamp(header.updated_at)
    document["failure_reason"] = header.failure_reason or None
    return document


def _ids(state: Workflow, status: TaskStatus) -> list[str]:
    return [task.task_id for task in state.tasks.with_status(status)]


def _written_metrics(header: Header) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "estimatedTokens": header.estimated_tokens,
        "warningThreshold": header.warning_threshold,
        "dangerThreshold": header.danger_threshold,
        "maxConsecutiveTasks": header.max_consecutive_tasks,
        "history": [
            {"taskId": record.task_id, "tokens": record.tokens, "timestamp": _stamp(record.at)}
            for record in header.history
        ],
    }
    if header.window_tokens != DEFAULT_WINDOW_TOKENS:
        metrics["windowTokens"] = header.window_tokens
    return metrics


def _written_collaboration(collaboration: Collaboration) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "mode": collaboration.mode,
        "lead": collaboration.lead,
        "support": list(collaboration.support),
        "parallelPhases": list(collaboration.parallel_phases),
        "reason": collaboration.reason,
        "confidence": collaboration.confidence,
    }


def _written_constraints(constraints: ConstraintSet) -> dict[str, Any]:
    written: dict[str, Any] = {
        "hard": [_written_constraint(one) for one in constraints.hard],
        "soft": [_written_constraint(one) for one in constraints.soft],
        "openQuestions": [question.text for question in constraints.open_questions],
        "successCriteria": list(constraints.success_criteria),
    }
    sources = {question.text: question.source for question in constraints.open_questions if question.source}
    if sources:
        written["openQuestionSources"] = sources
    return written


def _written_constraint(constraint: Constraint) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": constraint.constraint_id,
        "description": constraint.description,
        "type": constraint.type.value,
        "category": constraint.category.value,
        "sourceModel": constraint.source_model.value,
        "phase": constraint.phase.value,
        "verified": constraint.verification is Verification.PASSED,
    }
    if constraint.verify_cmd:
        written["verifyCmd"] = constraint.verify_cmd
    if constraint.verification is Verification.WAIVED:
        written["waiver"] = constraint.details
    return written


def _written_audit(audit: Audit) -> dict[str, Any]:
    return {
        "passed": audit.passed,
        "antiPatterns": [_finding_text(finding) for finding in audit.findings if finding.error],
        "remainingAmbiguities": [_finding_text(finding) for finding in audit.findings if not finding.error],
        "auditedAt": _stamp(audit.audited_at),
    }


def _finding_text(finding: Finding) -> str:
    if not finding.subject_id:
        return finding.excerpt
    return f"{finding.finding_id}: {finding.excerpt}" if finding.excerpt else finding.finding_id


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
