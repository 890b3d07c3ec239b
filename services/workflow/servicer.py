"""WorkflowService over gRPC: decode, one call of the store, encode."""

from collections.abc import AsyncIterator
from typing import Any

from pointsman.api.common.v1 import common_pb2
from pointsman.api.workflow.v1 import constraints_pb2, plans_pb2, reading_pb2, tasks_pb2
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.rpc.paging import page_size, transition
from pointsman.services.workflow.config import WorkflowSettings
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.dependency_classes import classify_dependencies
from pointsman.services.workflow.domain.enums import KIND
from pointsman.services.workflow.domain.views import TaskPage, WorkflowFilter
from pointsman.services.workflow.formats.tasks_markdown import write_tasks
from pointsman.services.workflow.formats.workflow_state_reader import read_state
from pointsman.services.workflow.formats.workflow_state_writer import write_state
from pointsman.services.workflow.store import WorkflowStore
from pointsman.services.workflow.wire import decode, encode, enums


class WorkflowServicer:
    """Every RPC of WorkflowService; workflow.proto documents them."""

    def __init__(self, workflows: WorkflowStore, settings: WorkflowSettings) -> None:
        self._workflows = workflows
        self._settings = settings

    async def UpsertPlan(self, request: plans_pb2.UpsertPlanRequest, caller: Caller) -> plans_pb2.UpsertPlanResponse:
        """Creates a workflow, or changes its plan and fields."""
        return encode.plan_stored(await self._workflows.submit(caller, decode.upsert_plan(request)))

    async def Execute(self, request: plans_pb2.ExecuteRequest, caller: Caller) -> plans_pb2.ExecuteResponse:
        """Starts a planned workflow."""
        answer = await self._workflows.submit(caller, decode.execute(request))
        return plans_pb2.ExecuteResponse(progress=encode.progress(answer))

    async def NextTasks(self, request: tasks_pb2.NextTasksRequest, caller: Caller) -> tasks_pb2.NextTasksResponse:
        """Hands out ready tasks."""
        return encode.handed_out(await self._workflows.submit(caller, decode.next_tasks(request)))

    async def ReleaseTask(self, request: tasks_pb2.ReleaseTaskRequest, caller: Caller) -> tasks_pb2.ReleaseTaskResponse:
        """Releases tasks, or the workflow itself."""
        answer = await self._workflows.submit(caller, decode.release_task(request))
        return tasks_pb2.ReleaseTaskResponse(progress=encode.progress(answer.progress), released=answer.count)

    async def CompleteTask(
        self, request: tasks_pb2.CompleteTaskRequest, caller: Caller
    ) -> tasks_pb2.CompleteTaskResponse:
        """Completes a task."""
        answer = await self._workflows.submit(caller, decode.complete_task(request))
        return tasks_pb2.CompleteTaskResponse(progress=encode.progress(answer))

    async def FailTask(self, request: tasks_pb2.FailTaskRequest, caller: Caller) -> tasks_pb2.FailTaskResponse:
        """Fails a task."""
        answer = await self._workflows.submit(caller, decode.fail_task(request))
        return tasks_pb2.FailTaskResponse(progress=encode.progress(answer))

    async def RetryTask(self, request: tasks_pb2.RetryTaskRequest, caller: Caller) -> tasks_pb2.RetryTaskResponse:
        """Returns a failed task to pending."""
        answer = await self._workflows.submit(caller, commands.RetryTask(request.workflow_id, request.task_id))
        return tasks_pb2.RetryTaskResponse(progress=encode.progress(answer.progress), retry_count=answer.count)

    async def SkipTask(self, request: tasks_pb2.SkipTaskRequest, caller: Caller) -> tasks_pb2.SkipTaskResponse:
        """Skips a task."""
        command = commands.SkipTask(request.workflow_id, request.task_id, request.reason)
        return tasks_pb2.SkipTaskResponse(progress=encode.progress(await self._workflows.submit(caller, command)))

    async def SettleTasks(self, request: tasks_pb2.SettleTasksRequest, caller: Caller) -> tasks_pb2.SettleTasksResponse:
        """Records the results of a whole wave."""
        answer = await self._workflows.submit(caller, decode.settle_tasks(request))
        return tasks_pb2.SettleTasksResponse(progress=encode.progress(answer))

    async def Pause(self, request: plans_pb2.PauseRequest, caller: Caller) -> plans_pb2.PauseResponse:
        """Pauses a running workflow."""
        answer = await self._workflows.submit(caller, commands.PauseWorkflow(request.workflow_id, request.reason))
        return plans_pb2.PauseResponse(progress=encode.progress(answer))

    async def Resume(self, request: plans_pb2.ResumeRequest, caller: Caller) -> plans_pb2.ResumeResponse:
        """Resumes a paused workflow."""
        command = commands.Resume(request.workflow_id, decode.settings_of(request.settings))
        return plans_pb2.ResumeResponse(progress=encode.progress(await self._workflows.submit(caller, command)))

    async def Unblock(self, request: plans_pb2.UnblockRequest, caller: Caller) -> plans_pb2.UnblockResponse:
        """Marks an external dependency as available."""
        answer = await self._workflows.submit(caller, commands.Unblock(request.workflow_id, request.dependency))
        return plans_pb2.UnblockResponse(progress=encode.progress(answer.progress), freed=answer.count)

    async def CancelPlan(self, request: plans_pb2.CancelPlanRequest, caller: Caller) -> plans_pb2.CancelPlanResponse:
        """Cancels the plan."""
        answer = await self._workflows.submit(caller, commands.CancelPlan(request.workflow_id))
        return plans_pb2.CancelPlanResponse(progress=encode.progress(answer))

    async def MergeConstraints(
        self, request: constraints_pb2.MergeConstraintsRequest, caller: Caller
    ) -> constraints_pb2.MergeConstraintsResponse:
        """Merges the constraint sets of several models."""
        return encode.merged(await self._workflows.submit(caller, decode.merge_constraints(request)))

    async def RecordVerification(
        self, request: constraints_pb2.RecordVerificationRequest, caller: Caller
    ) -> constraints_pb2.RecordVerificationResponse:
        """Records results of checks."""
        answer = await self._workflows.submit(caller, decode.record_verification(request))
        return constraints_pb2.RecordVerificationResponse(
            progress=encode.progress(answer.progress), unmet_constraint_ids=answer.unmet
        )

    async def WaiveConstraint(
        self, request: constraints_pb2.WaiveConstraintRequest, caller: Caller
    ) -> constraints_pb2.WaiveConstraintResponse:
        """Waives one constraint, in the caller's name."""
        command = commands.WaiveConstraint(request.workflow_id, request.constraint_id, request.reason, caller.principal)
        answer = await self._workflows.submit(caller, command)
        return constraints_pb2.WaiveConstraintResponse(
            progress=encode.progress(answer.progress), unmet_constraint_ids=answer.unmet
        )

    async def RecordUsage(self, request: tasks_pb2.RecordUsageRequest, caller: Caller) -> tasks_pb2.RecordUsageResponse:
        """Records context usage."""
        answer = await self._workflows.submit(caller, decode.record_usage(request))
        return tasks_pb2.RecordUsageResponse(
            progress=encode.progress(answer.progress), usage_percent=answer.usage_percent
        )

    async def Audit(self, request: constraints_pb2.AuditRequest, caller: Caller) -> constraints_pb2.AuditResponse:
        """Runs the zero-decision audit."""
        answer = await self._workflows.submit(caller, commands.RunAudit(request.workflow_id))
        return constraints_pb2.AuditResponse(audit=encode.audit(answer))

    async def ClassifyDependencies(
        self, request: constraints_pb2.ClassifyDependenciesRequest, _caller: Caller
    ) -> constraints_pb2.ClassifyDependenciesResponse:
        """Returns the dependencies that progressive mode would infer."""
        specs = decode.specs_of(request.tasks)
        return encode.classified(specs, [classify_dependencies(spec) for spec in specs])

    async def GetWorkflow(
        self, request: reading_pb2.GetWorkflowRequest, caller: Caller
    ) -> reading_pb2.GetWorkflowResponse:
        """Returns a workflow with a page of its tasks."""
        size = self._page_size(request.page)
        statuses = enums.TASK_STATUS.all_to_domain(request.task_statuses)
        wanted = TaskPage(size + 1, decode.position_after(request.page), statuses)
        stored = await self._workflows.read(caller.project, request.workflow_id, wanted)
        return reading_pb2.GetWorkflowResponse(
            workflow=encode.workflow(stored.state, stored.seq),
            tasks=[encode.task(task) for task in stored.tasks[:size]],
            next_page_token=encode.next_page_token([(task.position,) for task in stored.tasks], size),
        )

    async def ListWorkflows(
        self, request: reading_pb2.ListWorkflowsRequest, caller: Caller
    ) -> reading_pb2.ListWorkflowsResponse:
        """Returns the workflows of the project, the newest first."""
        size = self._page_size(request.page)
        wanted = WorkflowFilter(enums.WORKFLOW_STATUS.all_to_domain(request.statuses), request.run_id)
        found = await self._workflows.list(caller.project, wanted, decode.key_after(request.page, (int, str)), size + 1)
        return reading_pb2.ListWorkflowsResponse(
            workflows=[encode.entry(one.header) for one in found[:size]],
            next_page_token=encode.next_page_token([one.key for one in found], size),
        )

    async def ListResumable(
        self, request: reading_pb2.ListResumableRequest, caller: Caller
    ) -> reading_pb2.ListResumableResponse:
        """Returns the resumable workflows, in the order in which runs should continue them."""
        size = self._page_size(request.page)
        after = decode.key_after(request.page, (int, int, int, str))
        found = await self._workflows.list_resumable(caller.project, after, size + 1)
        return reading_pb2.ListResumableResponse(
            workflows=[encode.entry(one.header) for one in found[:size]],
            next_page_token=encode.next_page_token([one.key for one in found], size),
        )

    async def WatchWorkflow(
        self, request: reading_pb2.WatchWorkflowRequest, caller: Caller
    ) -> AsyncIterator[reading_pb2.WatchWorkflowResponse]:
        """Streams the transitions of a workflow."""
        entity = (KIND, request.workflow_id)
        batches = self._workflows.journal.tail(caller.project, entity, request.after_seq, request.batch_size)
        async for rows in batches:
            first, *more = [transition(row) for row in rows]
            yield reading_pb2.WatchWorkflowResponse(transition=first, more=more)

    async def WatchChanges(
        self, request: reading_pb2.WatchChangesRequest, caller: Caller
    ) -> AsyncIterator[reading_pb2.WatchChangesResponse]:
        """Streams the transitions of all workflows of the project."""
        batches = self._workflows.journal.changes(caller.project, request.after_position, request.batch_size)
        async for rows in batches:
            first, *more = [transition(row) for row in rows]
            yield reading_pb2.WatchChangesResponse(transition=first, more=more)

    async def ImportState(
        self, request: reading_pb2.ImportStateRequest, caller: Caller
    ) -> reading_pb2.ImportStateResponse:
        """Imports a workflow-state.json."""
        imported = read_state(request.state_json, request.workflow_id, self._workflows.now())
        answer: Any = await self._workflows.submit(caller, decode.import_state(request, imported))
        return reading_pb2.ImportStateResponse(progress=encode.progress(answer))

    async def ExportState(
        self, request: reading_pb2.ExportStateRequest, caller: Caller
    ) -> reading_pb2.ExportStateResponse:
        """Returns a workflow as workflow-state.json."""
        state = await self._workflows.read_whole(caller.project, request.workflow_id)
        return reading_pb2.ExportStateResponse(state_json=write_state(state))

    async def ImportTasks(
        self, request: reading_pb2.ImportTasksRequest, caller: Caller
    ) -> reading_pb2.ImportTasksResponse:
        """Imports a tasks.md as the plan."""
        answer = await self._workflows.submit(caller, decode.import_tasks(request))
        return reading_pb2.ImportTasksResponse(progress=encode.progress(answer.progress))

    async def ExportTasks(
        self, request: reading_pb2.ExportTasksRequest, caller: Caller
    ) -> reading_pb2.ExportTasksResponse:
        """Returns a page of the tasks as tasks.md."""
        size = self._page_size(request.page)
        wanted = TaskPage(size + 1, decode.position_after(request.page))
        stored = await self._workflows.read(caller.project, request.workflow_id, wanted)
        return reading_pb2.ExportTasksResponse(
            markdown=write_tasks(stored.tasks[:size], chinese=request.chinese),
            next_page_token=encode.next_page_token([(task.position,) for task in stored.tasks], size),
        )

    async def ForgetRun(self, request: reading_pb2.ForgetRunRequest, caller: Caller) -> reading_pb2.ForgetRunResponse:
        """Deletes the workflows of a run that are over."""
        forgotten = await self._workflows.forget_run(caller, request.run_id)
        return reading_pb2.ForgetRunResponse(forgotten=forgotten)

    def _page_size(self, page: common_pb2.Page) -> int:
        """How many items the page holds: as asked, up to the setting."""
        return min(page_size(page), self._settings.max_page_size)
