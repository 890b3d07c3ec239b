"""Lists, pages, watches, files and forgetting, over gRPC on both databases."""

import json
from typing import Any

from pointsman.api.common.v1 import common_pb2
from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from tests.contract.workflow.workflows import Client, new, refused, served, task
from tests.helpers.limits import within

STATUS = model_pb2.WorkflowStatus


async def _resumable(client: Client, size: int = 0) -> list[str]:
    token, found = "", []
    while True:
        page = common_pb2.Page(page_size=size, page_token=token)
        answer = await client.stub.ListResumable(reading_pb2.ListResumableRequest(page=page))
        found += [one.workflow_id for one in answer.workflows]
        token = answer.next_page_token
        if not token:
            return found


async def test_what_can_be_resumed_comes_executable_first_then_by_priority_then_the_latest(database_url: str) -> None:
    async with served(database_url) as client:
        await client.plan("blocked", task("a", blocked_by=["api_spec"]), priority=0)
        await client.plan("late", task("a"), priority=5)
        await client.plan("urgent", task("a"), priority=1)
        await client.plan("later", task("a"), priority=5)
        await client.plan("idle", intake_text="add a page", priority=5)
        await client.plan("owned", task("a"), priority=0, owner_run_id="r1")
        await client.plan("empty", title="nothing asked")
        await client.run("running", task("a"))
        await client.plan("cancelled", task("a"))
        await client.stub.CancelPlan(plans_pb2.CancelPlanRequest(request_id=new(), workflow_id="cancelled"))
        expected = ["urgent", "idle", "later", "late", "blocked"]
        assert await _resumable(client) == expected
        assert await _resumable(client, 2) == expected
        answer = await client.stub.ListResumable(reading_pb2.ListResumableRequest())
        waits = ["execute", "a plan", "execute", "execute", "unblock api_spec, then execute"]
        assert [one.waits_for for one in answer.workflows] == waits
        assert [one.executable for one in answer.workflows] == [True, True, True, True, False]


async def test_a_workflow_that_its_run_lets_go_can_be_resumed_and_taken_up(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run("w", task("a"), task("b"))
        await client.plan("w", owner_run_id="r1")
        await client.take("w")
        assert await _resumable(client) == []
        await client.stub.ReleaseTask(
            tasks_pb2.ReleaseTaskRequest(request_id=new(), workflow_id="w", release_owner=True)
        )
        assert await _resumable(client) == ["w"]
        await client.plan("w", owner_run_id="r2")
        assert await _resumable(client) == []
        reason, metadata, _ = await refused(client.plan("w", owner_run_id="r3"))
        assert (reason, metadata["owner_run_id"]) == ("WORKFLOW_OWNED", "r2")
        await client.stub.Resume(plans_pb2.ResumeRequest(request_id=new(), workflow_id="w"))
        assert await client.take("w", 5) == ["a", "b"]


async def test_workflows_are_listed_newest_first_page_by_page_and_by_state(database_url: str) -> None:
    async with served(database_url) as client:
        for number in range(5):
            await client.plan(f"w{number}", task("a"), owner_run_id=f"r{number}")
        await client.plan("idle", title="x")
        token, found = "", []
        while True:
            page = common_pb2.Page(page_size=4, page_token=token)
            answer = await client.stub.ListWorkflows(reading_pb2.ListWorkflowsRequest(page=page))
            found += [one.workflow_id for one in answer.workflows]
            token = answer.next_page_token
            if not token:
                break
        assert found == ["idle", "w4", "w3", "w2", "w1", "w0"]
        request = reading_pb2.ListWorkflowsRequest(statuses=[STATUS.WORKFLOW_STATUS_IDLE])
        assert [one.workflow_id for one in (await client.stub.ListWorkflows(request)).workflows] == ["idle"]
        request = reading_pb2.ListWorkflowsRequest(run_id="r3")
        assert [one.workflow_id for one in (await client.stub.ListWorkflows(request)).workflows] == ["w3"]


async def test_tasks_come_in_pages_and_by_state(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run("w", *(task(f"t{number}") for number in range(5)))
        await client.take("w", 2)
        page = common_pb2.Page(page_size=2)
        first = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id="w", page=page))
        assert [one.spec.task_id for one in first.tasks] == ["t0", "t1"]
        page.page_token = first.next_page_token
        second = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id="w", page=page))
        assert [one.spec.task_id for one in second.tasks] == ["t2", "t3"]
        held = reading_pb2.GetWorkflowRequest(workflow_id="w", task_statuses=[model_pb2.TASK_STATUS_IN_PROGRESS])
        assert [one.spec.task_id for one in (await client.stub.GetWorkflow(held)).tasks] == ["t0", "t1"]


