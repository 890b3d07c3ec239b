"""Requests to commands and page keys."""

from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from pointsman.api.common.v1 import common_pb2
from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from pointsman.services.chassis.rpc.paging import page_key
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import CheckResult, Constraint, ConstraintSet, OpenQuestion
from pointsman.services.workflow.domain.enums import Category, ConstraintPhase, ConstraintType, SourceModel
from pointsman.services.workflow.domain.events import Fields, Imported
from pointsman.services.workflow.domain.model import Settings
from pointsman.services.workflow.domain.tasks import TaskSpec
from pointsman.services.workflow.formats.tasks_reader import read_any
from pointsman.services.workflow.wire import enums


def upsert_plan(request: plans_pb2.UpsertPlanRequest) -> commands.UpsertPlan:
    """The command of UpsertPlan."""
    tasks = tuple(commands.PlannedTask(spec_of(task)) for task in request.tasks)
    return commands.UpsertPlan(request.workflow_id, _fields(request), tasks, request.append)


def _fields(request: plans_pb2.UpsertPlanRequest) -> Fields:
    return Fields(
        title=_given(request, "title"),
        intake_text=_given(request, "intake_text"),
        priority=_given(request, "priority"),
        owner_run_id=_given(request, "owner_run_id"),
        settings=settings_of(request.settings),
        mode=enums.WORKFLOW_MODE.to_domain(request.mode),
        window_tokens=_given(request, "window_tokens"),
        warning_threshold=_given(request, "warning_threshold"),
        danger_threshold=_given(request, "danger_threshold"),
        sessions=tuple(sorted(request.sessions.items())),
        collaboration=_collaboration(request.collaboration) if request.HasField("collaboration") else None,
        tech_design=_given(request, "tech_design"),
        tasks_file=_given(request, "tasks_file"),
    )


