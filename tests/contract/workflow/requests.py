"""The plain commands of a walk as requests to a real service, and what it shows of the workflow in plain words."""

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1 import common_pb2
from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.workflow.servicer import WorkflowServicer

CHECKED_AT = Timestamp(seconds=1_767_873_600)
_numbers = itertools.count(1)


class Asker:
    """Asks the service about one workflow; an answer is what it says beside the progress."""

    def __init__(self, servicer: WorkflowServicer, project: str, workflow_id: str) -> None:
        self.servicer = servicer
        self.project = project
        self.workflow_id = workflow_id

    def _whose(self) -> dict[str, Any]:
        return {"request_id": f"walk-{next(_numbers)}", "workflow_id": self.workflow_id}

    async def _ask(self, method: str, request: Any) -> Any:
        request_id = getattr(request, "request_id", "")
        caller = Caller("local", self.project, request_id=request_id, fingerprint=request_id)
        return await getattr(self.servicer, method)(request, caller)

    async def plan(
        self, tasks: Sequence[Any], *, append: bool, fields: dict[str, Any], settings: dict[str, Any]
    ) -> Any:
        """Store a plan."""
        mode = {None: "UNSPECIFIED", False: "NORMAL", True: "PROGRESSIVE"}[fields.get("progressive")]
        request = plans_pb2.UpsertPlanRequest(
            **self._whose(),
            tasks=[_spec(task) for task in tasks],
            append=append,
            mode=model_pb2.WorkflowMode.Value(f"WORKFLOW_MODE_{mode}"),
            settings=_settings(settings),
            **{name: value for name, value in fields.items() if name != "progressive"},
        )
        answer = await self._ask("UpsertPlan", request)
        routed = answer.collaboration
        together = (routed.mode, routed.lead, len(routed.parallel_phases))
        return answer.created, together if answer.HasField("collaboration") else None

    async def execute(self, settings: dict[str, Any], accepted: Sequence[str]) -> None:
        """Start."""
        request = plans_pb2.ExecuteRequest(**self._whose(), settings=_settings(settings), accepted_findings=accepted)
        await self._ask("Execute", request)

    async def take(self, limit: int) -> list[tuple[str, int]]:
        """Claim tasks."""
        answer = await self._ask("NextTasks", tasks_pb2.NextTasksRequest(**self._whose(), limit=limit))
        return [(task.spec.task_id, task.attempt) for task in answer.tasks]

    async def release(self, ids: Sequence[str], *, every: bool, owner: bool) -> int:
        """Give back."""
        request = tasks_pb2.ReleaseTaskRequest(**self._whose(), task_ids=ids, all=every, release_owner=owner)
        return int((await self._ask("ReleaseTask", request)).released)

    async def complete(self, own_id: str, *, attempt: int, characters: int) -> None:
        """Done."""
        request = tasks_pb2.CompleteTaskRequest(
            **self._whose(), task_id=own_id, attempt=attempt, used_characters=characters
        )
        await self._ask("CompleteTask", request)

    async def fail(self, own_id: str, *, attempt: int) -> None:
        """Failed."""
        request = tasks_pb2.FailTaskRequest(**self._whose(), task_id=own_id, reason="broken", attempt=attempt)
        await self._ask("FailTask", request)

    async def settle(self, completed: Sequence[str], rejected: Sequence[tuple[str, bool]]) -> None:
        """A wave."""
        refused = [tasks_pb2.RejectedTask(task_id=own_id, reason="no", retry=again) for own_id, again in rejected]
        await self._ask(
            "SettleTasks", tasks_pb2.SettleTasksRequest(**self._whose(), completed=completed, rejected=refused)
        )

    async def retry(self, own_id: str) -> int:
        """Again."""
        answer = await self._ask("RetryTask", tasks_pb2.RetryTaskRequest(**self._whose(), task_id=own_id))
        return int(answer.retry_count)

    async def skip(self, own_id: str) -> None:
        """Leave out."""
        await self._ask("SkipTask", tasks_pb2.SkipTaskRequest(**self._whose(), task_id=own_id, reason="not now"))

    async def pause(self) -> None:
        """Stop."""
        await self._ask("Pause", plans_pb2.PauseRequest(**self._whose()))

    async def resume(self, settings: dict[str, Any]) -> None:
        """Run on."""
        await self._ask("Resume", plans_pb2.ResumeRequest(**self._whose(), settings=_settings(settings)))

    async def unblock(self, dependency: str) -> int:
        """It is there."""
        answer = await self._ask("Unblock", plans_pb2.UnblockRequest(**self._whose(), dependency=dependency))
        return int(answer.freed)

    async def cancel(self) -> None:
        """End the plan."""
        await self._ask("CancelPlan", plans_pb2.CancelPlanRequest(**self._whose()))

    async def merge(self, sets: Sequence[Any]) -> dict[str, Any]:
        """Constraints."""
        request = constraints_pb2.MergeConstraintsRequest(**self._whose(), sets=[constraint_set(one) for one in sets])
        dropped = shown((await self._ask("MergeConstraints", request)).dropped)
        left_out = {kind: [one[:2] for one in dropped[kind]] for kind in ("hard", "soft")}
        return dropped | left_out

    async def verify(self, results: Sequence[tuple[str, bool]]) -> list[str]:
        """Checks."""
        checked = [
            constraints_pb2.Verification(constraint_id=constraint_id, passed=passed, checked_at=CHECKED_AT)
            for constraint_id, passed in results
        ]
        request = constraints_pb2.RecordVerificationRequest(**self._whose(), verifications=checked)
        return list((await self._ask("RecordVerification", request)).unmet_constraint_ids)

    async def waive(self, constraint_id: str) -> list[str]:
        """Out of the way."""
        request = constraints_pb2.WaiveConstraintRequest(**self._whose(), constraint_id=constraint_id, reason="known")
        return list((await self._ask("WaiveConstraint", request)).unmet_constraint_ids)

    async def use(self, *, characters: int | None, tokens: int) -> float:
        """Context usage."""
        used: dict[str, Any] = {"context_tokens": tokens} if characters is None else {"characters": characters}
        answer = await self._ask("RecordUsage", tasks_pb2.RecordUsageRequest(**self._whose(), **used))
        return float(answer.usage_percent)

    async def audit(self) -> list[tuple[str, bool]]:
        """Look for open decisions."""
        found = (await self._ask("Audit", constraints_pb2.AuditRequest(**self._whose()))).audit
        assert found.error_count + found.warning_count == len(found.findings)
        return [(one.finding_id, one.error) for one in found.findings]

    async def resumable(self, most: int) -> list[Any]:
        """The first of what a run could take up in this project."""
        request = reading_pb2.ListResumableRequest(page=common_pb2.Page(page_size=most))
        return list((await self._ask("ListResumable", request)).workflows)

    async def seen(self) -> dict[str, Any]:
        """The workflow as a reader sees it."""
        answer = await self._ask("GetWorkflow", reading_pb2.GetWorkflowRequest(workflow_id=self.workflow_id))
        workflow, progress = answer.workflow, answer.workflow.progress
        assert progress.counts.total == len(answer.tasks)
        return {
            "status": word(model_pb2.WorkflowStatus, progress.status),
            "pause": word(model_pb2.PauseCause, progress.pause.cause) if progress.HasField("pause") else "",
            "pause_names": tuple(progress.pause.constraint_ids),
            "warnings": [_warning(text) for text in progress.warnings],
            "tasks": {task.spec.task_id: _task(task) for task in answer.tasks},
            "ready": progress.counts.ready,
            "consecutive": (workflow.consecutive_count, workflow.context_metrics.max_consecutive_tasks),
            "unblocked": set(workflow.unblocked),
            "blocking": set(progress.blocking),
            "constraints": shown(workflow.constraints),
            "risks": [risk.subject_id for risk in workflow.risks],
            "audited": workflow.audit.passed if workflow.HasField("audit") else None,
            "settings": _settings_seen(workflow.settings),
            "context": _context_seen(workflow.context_metrics),
            "owner": workflow.owner_run_id,
        }