async def test_a_foreign_page_token_is_refused(database_url: str) -> None:
    async with served(database_url) as client:
        await client.plan("w", task("a"))
        for token in ("!", "WyJhIl0=", "WzEsMl0="):
            page = common_pb2.Page(page_token=token)
            reason, _, _ = await refused(
                client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id="w", page=page))
            )
            assert reason == "INVALID_PAGE_TOKEN"


async def test_a_workflow_of_another_project_answers_like_a_missing_one(database_url: str) -> None:
    async with served(database_url) as client:
        await client.plan("w", task("a"))
        request = reading_pb2.GetWorkflowRequest(workflow_id="w")
        other = (("pointsman-project", "other"),)
        assert (await refused(client.stub.GetWorkflow(request, metadata=other)))[0] == "NOT_FOUND"
        execute = plans_pb2.ExecuteRequest(request_id=new(), workflow_id="w")
        assert (await refused(client.stub.Execute(execute, metadata=other)))[0] == "NOT_FOUND"
        listed = await client.stub.ListWorkflows(reading_pb2.ListWorkflowsRequest(), metadata=other)
        assert list(listed.workflows) == []


async def test_watching_shows_what_was_and_what_comes_without_gap_or_repeat(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run("w", task("a"))
        watch = client.stub.WatchWorkflow(reading_pb2.WatchWorkflowRequest(workflow_id="w", after_seq=1))
        seen = [(await _next(watch)).transition for _ in range(2)]
        await client.complete("w", *await client.take("w"))
        seen += [(await _next(watch)).transition for _ in range(3)]
        watch.cancel()
        assert [one.seq for one in seen] == [2, 3, 4, 5, 6]
        assert [one.event for one in seen] == ["plan_stored", "executed", "claimed", "tasks_settled", "completed"]
        assert [(one.from_state, one.to_state) for one in seen][-1] == ("running", "completed")


async def test_changes_of_all_workflows_come_in_commit_order(database_url: str) -> None:
    async with served(database_url) as client:
        await client.plan("one", title="1")
        await client.plan("two", title="2")
        watch = client.stub.WatchChanges(reading_pb2.WatchChangesRequest(after_position=1))
        seen = [(await _next(watch)).transition for _ in range(3)]
        watch.cancel()
        assert [(one.entity_id, one.event) for one in seen] == [
            ("one", "fields_changed"),
            ("two", "created"),
            ("two", "fields_changed"),
        ]


async def _next(watch: Any) -> Any:
    async with within(10):
        return await watch.read()


async def test_a_state_file_is_imported_exported_and_never_lost_to_a_malformed_one(database_url: str) -> None:
    document = {"project_id": "shop", "status": "paused", "progress": {"completed": ["T1"]}, "mine": {"x": 1}}
    async with served(database_url) as client:
        await _import(client, json.dumps(document))
        export = reading_pb2.ExportStateRequest(workflow_id="shop")
        before = (await client.stub.ExportState(export)).state_json
        assert json.loads(before) == document
        for text in ("{", "[]", '{"status": "paused", "status": "idle"}', '{"status": "lost", "project_id": "shop"}'):
            reason, _, fields = await refused(_import(client, text, replace=True))
            assert reason == "INVALID_FIELD"
            assert fields[0].startswith("state_json")
        assert (await client.stub.ExportState(export)).state_json == before
        assert (await refused(_import(client, json.dumps(document))))[0] == "ALREADY_EXISTS"
        await _import(client, json.dumps({**document, "status": "running"}), replace=True)
        assert json.loads((await client.stub.ExportState(export)).state_json)["status"] == "running"


async def _import(client: Client, text: str, *, replace: bool = False) -> None:
    request = reading_pb2.ImportStateRequest(request_id=new(), state_json=text, replace=replace)
    await client.stub.ImportState(request)


async def test_a_tasks_file_is_imported_exported_in_pages_and_never_lost_to_a_malformed_one(database_url: str) -> None:
    markdown = "## T1: first\n\n- **actions**: edit\n- **status**: pending\n\n## T2: second\n\n- **depends**: T1\n- **status**: pending\n\n"
    async with served(database_url) as client:
        await _import_tasks(client, markdown)
        for text in ("no task", "## T1: a\n- **depends**: T7\n", "## T1: a\n## T1: b\n"):
            reason, _, fields = await refused(_import_tasks(client, text))
            assert reason == "INVALID_FIELD"
            assert fields[0].startswith("markdown:")
        token, text = "", ""
        while True:
            page = common_pb2.Page(page_size=1, page_token=token)
            answer = await client.stub.ExportTasks(reading_pb2.ExportTasksRequest(workflow_id="w", page=page))
            text, token = text + answer.markdown, answer.next_page_token
            if not token:
                break
        assert text == markdown


async def _import_tasks(client: Client, markdown: str) -> None:
    await client.stub.ImportTasks(reading_pb2.ImportTasksRequest(request_id=new(), workflow_id="w", markdown=markdown))


async def test_forgetting_a_run_removes_what_is_over_and_keeps_what_can_be_resumed(database_url: str) -> None:
    async with served(database_url) as client:
        for name in ("done", "parked"):
            await client.run(name, task("a"))
            await client.plan(name, owner_run_id="r1")
        await client.complete("done", *await client.take("done"))
        await client.stub.ReleaseTask(
            tasks_pb2.ReleaseTaskRequest(request_id=new(), workflow_id="parked", release_owner=True)
        )
        answer = await client.stub.ForgetRun(reading_pb2.ForgetRunRequest(request_id=new(), run_id="r1"))
        assert answer.forgotten == 1
        answer = await client.stub.ForgetRun(reading_pb2.ForgetRunRequest(request_id=new(), run_id="r1"))
        assert answer.forgotten == 0
        assert (await refused(client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id="done"))))[
            0
        ] == "NOT_FOUND"
        assert await _resumable(client) == ["parked"]
        await client.run("done", task("b"))
        assert await client.take("done") == ["b"]