def _given(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


def _collaboration(message: constraints_pb2.Collaboration) -> Collaboration:
    return Collaboration(
        message.mode,
        message.lead,
        tuple(message.support),
        tuple(message.parallel_phases),
        message.reason,
        message.confidence,
    )


def settings_of(message: plans_pb2.ExecutionSettings) -> Settings:
    """Execution settings; None where not set."""
    return Settings(
        enums.EXECUTION_MODE.to_domain(message.execution_mode),
        _given(message, "use_subagent"),
        _given(message, "pause_before_commit"),
        _given(message, "require_audit"),
    )


def spec_of(message: model_pb2.TaskSpec) -> TaskSpec:
    """A task as planned."""
    return TaskSpec(
        task_id=message.task_id,
        name=message.name,
        phase=message.phase,
        files=tuple(message.files),
        actions=tuple(message.actions),
        depends=tuple(message.depends),
        blocked_by=tuple(message.blocked_by),
        quality_gate=message.quality_gate,
        threshold=message.threshold,
        leverage=message.leverage,
        design_ref=message.design_ref,
        requirement=message.requirement,
        priority=message.priority,
    )


def specs_of(messages: Iterable[model_pb2.TaskSpec]) -> list[TaskSpec]:
    """Tasks as planned."""
    return [spec_of(message) for message in messages]


def execute(request: plans_pb2.ExecuteRequest) -> commands.Execute:
    """The command of Execute."""
    return commands.Execute(request.workflow_id, settings_of(request.settings), tuple(request.accepted_findings))


def next_tasks(request: tasks_pb2.NextTasksRequest) -> commands.NextTasks:
    """The command of NextTasks; the limit defaults to one."""
    return commands.NextTasks(request.workflow_id, request.limit or 1, request.worker)


def release_task(request: tasks_pb2.ReleaseTaskRequest) -> commands.ReleaseTask:
    """The command of ReleaseTask."""
    return commands.ReleaseTask(request.workflow_id, tuple(request.task_ids), request.all, request.release_owner)


def complete_task(request: tasks_pb2.CompleteTaskRequest) -> commands.CompleteTask:
    """The command of CompleteTask."""
    return commands.CompleteTask(request.workflow_id, request.task_id, request.attempt, request.used_characters)


def fail_task(request: tasks_pb2.FailTaskRequest) -> commands.FailTask:
    """The command of FailTask."""
    return commands.FailTask(request.workflow_id, request.task_id, request.reason, request.attempt)


def settle_tasks(request: tasks_pb2.SettleTasksRequest) -> commands.SettleTasks:
    """The command of SettleTasks."""
    rejected = tuple(commands.Rejected(one.task_id, one.reason, one.retry) for one in request.rejected)
    return commands.SettleTasks(request.workflow_id, tuple(request.completed), rejected)


def record_usage(request: tasks_pb2.RecordUsageRequest) -> commands.RecordUsage:
    """The command of RecordUsage."""
    characters = request.characters if request.WhichOneof("usage") == "characters" else None
    return commands.RecordUsage(request.workflow_id, request.task_id, characters, request.context_tokens)


def merge_constraints(request: constraints_pb2.MergeConstraintsRequest) -> commands.MergeConstraints:
    """The command of MergeConstraints."""
    return commands.MergeConstraints(request.workflow_id, tuple(_constraint_set(one) for one in request.sets))


def _constraint_set(message: constraints_pb2.ConstraintSet) -> ConstraintSet:
    return ConstraintSet(
        tuple(_constraint(one, ConstraintType.HARD) for one in message.hard),
        tuple(_constraint(one, ConstraintType.SOFT) for one in message.soft),
        tuple(OpenQuestion(one.text, one.source) for one in message.open_questions),
        tuple(message.success_criteria),
    )


def _constraint(message: constraints_pb2.Constraint, kind: ConstraintType) -> Constraint:
    """A constraint without a verification: callers cannot set it."""
    return Constraint(
        message.constraint_id,
        message.description,
        kind,
        enums.CATEGORY.or_default(message.category, Category.REQUIREMENT),
        enums.SOURCE_MODEL.or_default(message.source_model, SourceModel.USER),
        enums.CONSTRAINT_PHASE.or_default(message.phase, ConstraintPhase.ANALYSIS),
        message.verify_cmd,
    )


def record_verification(request: constraints_pb2.RecordVerificationRequest) -> commands.RecordVerification:
    """The command of RecordVerification."""
    results = tuple(
        CheckResult(one.constraint_id, one.passed, one.details, one.checked_at.ToDatetime(tzinfo=UTC))
        for one in request.verifications
    )
    return commands.RecordVerification(request.workflow_id, results)


def import_state(request: reading_pb2.ImportStateRequest, imported: Imported) -> commands.ImportState:
    """The command of ImportState, with the plan of its tasks.md if given."""
    workflow_id, markdown = imported.header.workflow_id, request.tasks_markdown
    plan = _plan(workflow_id, markdown) if markdown else None
    return commands.ImportState(workflow_id, imported, request.replace, plan)


def import_tasks(request: reading_pb2.ImportTasksRequest) -> commands.UpsertPlan:
    """The command of ImportTasks."""
    return _plan(request.workflow_id, request.markdown, request.tag)


def _plan(workflow_id: str, markdown: str, tag: str = "") -> commands.UpsertPlan:
    found = read_any(markdown, tag)
    return commands.UpsertPlan(workflow_id, tasks=found.tasks, places=found.places, unreadable=found.problems)


def key_after(page: common_pb2.Page, shape: Sequence[type[int] | type[str]]) -> tuple[int | str, ...]:
    """The sort key after which the page begins; empty for the first page."""
    return page_key(page.page_token, *shape) or ()


def position_after(page: common_pb2.Page) -> int:
    """The position after which a page of tasks begins."""
    return next((part for part in key_after(page, (int,)) if isinstance(part, int)), 0)
