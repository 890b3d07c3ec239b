"""Writes a workflow-state.json; what has not changed since the import is written as imported, with unknown fields."""

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
    """The workflow as workflow-state.json, merged into the imported document if there is one."""
    current = _document(state)
    if state.details.document:
        current = _merge(*_imported_again(state), current)
    return json.dumps(current, ensure_ascii=False, indent=2) + "\n"


def _imported_again(state: Workflow) -> tuple[dict[str, Any], dict[str, Any]]:
    """The imported document, and what this writer would have written right after the import."""
    original = decode_object(state.details.document)
    try:
        imported = read_state(state.details.document, state.header.workflow_id, state.header.created_at)
    except Refusal:
        return original, {}
    fresh = apply(None, Event(EventName.IMPORTED, "", imported.header.status, imported), imported.header.updated_at)
    return original, _document(fresh)


def _merge(original: Any, as_imported: Any, current: Any) -> Any:
    """The current value where it changed since the import, else the original one."""
    if current == as_imported:
        return original
    if isinstance(original, dict) and isinstance(current, dict):
        return _merge_objects(original, as_imported if isinstance(as_imported, dict) else {}, current)
    if isinstance(original, list) and isinstance(current, list):
        return [_merge_item(original, as_imported, item) for item in current]
    return current


def _merge_objects(original: dict[str, Any], as_imported: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    merged = {name: value for name, value in original.items() if name in current or name not in as_imported}
    for name, value in current.items():
        if name in original:
            merged[name] = _merge(original[name], as_imported.get(name), value)
        elif name not in as_imported or as_imported[name] != value:
            merged[name] = value
    return merged


def _merge_item(original: list[Any], as_imported: Any, item: Any) -> Any:
    """A list item, merged with the original object of the same id."""
    own_id = item.get("id") if isinstance(item, dict) else None
    if own_id is None:
        return item
    return _merge(_by_id(original, own_id), _by_id(as_imported, own_id), item)


def _by_id(items: Any, own_id: str) -> Any:
    listed = items if isinstance(items, list) else []
    return next((one for one in listed if isinstance(one, dict) and one.get("id") == own_id), None)


def _document(state: Workflow) -> dict[str, Any]:
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
        "contextMetrics": _metrics(header),
    }
    if header.collaboration is not None:
        document["collaboration"] = _collaboration(header.collaboration)
    document["constraints"] = _constraints(state.details.constraints)
    if state.details.audit is not None:
        document["zeroDecisionAudit"] = _audit(state.details.audit)
    retries = {task.task_id: task.retry_count for task in state.tasks.in_order() if task.retry_count}
    if retries:
        document["retry_counts"] = retries
    document["created_at"] = _stamp(header.created_at)
    document["updated_at"] = _stamp(header.updated_at)
    document["failure_reason"] = header.failure_reason or None
    return document


def _ids(state: Workflow, status: TaskStatus) -> list[str]:
    return [task.task_id for task in state.tasks.with_status(status)]


def _metrics(header: Header) -> dict[str, Any]:
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


def _collaboration(collaboration: Collaboration) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "mode": collaboration.mode,
        "lead": collaboration.lead,
        "support": list(collaboration.support),
        "parallelPhases": list(collaboration.parallel_phases),
        "reason": collaboration.reason,
        "confidence": collaboration.confidence,
    }


def _constraints(constraints: ConstraintSet) -> dict[str, Any]:
    section: dict[str, Any] = {
        "hard": [_constraint(one) for one in constraints.hard],
        "soft": [_constraint(one) for one in constraints.soft],
        "openQuestions": [question.text for question in constraints.open_questions],
        "successCriteria": list(constraints.success_criteria),
    }
    sources = {question.text: question.source for question in constraints.open_questions if question.source}
    if sources:
        section["openQuestionSources"] = sources
    return section


def _constraint(constraint: Constraint) -> dict[str, Any]:
    section: dict[str, Any] = {
        "id": constraint.constraint_id,
        "description": constraint.description,
        "type": constraint.type.value,
        "category": constraint.category.value,
        "sourceModel": constraint.source_model.value,
        "phase": constraint.phase.value,
        "verified": constraint.verification is Verification.PASSED,
    }
    if constraint.verify_cmd:
        section["verifyCmd"] = constraint.verify_cmd
    if constraint.verification is Verification.WAIVED:
        section["waiver"] = constraint.details
    return section


def _audit(audit: Audit) -> dict[str, Any]:
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
