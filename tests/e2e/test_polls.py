"""What pages look at again and again: each look is light, however much there is to look at."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Response, expect

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.workflow.v1 import model_pb2, plans_pb2
from tests.e2e.consoles import Console, console, viewed
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
LIGHT = 2048
POLLS = {"/runs": "CountRuns", "/people": "ListResumable", "/agents": "ListAssignments"}
"""What each page asks again and again."""
AGENTS, OPEN, EPICS = 40, 12, 15


async def crowd(here: Console) -> runs.Run:
    """Many agents, runs whose work nobody takes, epics without a run, and one run that is looked at."""
    plane = here.plane
    for number in range(AGENTS):
        wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_REVIEW], repository_ids=[f"{number:040x}"])
        name = f"reviewer-of-the-north-{number}"
        await plane.agents.Poll(agent.PollRequest(request_id=plane.request_id(), agent_id=name, wanted=wanted))
    tasks = [model_pb2.TaskSpec(task_id="T1", name="first")]
    for number in range(EPICS):
        request = plans_pb2.UpsertPlanRequest(request_id=plane.request_id(), workflow_id=f"epic-{number}", tasks=tasks)
        request.title = f"Epic number {number}"
        await plane.workflow.UpsertPlan(request)
        await plane.workflow.Execute(
            plans_pb2.ExecuteRequest(request_id=plane.request_id(), workflow_id=f"epic-{number}")
        )
        await plane.workflow.Pause(plans_pb2.PauseRequest(request_id=plane.request_id(), workflow_id=f"epic-{number}"))
    open_runs = [await plane.submit(f"Fix the signal {number} in src/signal.py") for number in range(OPEN)]
    for run in open_runs:
        await plane.reached(run.id, runs.RUN_STATE_CODER_EXEC)
    last: runs.Run = await plane.get(open_runs[-1].id)
    return last


async def looks(page: Page, name: str, *, times: int) -> list[tuple[str, int]]:
    """What the page asks until it has looked so many times: each with the bytes of the answer's body over the wire."""
    answers: list[tuple[str, int]] = []

    def note(answer: Response) -> None:
        if "/api/v1/" in answer.url and "/Watch" not in answer.url:
            answers.append((answer.url, int(answer.headers.get("content-length", "0"))))

    page.on("response", note)

    async def enough() -> bool:
        return sum(name in url for url, _ in answers) >= times

    await eventually(enough, 60.0)
    page.remove_listener("response", note)
    return answers


async def test_no_look_that_a_page_repeats_is_heavier_than_two_kilobytes(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        run = await crowd(here)
        for path, name in {**POLLS, f"/runs/{run.id}": "ListRuns"}.items():
            page = await view.open(here, path)
            await expect(page.locator("#live")).to_have_text("live")
            if path == "/agents":
                await expect(page.locator("#agents tbody tr")).to_have_count(AGENTS)
                await expect(page.locator("#open-work tbody tr")).to_have_count(OPEN)
            await page.wait_for_load_state("load")
            await looks(page, "CountRuns", times=1)
            heavy = [(url, size) for url, size in await looks(page, name, times=3) if size > LIGHT]
            assert not heavy, (path, heavy)


async def test_a_list_that_is_looked_at_in_pieces_loses_and_gains_what_comes_and_goes(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        await crowd(here)
        page = await view.open(here, "/agents")
        await expect(page.locator("#open-work tbody tr")).to_have_count(OPEN)
        wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_CODE], max_leases=OPEN)
        request = agent.PollRequest(request_id=here.plane.request_id(), agent_id="zealous", wanted=wanted)
        leases = (await here.plane.agents.Poll(request)).leases
        assert len(leases) == OPEN
        await expect(page.locator("#open-work")).to_contain_text("No work waits for an agent.")
        await expect(page.locator('[data-agent="zealous"] a')).to_have_count(OPEN)
        await expect(page.locator("#agents tbody tr")).to_have_count(AGENTS + 1)
