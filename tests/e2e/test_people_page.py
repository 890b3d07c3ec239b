"""What waits for a person, in a real browser: each action with its consequence, and what comes of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Request, Route, expect

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.pipeline.v1 import pipeline_pb2, requests_pb2, state_pb2
from pointsman.api.workflow.v1 import constraints_pb2, model_pb2, plans_pb2, reading_pb2, tasks_pb2
from tests.e2e.consoles import Console, console, forgive, viewed
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, WISH

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]
VAGUE = "Fix the newest thing in src/new.py"


async def answer(page: Page, run: runs.Run, button: str, **fields: str) -> None:
    """Press a button of the run's card or page, fill in what is asked for, confirm."""
    place = page.locator("#run-head") if "/runs/" in page.url else page.locator(f'.card:has(a[href$="{run.id}"])')
    await place.get_by_role("button", name=button, exact=True).click()
    await expect(page.locator("dialog .consequence")).not_to_be_empty()
    for label, value in fields.items():
        await page.locator(f"dialog [name={label}]").fill(value)
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.locator("dialog")).to_have_count(0)


async def test_a_question_appears_is_answered_and_goes_away(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        page = await view.open(here, "/people")
        await expect(page.locator("#questions")).to_have_text("Nobody is waited for.")
        run = await here.plane.submit(VAGUE)
        await expect(page.locator("#questions .card")).to_contain_text("What is meant?")
        await expect(page.locator("#people-count")).to_have_text("1")
        await answer(page, run, "clarify", text=WISH)
        await expect(page.locator("#questions")).to_have_text("Nobody is waited for.")
        ended = await here.plane.ended(run.id)
        assert (ended.state, ended.intent) == (runs.RUN_STATE_COMPLETE, WISH)


async def test_an_answer_that_comes_too_late_says_why(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        run = await here.plane.asked((await here.plane.submit(VAGUE)).id)
        page = await view.open(here, "/people")
        await page.get_by_role("button", name="clarify").click()
        await page.locator("dialog [name=text]").fill("too late")
        await here.plane.answer(run, runs.ANSWER_KIND_CLARIFIED, text=WISH)
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("dialog .problem")).to_contain_text("question")
        await page.get_by_role("button", name="Back").click()
        forgive(view, "409")


@pytest.mark.parametrize("choice", ["switch", "keep", "merge"])
async def test_a_conflict_is_decided(tmp_path: Path, browser: Browser, choice: str) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        await here.plane.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        first = await here.plane.taken((await here.plane.submit(session_id="s")).id)
        second = await here.plane.asked(
            (await here.plane.submit("Rename the function in src/lexer.py", session_id="s")).id
        )
        await here.plane.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_SUCCESS)
        page = await view.open(here, f"/runs/{second.id}" if choice == "switch" else "/people")
        await answer(page, second, choice)
        if choice == "switch":
            assert (await here.plane.ended(first.id)).end_reason == "parked"
            await expect(page.locator("#run-head h1")).to_contain_text("done")
        else:
            ended = await here.plane.ended(second.id)
            assert ended.end_reason.startswith("kept" if choice == "keep" else "merged")


async def test_a_budget_is_raised_work_is_accepted_and_a_run_is_cancelled(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        page = await view.open(here, "/people")
        poor = await here.plane.asked((await here.plane.submit(budget=runs.Budget(assignments=2))).id)
        await answer(page, poor, "raise", assignments="50")
        assert (await here.plane.ended(poor.id)).state == runs.RUN_STATE_COMPLETE
        await here.plane.behave(mock.MOCK_ROLE_REVIEWER, mock.MOCK_OUTCOME_MALFORMED)
        work = await here.plane.asked((await here.plane.submit(lenient=True)).id)
        assert work.question.kind == runs.QUESTION_KIND_ACCEPTANCE
        await answer(page, work, "accept")
        assert (await here.plane.ended(work.id)).state == runs.RUN_STATE_COMPLETE
        vague = await here.plane.asked((await here.plane.submit(VAGUE)).id)
        await answer(page, vague, "cancel the run", reason="not worth it")
        assert (await here.plane.ended(vague.id)).end_reason == "cancelled: not worth it"


async def test_unfinished_work_is_resumed_or_left(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        await _epic(here, "left", "paused")
        page = await view.open(here, "/people")
        no = await here.plane.asked((await here.plane.submit(resume=pb.RESUME_ASK)).id)
        await answer(page, no, "leave it")
        assert (await here.plane.ended(no.id)).state == runs.RUN_STATE_COMPLETE


async def _epic(here: Console, name: str, shape: str) -> None:
    """A workflow of its own, in the state that the test needs."""
    plane, workflow = here.plane, here.plane.workflow
    blocked = ["api_spec"] if shape == "blocked" else []
    tasks = [model_pb2.TaskSpec(task_id="T1", name="first"), model_pb2.TaskSpec(task_id="T2", name="second")]
    if blocked:
        tasks = [model_pb2.TaskSpec(task_id="T1", name="first", blocked_by=blocked)]
    new = plane.request_id
    await workflow.UpsertPlan(plans_pb2.UpsertPlanRequest(request_id=new(), workflow_id=name, title=name, tasks=tasks))
    if shape == "constrained":
        hard = constraints_pb2.Constraint(constraint_id="HC1", description="must hold")
        sets = [constraints_pb2.ConstraintSet(hard=[hard])]
        await workflow.MergeConstraints(
            constraints_pb2.MergeConstraintsRequest(request_id=new(), workflow_id=name, sets=sets)
        )
    await workflow.Execute(plans_pb2.ExecuteRequest(request_id=new(), workflow_id=name))
    if shape == "failed":
        await workflow.NextTasks(tasks_pb2.NextTasksRequest(request_id=new(), workflow_id=name))
        failed = tasks_pb2.FailTaskRequest(request_id=new(), workflow_id=name, task_id="T1", reason="broken")
        await workflow.FailTask(failed)
    if shape in ("paused", "constrained"):
        await workflow.Pause(plans_pb2.PauseRequest(request_id=new(), workflow_id=name))


async def _status(here: Console, name: str) -> str:
    answer = await here.plane.workflow.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=name))
    return model_pb2.WorkflowStatus.Name(answer.workflow.progress.status).removeprefix("WORKFLOW_STATUS_")