def _task(task: model_pb2.Task) -> tuple[str, int, int, int]:
    return word(model_pb2.TaskStatus, task.status), task.open_dependencies, task.retry_count, task.attempt


def word(enum: Any, value: int) -> str:
    """The name of a value without its enum's, in lower case."""
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(enum.DESCRIPTOR.name)).upper()
    return str(enum.Name(value)).removeprefix(f"{prefix}_").lower()


def _warning(text: str) -> str:
    return next((name for name in ("danger", "warning") if f"{name} threshold" in text), "consecutive")


def _settings_seen(settings: plans_pb2.ExecutionSettings) -> dict[str, Any]:
    return {
        "mode": word(model_pb2.ExecutionMode, settings.execution_mode),
        "subagent": settings.use_subagent,
        "before_commit": settings.pause_before_commit,
        "audit": settings.require_audit,
    }


def _context_seen(metrics: model_pb2.ContextMetrics) -> dict[str, Any]:
    return {
        "tokens": metrics.estimated_tokens,
        "window_tokens": metrics.window_tokens,
        "warning_threshold": metrics.warning_threshold,
        "danger_threshold": metrics.danger_threshold,
        "history": [(record.task_id, record.tokens) for record in metrics.history],
    }


def _spec(task: Any) -> model_pb2.TaskSpec:
    named = {
        name: task[name]
        for name in ("name", "phase", "files", "actions", "depends", "blocked_by", "design_ref", "requirement")
    }
    return model_pb2.TaskSpec(task_id=task["id"], quality_gate=task["gate"], **named)


def _settings(given: dict[str, Any]) -> plans_pb2.ExecutionSettings:
    settings = plans_pb2.ExecutionSettings(
        use_subagent=given.get("subagent"),
        pause_before_commit=given.get("before_commit"),
        require_audit=given.get("audit"),
    )
    if "mode" in given:
        settings.execution_mode = model_pb2.ExecutionMode.Value(f"EXECUTION_MODE_{given['mode'].upper()}")
    return settings


def constraint_set(given: Any) -> constraints_pb2.ConstraintSet:
    """A plain set as a message."""
    return constraints_pb2.ConstraintSet(
        hard=[
            constraints_pb2.Constraint(
                constraint_id=one["id"],
                description=one["text"],
                source_model=constraints_pb2.SourceModel.Value(f"SOURCE_MODEL_{one['source'].upper()}"),
            )
            for one in given["hard"]
        ],
        soft=[constraints_pb2.Constraint(constraint_id=one["id"], description=one["text"]) for one in given["soft"]],
        open_questions=[constraints_pb2.OpenQuestion(text=text, source=source) for text, source in given["questions"]],
        success_criteria=given["criteria"],
    )


def shown(held: constraints_pb2.ConstraintSet) -> dict[str, Any]:
    """A message as a plain set."""

    def plain(listed: Iterable[constraints_pb2.Constraint]) -> list[tuple[str, str, str]]:
        states = constraints_pb2.VerificationStatus
        return [(one.constraint_id, one.description, word(states, one.verification)) for one in listed]

    return {
        "hard": plain(held.hard),
        "soft": plain(held.soft),
        "questions": [(one.text, one.source) for one in held.open_questions],
        "criteria": list(held.success_criteria),
    }
