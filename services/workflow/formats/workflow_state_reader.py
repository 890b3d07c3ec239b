"""Reads a workflow-state.json: reports every problem by its path, and stores the text for the next export."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from pointsman._shared.strict_json import JsonError, decode_object
from pointsman.services.chassis.core.errors import Violation, invalid_field, invalid_fields
from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import (
    CRITERIA_LIMIT,
    HARD_LIMIT,
    QUESTION_LIMIT,
    SOFT_LIMIT,
    Constraint,
    ConstraintSet,
    OpenQuestion,
)
from pointsman.services.workflow.domain.dependency_classes import DEPENDENCY_CLASSES
from pointsman.services.workflow.domain.enums import (
    CANCELLED,
    SETTLED_TASKS,
    Category,
    CollaborationMode,
    ConstraintPhase,
    ConstraintType,
    ExecutionMode,
    Model,
    ParallelPhase,
    SourceModel,
    TaskStatus,
    Verification,
    WorkflowMode,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.events import Imported
from pointsman.services.workflow.domain.model import (
    DEFAULT_WINDOW_TOKENS,
    HISTORY_LIMIT,
    Details,
    Header,
    UsageRecord,
)
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.domain.zero_decision_audit import Audit, Finding
from pointsman.services.workflow.formats.document_reader import Reader

FIELD = "state_json"
PROJECT_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
PROGRESS_LISTS = (TaskStatus.COMPLETED, TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.SKIPPED)


def read_state(text: str, workflow_id: str, now: datetime) -> Imported:
    """The workflow of a workflow-state.json; a refusal names every problem by its path."""
    try:
        document = decode_object(text)
    except JsonError as error:
        raise invalid_field(FIELD, str(error)) from None
    reader = Reader(FIELD)
    imported = _read(reader, document, workflow_id, now)
    if reader.problems:
        raise invalid_fields(tuple(reader.problems))
    problems = tuple(_contradictions(imported))
    if problems:
        raise invalid_fields(problems)
    return replace(imported, details=replace(imported.details, document=text))


def _read(reader: Reader, document: dict[str, Any], workflow_id: str, now: datetime) -> Imported:
    own_id = workflow_id or reader.text(document, "project_id")
    if not PROJECT_ID.fullmatch(own_id):
        reader.add_problem("project_id", "must match ^[A-Za-z0-9_-]+$")
    created_at = reader.moment(document, "created_at", now)
    header = Header(own_id, created_at, reader.moment(document, "updated_at", created_at))
    header.status = reader.choice(document, "status", WorkflowStatus, None)
    _read_settings(reader, document, header)
    _read_metrics(reader, reader.section(document, "contextMetrics"), header)
    header.collaboration = _read_collaboration(reader, document)
    constraints = read_constraints(reader, reader.section(document, "constraints"))
    header.constrained, header.unmet = not constraints.empty, constraints.unmet
    audit = _read_audit(reader, document, header.updated_at)
    tasks = _read_tasks(reader, document, header)
    return Imported(header, Details(constraints=constraints, audit=audit), tasks)


def _read_settings(reader: Reader, document: dict[str, Any], header: Header) -> None:
    header.title = reader.text(document, "project_name")
    header.current_task = reader.text(document, "current_task")
    header.execution_mode = reader.choice(document, "execution_mode", ExecutionMode, ExecutionMode.PHASE)
    header.mode = reader.choice(document, "mode", WorkflowMode, WorkflowMode.NORMAL)
    header.use_subagent = reader.flag(document, "use_subagent", None)
    header.pause_before_commit = bool(reader.flag(document, "pause_before_commit", True))  # noqa: FBT003
    header.consecutive_count = reader.number(document, "consecutive_count", 0)
    header.tasks_file = reader.text(document, "tasks_file", "tasks.md")
    header.tech_design = reader.text(document, "tech_design")
    header.unblocked = reader.texts(document, "unblocked")
    header.sessions = reader.optional_texts(document, "sessions")
    header.failure_reason = reader.text(document, "failure_reason")
    header.cancelled = header.failure_reason == CANCELLED


def _read_metrics(reader: Reader, metrics: dict[str, Any], header: Header) -> None:
    at = "contextMetrics."
    header.estimated_tokens = reader.number(metrics, "estimatedTokens", 0, at)
    header.warning_threshold = reader.number(metrics, "warningThreshold", 60, at)
    header.danger_threshold = reader.number(metrics, "dangerThreshold", 80, at)
    header.max_consecutive_tasks = reader.number(metrics, "maxConsecutiveTasks", 8, at)
    header.window_tokens = reader.number(metrics, "windowTokens", DEFAULT_WINDOW_TOKENS, at) or DEFAULT_WINDOW_TOKENS
    header.history = tuple(
        UsageRecord(
            reader.text(record, "taskId", "", f"{at}history."),
            reader.number(record, "tokens", 0, f"{at}history."),
            reader.moment(record, "timestamp", header.updated_at, f"{at}history."),
        )
        for record in reader.sections(metrics, "history", at)
    )[-HISTORY_LIMIT:]


def _read_collaboration(reader: Reader, document: dict[str, Any]) -> Collaboration | None:
    section = reader.section(document, "collaboration")
    if not section:
        return None
    at = "collaboration."
    mode = reader.choice(section, "mode", CollaborationMode, CollaborationMode.NONE, at)
    lead = reader.choice(section, "lead", Model, None, at).value if section.get("lead") not in (None, "") else ""
    return Collaboration(
        mode.value,
        lead,
        tuple(model.value for model in reader.choices(section, "support", Model, at)),
        tuple(phase.value for phase in reader.choices(section, "parallelPhases", ParallelPhase, at)),
        reader.text(section, "reason", "", at),
        reader.fraction(section, "confidence", at),
    )


def read_constraints(reader: Reader, section: dict[str, Any]) -> ConstraintSet:
    """The constraints of a document."""
    at = "constraints."
    sources = reader.optional_texts(section, "openQuestionSources", at)
    return ConstraintSet(
        tuple(_read_constraint(reader, one, ConstraintType.HARD) for one in reader.sections(section, "hard", at)),
        tuple(_read_constraint(reader, one, ConstraintType.SOFT) for one in reader.sections(section, "soft", at)),
        tuple(OpenQuestion(text, sources.get(text) or "") for text in reader.texts(section, "openQuestions", at)),
        reader.texts(section, "successCriteria", at),
    )


def _read_constraint(reader: Reader, section: dict[str, Any], kind: ConstraintType) -> Constraint:
    at = f"constraints.{kind}."
    if reader.choice(section, "type", ConstraintType, kind, at) is not kind:
        reader.add_problem(f"{at}type", f"must be {kind} in the list of {kind} constraints")
    waiver = reader.text(section, "waiver", "", at)
    verified = reader.flag(section, "verified", False, at)  # noqa: FBT003
    verification = Verification.PASSED if verified else Verification.WAIVED if waiver else Verification.UNVERIFIED
    return Constraint(
        reader.text(section, "id", None, at),
        reader.text(section, "description", None, at),
        kind,
        reader.choice(section, "category", Category, Category.REQUIREMENT, at),
        reader.choice(section, "sourceModel", SourceModel, SourceModel.USER, at),
        reader.choice(section, "phase", ConstraintPhase, ConstraintPhase.ANALYSIS, at),
        reader.text(section, "verifyCmd", "", at),
        verification,
        waiver,
    )


def _read_audit(reader: Reader, document: dict[str, Any], default: datetime) -> Audit | None:
    section = reader.section(document, "zeroDecisionAudit")
    if not section:
        return None
    at = "zeroDecisionAudit."
    errors = [_as_text(item) for item in reader.items(section, "antiPatterns", at)]
    warnings = [_as_text(item) for item in reader.items(section, "remainingAmbiguities", at)]
    findings = [Finding(text, "", "", "", text, error=True) for text in errors]
    findings += [Finding(text, "", "", "", text, error=False) for text in warnings]
    passed = bool(reader.flag(section, "passed", False, at))  # noqa: FBT003
    audited_at = reader.moment(section, "auditedAt", default, at)
    return Audit(passed, tuple(findings), len(errors), len(warnings), audited_at)


def _as_text(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, sort_keys=True)


def _read_tasks(reader: Reader, document: dict[str, Any], header: Header) -> tuple[Task, ...]:
    progress = reader.section(document, "progress")
    retries = reader.section(document, "retry_counts")
    found: dict[str, TaskStatus] = {}
    for status in PROGRESS_LISTS:
        for task_id in reader.texts(progress, status, "progress."):
            if task_id in found:
                reader.add_problem(f"progress.{status}", f"task '{task_id[:64]}' stands in two places")
            found[task_id] = status
    if header.current_task:
        found.setdefault(header.current_task, TaskStatus.PENDING)
    for task_id in found:
        if not _TASK_ID.fullmatch(task_id):
            reader.add_problem("progress", f"'{task_id[:64]}' is no task id")
    return tuple(
        _stub(header, task_id, status, reader.number(retries, task_id, 0, "retry_counts."))
        for task_id, status in found.items()
    )


def _stub(header: Header, task_id: str, status: TaskStatus, retry_count: int) -> Task:
    """A task of which only the id is known; a blocked one waits for every class that is not unblocked."""
    blocked_by: tuple[str, ...] = ()
    if status is TaskStatus.BLOCKED:
        waiting = tuple(name for name in DEPENDENCY_CLASSES if name not in header.unblocked)
        blocked_by = waiting or ("unknown",)
    return Task(TaskSpec(task_id, task_id, blocked_by=blocked_by), status, retry_count=retry_count, stub=True)


def _contradictions(imported: Imported) -> Iterator[Violation]:
    yield from _over_limits(imported.details.constraints)
    if imported.header.status is not WorkflowStatus.COMPLETED:
        return
    unsettled = [task.task_id for task in imported.tasks if task.status not in SETTLED_TASKS]
    if unsettled:
        yield Violation(f"{FIELD}.progress", f"completed, but these tasks are not: {', '.join(unsettled[:20])}")
    if imported.header.unmet:
        unmet = ", ".join(imported.header.unmet)
        yield Violation(f"{FIELD}.constraints.hard", f"completed, but these constraints are not verified: {unmet}")


def _over_limits(constraints: ConstraintSet) -> Iterator[Violation]:
    limited = (
        ("hard", constraints.hard, HARD_LIMIT),
        ("soft", constraints.soft, SOFT_LIMIT),
        ("openQuestions", constraints.open_questions, QUESTION_LIMIT),
        ("successCriteria", constraints.success_criteria, CRITERIA_LIMIT),
    )
    for name, entries, limit in limited:
        if len(entries) > limit:
            yield Violation(f"{FIELD}.constraints.{name}", f"holds {len(entries)}, at most {limit}; leave some out")