EPIC_ACTIONS = [
    ("paused", "resume", {}, "RUNNING"),
    ("blocked", "unblock", {"subject": "api_spec"}, "RUNNING"),
    ("failed", "retry a task", {"subject": "T1"}, "RUNNING"),
    ("failed", "skip a task", {"subject": "T1", "reason": "not needed"}, "RUNNING"),
    ("paused", "cancel the plan", {}, "FAILED"),
    ("constrained", "waive a constraint", {"reason": "known"}, "PAUSED"),
]


async def test_epics_without_a_run_are_resumed_unblocked_retried_skipped_waived_and_cancelled(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        for number, (shape, button, given, after) in enumerate(EPIC_ACTIONS):
            name, fields = f"e{number}", dict(given)
            await _epic(here, name, shape)
            page = await view.open(here, "/people")
            card = page.locator(f'#epics .card[data-key="{name}"]')
            await expect(card).to_be_visible()
            if button == "waive a constraint":
                reading = await here.plane.workflow.GetWorkflow(reading_pb2.GetWorkflowRequest(workflow_id=name))
                fields["subject"] = reading.workflow.constraints.hard[0].constraint_id
            await card.get_by_role("button", name=button, exact=True).click()
            for label, value in fields.items():
                await page.locator(f"dialog [name={label}]").fill(value)
            await page.get_by_role("button", name="Confirm").click()
            await expect(page.locator("dialog")).to_have_count(0)

            async def reached(name: str = name, after: str = after) -> bool:
                return await _status(here, name) == after

            await eventually(reached)


PIPELINE_ACTIONS = [
    ("restart from a stage", "ACTIVE"),
    ("skip a stage", "COMPLETED"),
    ("cancel the pipeline", "CANCELLED"),
]


async def test_escalated_pipelines_without_a_run_are_restarted_skipped_and_cancelled(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        page = await view.open(here, "/people")
        for number, (button, after) in enumerate(PIPELINE_ACTIONS):
            name = f"p{number}"
            await _escalated(here, name)
            card = page.locator(f'#pipelines .card[data-key="{name}"]')
            await card.get_by_role("button", name=button, exact=True).click()
            await expect(page.locator("dialog .consequence")).not_to_be_empty()
            await page.get_by_role("button", name="Confirm").click()
            await expect(card).to_have_count(0)
            reading = await here.plane.pipeline.GetPipeline(requests_pb2.GetPipelineRequest(pipeline_id=name))
            reached = state_pb2.PipelineState.Name(reading.pipeline.summary.state).removeprefix("PIPELINE_STATE_")
            assert reached.startswith(after)


async def _escalated(here: Console, name: str) -> None:
    """A strict pipeline whose reviewer said nothing three times."""
    plane, auto = here.plane, pipeline_pb2.AutoDelegate(agent_id="agent")
    begin = pipeline_pb2.StartPipelineRequest(
        request_id=plane.request_id(), pipeline_id=name, template="review-only", policy=state_pb2.POLICY_STRICT,
        auto_delegate=auto,
    )  # fmt: skip
    await plane.pipeline.StartPipeline(begin)
    for number in (1, 2, 3):
        complete = pipeline_pb2.CompleteStageRequest(
            request_id=plane.request_id(), pipeline_id=name, delegation_id=f"REVIEW#{number}", agent_id="agent",
            auto_delegate=auto,
        )  # fmt: skip
        answer = await plane.pipeline.CompleteStage(complete)
    assert answer.state == state_pb2.PIPELINE_STATE_ESCALATED


async def test_every_kind_of_answer_is_sent_as_the_contract_wants_it(tmp_path: Path, browser: Browser) -> None:
    sent: list[Any] = []
    kinds = [name for name in runs.AnswerKind.keys() if not name.endswith("UNSPECIFIED")]  # noqa: SIM118
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        real = await here.plane.asked((await here.plane.submit(VAGUE)).id)
        page = view.page

        async def with_every_answer(route: Route) -> None:
            body = await (await route.fetch()).json()
            for run in body["runs"]:
                run["question"] |= {"takes": kinds, "subjects": ["REVIEW"]}
            await route.fulfill(json=body)

        async def keep(route: Route, request: Request) -> None:
            sent.append(json.loads(request.post_data or "{}"))
            await route.fulfill(json={"run": {}})

        await page.route("**/ListRuns", with_every_answer)
        await page.route("**/Answer", keep)
        await view.open(here, "/people")
        buttons = page.locator("#questions .choices button:not(.danger)")
        await expect(buttons).to_have_count(len(kinds))
        for number in range(len(kinds)):
            await buttons.nth(number).click()
            await expect(page.locator("dialog .consequence")).not_to_have_text("The answer is given.")
            for field in await page.locator("dialog input[required], dialog textarea[required]").all():
                await field.fill("REVIEW")
            await page.get_by_role("button", name="Confirm").click()
            await expect(page.locator("dialog")).to_have_count(0)
    assert [one["answer"] for one in sent] == kinds
    for one in sent:
        message = pb.AnswerRequest(run_id=one["run_id"], question_id=one["question_id"])
        assert (message.run_id, message.question_id) == (real.id, real.question.id)
        assert 1 <= len(one["request_id"]) <= 128
