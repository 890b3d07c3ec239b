"""A plan that is changed in place and approved, whole transcripts, and a trace with folded waits, in a real browser."""

import hashlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import Console, console, forgive, viewed
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]


async def test_a_plan_is_changed_in_place_refused_where_it_is_wrong_and_approved(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        run = await here.plane.asked((await here.plane.submit(review_plan=True)).id)
        assert run.question.kind == runs.QUESTION_KIND_DEBATE
        page = await view.open(here, f"/runs/{run.id}")
        await expect(page.locator('#plan-list [data-read="T1"]')).to_contain_text("proof")
        await page.get_by_role("button", name="edit the plan").click()
        await page.locator("#plan-T1-name").fill("Trim the fields")
        await page.get_by_role("button", name="add a task").click()
        await page.locator("#plan-T2-name").fill("Say so in the docs")
        await page.locator("#plan-T2-after").fill("T9")
        await page.get_by_role("button", name="save", exact=True).click()
        await expect(page.locator("#plan .problem")).to_contain_text("T9")
        await page.locator("#plan-T2-after").fill("T1")
        await page.locator("#plan-T2-proof").fill("the docs name it")
        await page.get_by_role("button", name="save", exact=True).click()
        await expect(page.locator('#plan-list [data-read="T2"]')).to_contain_text("Say so in the docs, after T1")
        await expect(page.locator('#plan-graph [data-plan="T2"]')).to_contain_text("Say so")
        await page.get_by_role("button", name="edit the plan").click()
        await page.get_by_role("button", name="remove T2").click()
        await expect(page.locator("#plan-T2-name")).to_have_count(0)
        await page.get_by_role("button", name="save and approve").click()
        await expect(page.locator("#run-head h1")).to_contain_text("done")
        ended = await here.plane.ended(run.id)
        assert [(task.task_id, task.name) for task in ended.tasks] == [("T1", "Trim the fields")]
        forgive(view, "status of 400")


async def before_it_asked(route: Route) -> None:
    """A run as it was before its question."""
    body = await (await route.fetch()).json()
    del body["run"]["question"]
    await route.fulfill(json={"run": {**body["run"], "seq": "1", "attention": "ATTENTION_WORKING"}})


async def test_a_page_goes_to_the_plan_that_is_asked_about_later_and_one_click_approves_it(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        run = await here.plane.asked((await here.plane.submit(review_plan=True)).id)
        await view.page.route("**/GetRun?*", before_it_asked)
        page = await view.open(here, f"/runs/{run.id}#review")
        await expect(page.locator("#run-head h1")).to_contain_text("needs you")
        await expect(page.locator("#review")).to_be_visible()
        page = await view.open(here, f"/runs/{run.id}")
        await page.get_by_role("button", name="approve", exact=True).click()
        await expect(page.locator("#run-head h1")).to_contain_text("done")


async def put_text(here: Console, run_id: str, body: bytes) -> handoff.ArtifactRef:
    """Store a transcript as a worker does."""
    ref = handoff.ArtifactRef(sha256=hashlib.sha256(body).hexdigest(), size_bytes=len(body), media_type="text/plain")

    async def parts() -> AsyncIterator[artifact.PutRequest]:
        yield artifact.PutRequest(start=artifact.PutStart(artifact=ref, run_id=run_id))
        for start in range(0, len(body), 60000):
            yield artifact.PutRequest(chunk=body[start : start + 60000])

    await here.plane.artifacts.Put(parts())
    return ref


async def test_the_whole_output_of_an_agent_is_shown_and_downloaded(tmp_path: Path, browser: Browser) -> None:
    lines = [f"line {number} \U0001f980 of the output\n" for number in range(9000)]
    body = "".join(["the very first words\n", *lines]).encode()
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_CODE], run_ids=[run.id])
        poll = agent.PollRequest(request_id="poll", agent_id="printer", wanted=wanted)
        poll.wait.FromSeconds(50)
        (lease,) = (await here.plane.agents.Poll(poll)).leases
        beat = agent.HeartbeatRequest(request_id="beat", agent_id="printer")
        beat.leases.add(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
        tail = "".join(lines[-100:])
        beat.outputs.add(assignment_id=lease.assignment.id, offset=len(body.decode()) - len(tail), text=tail)
        await here.plane.agents.Heartbeat(beat)
        page = await view.open(here, f"/runs/{run.id}#output")
        output = page.locator(".stream pre")
        await expect(output).to_contain_text("the beginning is not kept here")
        await expect(output).to_contain_text("line 8999 \U0001f980 of the output")
        beat.request_id = "last"
        del beat.outputs[:]
        beat.outputs.add(assignment_id=lease.assignment.id, transcript=await put_text(here, run.id, body))
        await here.plane.agents.Heartbeat(beat)
        await page.reload()
        await expect(output).to_contain_text("the very first words")
        await expect(output).to_contain_text("line 8999 \U0001f980 of the output")
        await expect(page.locator(".stream .line")).to_have_count(9002)
        async with page.expect_download() as download:
            await page.get_by_role("button", name="download").click()
        saved = await (await download.value).path()
        assert saved.read_bytes() == body


async def test_a_long_wait_is_folded_in_the_trace(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        begun = datetime.fromtimestamp(run.updated_at.ToMicroseconds() / 1e6).astimezone()
        await view.page.clock.set_fixed_time(begun + timedelta(hours=3))
        page = await view.open(here, f"/runs/{run.id}#journal")
        await expect(page.locator("#folded")).to_contain_text("1 folded, 3 h 0 min")
        await expect(page.locator("#journal .vtable")).to_have_attribute("aria-rowcount", str(run.seq + 1))
        await page.wait_for_function(FOLDED)
        await page.locator("#fold-waits").uncheck()
        await expect(page.locator(".waterfall .fold")).to_have_count(0)
        await page.wait_for_function(UNFOLDED)


SHARES = """
  const share = (bar) => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width;
  const shares = (name) => [...document.querySelectorAll(`.waterfall ${name}`)].map(share);
"""
FOLDED = f"() => {{ {SHARES} return shares('.fold').every((one) => one < 0.1) && shares('.span').at(-1) < 0.5; }}"
"""The work that nobody takes has waited for three hours, which take little room."""
UNFOLDED = f"() => {{ {SHARES} return shares('.span').at(-1) > 0.9; }}"
