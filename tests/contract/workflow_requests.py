"""The plain commands of a walk as requests to a real service, and what it shows of the workflow in plain words."""

import itertools
from collections.abc import Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from pointsman.services.chassis.auth import Caller
from pointsman.services.workflow.servicer import WorkflowServicer

MET = (constraints_pb2.VERIFICATION_STATUS_PASSED, constraints_pb2.VERIFICATION_STATUS_WAIVED)
CHECKED_AT = Timestamp(seconds=1_767_873_600)
_numbers = itertools.count(1)


class Asker:
    """Asks the service about one workflow; an answer is what it says beside the progress."""

    def __init__(self, servicer: WorkflowServicer, workflow_id: str) -> None:
        self.servicer = servicer
        self.workflow_id = workflow_id

    def _whose(self) -> dict[str, Any]:
        return {"request_id": f"walk-{next(_numbers)}", "workflow_id": self.workflow_id}

    async def _ask(self, method: str, request: Any) -> Any:
        request_id = getattr(request, "request_id", "")
        caller = Caller("local", "local", request_id=request_id, fingerprint=request_id)
        return await getattr(self.servicer, method)(request, caller)

    async def plan(
        self, tasks: Sequence[Any], *, append: bool, progressive: bool | None, settings: dict[str, Any]
    ) -> bool:
        """Store a plan."""
        mode = {None: "UNSPECIFIED", False: "NORMAL", True: "PROGRESSIVE"}[progressive]
        request = plans_pb2.UpsertPlanRequest(
            **self._whose(),
            tasks=[_spec(task) for task in tasks],
            append=append,
            mode=model_pb2.WorkflowMode.Value(f"WORKFLOW_MODE_{mode}"),
            settings=_settings(settings),
        )
        return bool((await self._ask("UpsertPlan", request)).created)

    async def execute(self, settings: dict[str, Any]) -> None:
        """Start."""
        await self._ask("Execute", plans_pb2.ExecuteRequest(**self._whose(), settings=_settings(settings)))

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

    async def constrain(self, constraint_id: str) -> None:
        """One hard constraint."""
        held = constraints_pb2.Constraint(constraint_id=constraint_id, description=f"{constraint_id} holds")
        sets = [constraints_pb2.ConstraintSet(hard=[held])]
        await self._ask("MergeConstraints", constraints_pb2.MergeConstraintsRequest(**self._whose(), sets=sets))

    async def verify(self, constraint_id: str, *, passed: bool) -> None:
        """A check."""
        result = constraints_pb2.Verification(constraint_id=constraint_id, passed=passed, checked_at=CHECKED_AT)
        request = constraints_pb2.RecordVerificationRequest(**self._whose(), verifications=[result])
        await self._ask("RecordVerification", request)

    async def waive(self, constraint_id: str) -> None:
        """Out of the way."""
        request = constraints_pb2.WaiveConstraintRequest(**self._whose(), constraint_id=constraint_id, reason="known")
        await self._ask("WaiveConstraint", request)

    async def use(self, *, characters: int | None, tokens: int) -> None:
        """Context usage."""
        used: dict[str, Any] = {"context_tokens": tokens} if characters is None else {"characters": characters}
        await self._ask("RecordUsage", tasks_pb2.RecordUsageRequest(**self._whose(), **used))

    async def seen(self) -> dict[str, Any]:
        """The workflow as a reader sees it."""
        answer = await self._ask("GetWorkflow", reading_pb2.GetWorkflowRequest(workflow_id=self.workflow_id))
        workflow, progress = answer.workflow, answer.workflow.progress
        assert progress.counts.total == len(answer.tasks)
        return {
            "status": _word(model_pb2.WorkflowStatus, progress.status),
            "pause": _word(model_pb2.PauseCause, progress.pause.cause) if progress.HasField("pause") else "",
            "tasks": {task.spec.task_id: _task(task) for task in answer.tasks},
            "ready": progress.counts.ready,
            "consecutive": (workflow.consecutive_count, workflow.context_metrics.max_consecutive_tasks),
            "unblocked": set(workflow.unblocked),
            "blocking": set(progress.blocking),
            "unmet": {one.constraint_id for one in workflow.constraints.hard if one.verification not in MET},
        }


def _task(task: model_pb2.Task) -> tuple[str, int, int, int]:
    return _word(model_pb2.TaskStatus, task.status), task.open_dependencies, task.retry_count, task.attempt


def _word(enum: Any, value: int) -> str:
    """The name of a value without its enum's, in lower case."""
    prefixes = {"WorkflowStatus": "WORKFLOW_STATUS_", "PauseCause": "PAUSE_CAUSE_", "TaskStatus": "TASK_STATUS_"}
    return str(enum.Name(value)).removeprefix(prefixes[enum.DESCRIPTOR.name]).lower()


def _spec(task: Any) -> model_pb2.TaskSpec:
    named = {name: task[name] for name in ("name", "phase", "files", "actions", "depends", "blocked_by", "design_ref")}
    return model_pb2.TaskSpec(task_id=task["id"], quality_gate=task["gate"], **named)


def _settings(given: dict[str, Any]) -> plans_pb2.ExecutionSettings:
    settings = plans_pb2.ExecutionSettings(
        use_subagent=given.get("subagent"), pause_before_commit=given.get("before_commit")
    )
    if "mode" in given:
        settings.execution_mode = model_pb2.ExecutionMode.Value(f"EXECUTION_MODE_{given['mode'].upper()}")
    return settings
