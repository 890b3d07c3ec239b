"""Workflows: plans and their tasks, constraints, pauses, files."""

from collections.abc import AsyncIterator, Sequence

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.client.calls import Calls


class Workflows:
    """WorkflowService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = WorkflowServiceStub(calls.channel)

    async def upsert_plan(self, request: plans_pb2.UpsertPlanRequest) -> plans_pb2.UpsertPlanResponse:
        """Creates a workflow or changes its plan and settings; a request_id is added where none is set."""
        return await self._calls.mutate(self._stub.UpsertPlan, request)

    async def execute(
        self,
        workflow_id: str,
        *,
        settings: plans_pb2.ExecutionSettings | None = None,
        accepted_findings: Sequence[str] = (),
        request_id: str = "",
    ) -> model_pb2.Progress:
        """Starts a planned workflow."""
        request = plans_pb2.ExecuteRequest(
            request_id=request_id, workflow_id=workflow_id, settings=settings, accepted_findings=accepted_findings
        )
        return (await self._calls.mutate(self._stub.Execute, request)).progress

    async def next_tasks(
        self, workflow_id: str, *, limit: int = 0, worker: str = "", request_id: str = ""
    ) -> tasks_pb2.NextTasksResponse:
        """Claims ready tasks in plan order."""
        request = tasks_pb2.NextTasksRequest(request_id=request_id, workflow_id=workflow_id, limit=limit, worker=worker)
        return await self._calls.mutate(self._stub.NextTasks, request)

    async def release(
        self,
        workflow_id: str,
        task_ids: Sequence[str] = (),
        *,
        all_tasks: bool = False,
        release_owner: bool = False,
        request_id: str = "",
    ) -> tasks_pb2.ReleaseTaskResponse:
        """Gives tasks in progress back, and with `release_owner` the whole workflow."""
        request = tasks_pb2.ReleaseTaskRequest(
            request_id=request_id,
            workflow_id=workflow_id,
            task_ids=task_ids,
            all=all_tasks,
            release_owner=release_owner,
        )
        return await self._calls.mutate(self._stub.ReleaseTask, request)

    async def complete_task(
        self, workflow_id: str, task_id: str, *, attempt: int = 0, used_characters: int = 0, request_id: str = ""
    ) -> model_pb2.Progress:
        """Records that a task in progress is done."""
        request = tasks_pb2.CompleteTaskRequest(
            request_id=request_id,
            workflow_id=workflow_id,
            task_id=task_id,
            attempt=attempt,
            used_characters=used_characters,
        )
        return (await self._calls.mutate(self._stub.CompleteTask, request)).progress

    async def fail_task(
        self, workflow_id: str, task_id: str, *, reason: str = "", attempt: int = 0, request_id: str = ""
    ) -> model_pb2.Progress:
        """Records that a task in progress failed; the workflow fails."""
        request = tasks_pb2.FailTaskRequest(
            request_id=request_id, workflow_id=workflow_id, task_id=task_id, reason=reason, attempt=attempt
        )
        return (await self._calls.mutate(self._stub.FailTask, request)).progress

    async def retry_task(self, workflow_id: str, task_id: str, *, request_id: str = "") -> tasks_pb2.RetryTaskResponse:
        """Puts a failed task back to pending."""
        request = tasks_pb2.RetryTaskRequest(request_id=request_id, workflow_id=workflow_id, task_id=task_id)
        return await self._calls.mutate(self._stub.RetryTask, request)

    async def skip_task(
        self, workflow_id: str, task_id: str, *, reason: str = "", request_id: str = ""
    ) -> model_pb2.Progress:
        """Leaves a task out and frees its dependants."""
        request = tasks_pb2.SkipTaskRequest(
            request_id=request_id, workflow_id=workflow_id, task_id=task_id, reason=reason
        )
        return (await self._calls.mutate(self._stub.SkipTask, request)).progress

    async def settle_tasks(
        self,
        workflow_id: str,
        *,
        completed: Sequence[str] = (),
        rejected: Sequence[tasks_pb2.RejectedTask] = (),
        request_id: str = "",
    ) -> model_pb2.Progress:
        """Records the results of a whole wave in one transaction."""
        request = tasks_pb2.SettleTasksRequest(
            request_id=request_id, workflow_id=workflow_id, completed=completed, rejected=rejected
        )
        return (await self._calls.mutate(self._stub.SettleTasks, request)).progress

    async def pause(self, workflow_id: str, *, reason: str = "", request_id: str = "") -> model_pb2.Progress:
        """Stops a running workflow; tasks in progress may still complete."""
        request = plans_pb2.PauseRequest(request_id=request_id, workflow_id=workflow_id, reason=reason)
        return (await self._calls.mutate(self._stub.Pause, request)).progress

    async def resume(
        self, workflow_id: str, *, settings: plans_pb2.ExecutionSettings | None = None, request_id: str = ""
    ) -> model_pb2.Progress:
        """Lets a paused workflow run on."""
        request = plans_pb2.ResumeRequest(request_id=request_id, workflow_id=workflow_id, settings=settings)
        return (await self._calls.mutate(self._stub.Resume, request)).progress

    async def unblock(self, workflow_id: str, dependency: str, *, request_id: str = "") -> plans_pb2.UnblockResponse:
        """Frees the tasks that wait for an outside dependency."""
        request = plans_pb2.UnblockRequest(request_id=request_id, workflow_id=workflow_id, dependency=dependency)
        return await self._calls.mutate(self._stub.Unblock, request)

    async def cancel_plan(self, workflow_id: str, *, request_id: str = "") -> model_pb2.Progress:
        """Ends the plan; its tasks stay as they are."""
        request = plans_pb2.CancelPlanRequest(request_id=request_id, workflow_id=workflow_id)
        return (await self._calls.mutate(self._stub.CancelPlan, request)).progress

    async def get(self, workflow_id: str) -> plans_pb2.Workflow:
        """A workflow without its tasks."""
        request = reading_pb2.GetWorkflowRequest(workflow_id=workflow_id)
        return (await self._calls.call(self._stub.GetWorkflow, request)).workflow

    async def tasks(
        self, workflow_id: str, *, statuses: Sequence[model_pb2.TaskStatus.ValueType] = ()
    ) -> AsyncIterator[model_pb2.Task]:
        """A workflow's tasks in plan order; of the named statuses only, where some are named."""
        request = reading_pb2.GetWorkflowRequest(workflow_id=workflow_id, task_statuses=statuses)
        async for page in self._calls.pages(self._stub.GetWorkflow, request):
            for task in page.tasks:
                yield task

    async def all(
        self, *, statuses: Sequence[model_pb2.WorkflowStatus.ValueType] = (), run_id: str = ""
    ) -> AsyncIterator[reading_pb2.WorkflowEntry]:
        """Workflows, newest first."""
        request = reading_pb2.ListWorkflowsRequest(statuses=statuses, run_id=run_id)
        async for page in self._calls.pages(self._stub.ListWorkflows, request):
            for workflow in page.workflows:
                yield workflow

    async def resumable(self) -> AsyncIterator[reading_pb2.WorkflowEntry]:
        """Workflows that a run could continue, with what each one waits for."""
        async for page in self._calls.pages(self._stub.ListResumable, reading_pb2.ListResumableRequest()):
            for workflow in page.workflows:
                yield workflow

    def watch(self, workflow_id: str, *, after_seq: int = 0) -> AsyncIterator[Transition]:
        """A workflow's transitions, over lost connections and restarts."""
        request = reading_pb2.WatchWorkflowRequest(workflow_id=workflow_id, after_seq=after_seq)
        return self._calls.watch_entity(self._stub.WatchWorkflow, request)

    def changes(self, *, after_position: int = 0) -> AsyncIterator[Transition]:
        """The transitions of all workflows of the project in commit order; it does not end."""
        request = reading_pb2.WatchChangesRequest(after_position=after_position)
        return self._calls.watch_store(self._stub.WatchChanges, request)

    async def merge_constraints(
        self, workflow_id: str, sets: Sequence[constraints_pb2.ConstraintSet], *, request_id: str = ""
    ) -> constraints_pb2.MergeConstraintsResponse:
        """Merges the constraints that several models hold; the answer has what was dropped."""
        request = constraints_pb2.MergeConstraintsRequest(request_id=request_id, workflow_id=workflow_id, sets=sets)
        return await self._calls.mutate(self._stub.MergeConstraints, request)

    async def record_verification(
        self, workflow_id: str, verifications: Sequence[constraints_pb2.Verification], *, request_id: str = ""
    ) -> constraints_pb2.RecordVerificationResponse:
        """Records results of checks that the caller ran."""
        request = constraints_pb2.RecordVerificationRequest(
            request_id=request_id, workflow_id=workflow_id, verifications=verifications
        )
        return await self._calls.mutate(self._stub.RecordVerification, request)

    async def waive_constraint(
        self, workflow_id: str, constraint_id: str, *, reason: str, request_id: str = ""
    ) -> constraints_pb2.WaiveConstraintResponse:
        """Waives one hard constraint, by a person's decision."""
        request = constraints_pb2.WaiveConstraintRequest(
            request_id=request_id, workflow_id=workflow_id, constraint_id=constraint_id, reason=reason
        )
        return await self._calls.mutate(self._stub.WaiveConstraint, request)

    async def record_usage(
        self,
        workflow_id: str,
        *,
        task_id: str = "",
        characters: int | None = None,
        context_tokens: int | None = None,
        request_id: str = "",
    ) -> tasks_pb2.RecordUsageResponse:
        """Records characters added to the context, or its size in tokens now."""
        request = tasks_pb2.RecordUsageRequest(
            request_id=request_id,
            workflow_id=workflow_id,
            task_id=task_id,
        )
        if characters is not None:
            request.characters = characters
        if context_tokens is not None:
            request.context_tokens = context_tokens
        return await self._calls.mutate(self._stub.RecordUsage, request)

    async def audit(self, workflow_id: str, *, request_id: str = "") -> constraints_pb2.AuditResult:
        """Looks for decisions that nobody made, and records the result."""
        request = constraints_pb2.AuditRequest(request_id=request_id, workflow_id=workflow_id)
        return (await self._calls.mutate(self._stub.Audit, request)).audit

    async def classify_dependencies(
        self, specs: Sequence[model_pb2.TaskSpec]
    ) -> Sequence[constraints_pb2.ClassifiedTask]:
        """Which outside dependencies progressive mode would infer; stores nothing."""
        request = constraints_pb2.ClassifyDependenciesRequest(tasks=specs)
        return (await self._calls.call(self._stub.ClassifyDependencies, request)).tasks

    async def import_state(
        self,
        workflow_id: str,
        state_json: str,
        *,
        replace: bool = False,
        tasks_markdown: str = "",
        request_id: str = "",
    ) -> model_pb2.Progress:
        """Stores a workflow-state.json."""
        request = reading_pb2.ImportStateRequest(
            request_id=request_id,
            workflow_id=workflow_id,
            state_json=state_json,
            replace=replace,
            tasks_markdown=tasks_markdown,
        )
        return (await self._calls.mutate(self._stub.ImportState, request)).progress

    async def export_state(self, workflow_id: str) -> str:
        """A workflow as workflow-state.json."""
        request = reading_pb2.ExportStateRequest(workflow_id=workflow_id)
        return (await self._calls.call(self._stub.ExportState, request)).state_json

    async def import_tasks(self, workflow_id: str, markdown: str, *, request_id: str = "") -> model_pb2.Progress:
        """Stores a tasks.md as the plan."""
        request = reading_pb2.ImportTasksRequest(request_id=request_id, workflow_id=workflow_id, markdown=markdown)
        return (await self._calls.mutate(self._stub.ImportTasks, request)).progress

    async def export_tasks(self, workflow_id: str, *, chinese: bool = False) -> str:
        """All tasks of a workflow as tasks.md."""
        request = reading_pb2.ExportTasksRequest(workflow_id=workflow_id, chinese=chinese)
        return "".join([page.markdown async for page in self._calls.pages(self._stub.ExportTasks, request)])

    async def forget_run(self, run_id: str, *, request_id: str = "") -> int:
        """Removes the workflows that a run owned last (retention); returns how many."""
        request = reading_pb2.ForgetRunRequest(request_id=request_id, run_id=run_id)
        return (await self._calls.mutate(self._stub.ForgetRun, request)).forgotten