async def test_constraints_hold_a_workflow_back_until_they_are_verified_or_waived(database_url: str) -> None:
    async with served(database_url) as client:
        await client.run("w", task("a"))
        held = [constraints_pb2.Constraint(constraint_id=one, description=one) for one in ("C1", "C2")]
        merged = await client.stub.MergeConstraints(
            constraints_pb2.MergeConstraintsRequest(
                request_id=new(), workflow_id="w", sets=[constraints_pb2.ConstraintSet(hard=held)]
            )
        )
        assert [one.constraint_id for one in merged.constraints.hard] == ["C1", "C2"]
        await client.complete("w", *await client.take("w"))
        checked = constraints_pb2.Verification(constraint_id="C1", passed=True)
        checked.checked_at.GetCurrentTime()
        verified = await client.stub.RecordVerification(
            constraints_pb2.RecordVerificationRequest(request_id=new(), workflow_id="w", verifications=[checked])
        )
        assert list(verified.unmet_constraint_ids) == ["C2"]
        assert list(verified.progress.pause.constraint_ids) == ["C1", "C2"]
        waived = await client.stub.WaiveConstraint(
            constraints_pb2.WaiveConstraintRequest(
                request_id=new(), workflow_id="w", constraint_id="C2", reason="no such backend"
            )
        )
        assert waived.progress.status == STATUS.WORKFLOW_STATUS_COMPLETED
        reading = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id="w"))
        assert [one.verification for one in reading.workflow.constraints.hard] == [
            constraints_pb2.VERIFICATION_STATUS_PASSED,
            constraints_pb2.VERIFICATION_STATUS_WAIVED,
        ]
        assert reading.workflow.risks[0].subject_id == "C2"


async def test_audit_usage_and_classification_answer_what_they_found(database_url: str) -> None:
    async with served(database_url) as client:
        await client.plan("w", task("a", name="colour TBD"))
        audit = await client.stub.Audit(constraints_pb2.AuditRequest(request_id=new(), workflow_id="w"))
        assert [one.finding_id for one in audit.audit.findings if one.error] == [
            "a/name/undecided",
            "a/actions/no_actions",
        ]
        used = tasks_pb2.RecordUsageRequest(request_id=new(), workflow_id="w", task_id="a", characters=520_000)
        assert (await client.stub.RecordUsage(used)).usage_percent == 65
        classified = await client.stub.ClassifyDependencies(
            constraints_pb2.ClassifyDependenciesRequest(tasks=[task("a", name="user api"), task("b")])
        )
        assert [list(one.dependencies) for one in classified.tasks] == [["api_spec"], []]
        reading = await client.stub.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id="w"))
        assert reading.workflow.context_metrics.history[0].tokens == 130_000
        assert not reading.workflow.audit.passed
