"""One run in a real browser: drawn, proven, live, and back after an outage."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import Console, console, forgive, forgive_outages, viewed
from tests.scenarios.planes import NOBODY, WISH

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]
WAITED_FOR = {"console.css", "console.js", "early.js", "icon.svg", "GetRun", "CountRuns"}
"""All that a browser fetches before the first view of a run."""
SLOW_MS, SLOW_RATIO = 5000, 50
"""Far beyond what is aimed at, so that no busy machine fails it; `make bench BENCH=gateway` measures."""


async def working(here: Console) -> runs.Run:
    """A run whose coder took the work and is not heard of again."""
    await here.plane.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
    run: runs.Run = await here.plane.taken((await here.plane.submit()).id)
    return run


async def test_a_finished_run_shows_its_way_its_stages_its_proof_and_its_journal(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        run = await here.plane.ended((await here.plane.submit(labels={"team": "rails"})).id)
        page = await view.open(here, f"/runs/{run.id}")
        await expect(page.locator("#run-head h1")).to_contain_text("done")
        await expect(page.locator(".wanted")).to_have_text(WISH)
        await expect(page.locator("#run-head")).to_contain_text("team=rails")
        await expect(page.locator("#grades")).to_contain_text("PROVEN 0/1")
        await expect(page.locator("#grades")).to_contain_text("ON WORD 1")
        await expect(page.locator(".rail li.over")).to_have_count(6)
        await expect(page.locator(".claim .said")).to_contain_text("does what was asked for")
        await expect(page.locator(".claim .evidence")).to_contain_text("agent says exit 0")
        await expect(page.locator(".chip.good")).to_have_count(0)
        await page.get_by_role("link", name="Phases").click()
        await expect(page.locator("#machine-graph .node")).to_have_count(26)
        await expect(page.locator('#machine-graph .node.now[data-state="COMPLETE"]')).to_have_count(1)
        await expect(page.locator('#machine-graph .node.been[data-state="REVIEW_ACCEPT"]')).to_have_count(1)
        moves = len(await here.plane.moves(run.id)) - 1
        await expect(page.locator(".way li")).to_have_count(moves)
        await expect(page.locator("#phases summary")).to_have_text(f"The way taken: {moves} moves")
        await page.get_by_role("link", name="Plan").click()
        await expect(page.locator('[data-task="T1"]').first).to_contain_text("accepted")
        await expect(page.locator('[data-stage="DEV"]')).to_contain_text("passed PASS")
        await expect(page.locator("[data-barrier]")).to_contain_text("2 of 2, resolved")
        await expect(page.locator('[data-stage="DEV"]')).not_to_contain_text("orchestrator")
        await expect(page.locator('[data-plan="T1"]')).to_contain_text("accepted · ON WORD")
        await page.get_by_role("link", name="Journal").click()
        await expect(page.locator("#journal .vtable")).to_have_attribute("aria-rowcount", str(run.seq + 1))
        await page.locator("#journal .vspace button").first.click()
        await expect(page.locator(".payload")).to_contain_text('"event": "pass"')
        await expect(page.locator(".waterfall li").first).to_contain_text("BOOT")
        await page.get_by_role("link", name="Artifacts").click()
        await page.locator(".artifact summary").first.click()
        await expect(page.locator(".artifact[open]")).to_contain_text("All of it")


async def test_a_run_is_cancelled_with_the_consequence_said_before(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        run = await working(here)
        page = await view.open(here, f"/runs/{run.id}")
        await expect(page.locator(".rail li.now")).to_have_text("build")
        await page.get_by_role("button", name="cancel", exact=True).click()
        await expect(page.locator("dialog .consequence")).to_contain_text("ends for good")
        await page.get_by_role("button", name="Back").click()
        await expect(page.locator("dialog")).to_have_count(0)
        assert (await here.plane.get(run.id)).state == runs.RUN_STATE_CODER_EXEC
        await page.get_by_role("button", name="cancel", exact=True).click()
        await page.get_by_label("Why").fill("enough")
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("#run-head h1")).to_contain_text("cancelled")
        await expect(page.locator("#run-head")).to_contain_text("cancelled: enough")
        await expect(page.locator("#run-head button")).to_have_count(0)
        await expect(page.locator("#run-head")).to_have_text(re.compile("^(?!.*enough.*enough).*$", re.DOTALL))


async def test_a_changed_requirement_is_seen_at_work(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        run = await working(here)
        page = await view.open(here, f"/runs/{run.id}#phases")
        await page.get_by_role("button", name="change the requirement").click()
        await page.get_by_label("What is wanted").fill("and keep the old flag")
        await here.plane.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_SUCCESS)
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("#run-head h1")).to_contain_text("done")
        await expect(page.locator(".wanted")).to_contain_text("and keep the old flag")
        await expect(page.locator('.node.been[data-state="REPLAN_PATCH"]')).to_have_count(1)


async def test_the_page_comes_back_after_the_gateway_and_after_the_services_were_away(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        page = await view.open(here, f"/runs/{run.id}#journal")
        await expect(page.locator("#live")).to_have_text("live")
        await here.stop_gateway()
        await expect(page.locator("#live")).to_have_text("reconnecting")
        await here.start_gateway()
        await expect(page.locator("#live")).to_have_text("signed out")
        await here.log_in(await page.context.new_page())
        await expect(page.locator("#live")).to_have_text("live")
        await here.stop_services()
        await expect(page.locator("#live")).to_have_text("reconnecting")
        await here.start_services()
        await expect(page.locator("#live")).to_have_text("live")
        rows = int(await page.locator("#journal .vtable").get_attribute("aria-rowcount") or 0)
        await here.plane.runs.CancelRun(pb.CancelRunRequest(request_id="cancel", run_id=run.id, reason="seen"))
        await expect(page.locator("#run-head h1")).to_contain_text("cancelled")
        ended = await here.plane.get(run.id)
        await expect(page.locator("#journal .vtable")).to_have_attribute("aria-rowcount", str(ended.seq + 1))
        assert rows <= ended.seq
        forgive_outages(view)
        forgive(view, "status of 401")


async def test_a_run_that_does_not_exist_says_so(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        page = await view.open(here, "/runs/nobody")
        await expect(page.get_by_role("alert")).to_contain_text("no run 'nobody'")
        forgive(view, "404")


async def test_the_first_view_waits_for_one_script_and_one_read_at_once(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY, asks_for_a_code=False) as here, viewed(browser) as view:
        run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        page = await view.open(here, f"/runs/{run.id}")
        await expect(page.locator(".rail li.now")).to_be_visible()
        before, reads = await page.evaluate(WAITS)
        assert set(before) <= WAITED_FOR, before
        assert reads == ["link"], "the reads were begun by the script, not by the page's own header"
        first = await page.evaluate("() => performance.getEntriesByName('first-view')[0].startTime")
        await view.open(here, "/healthz")
        floor = await page.evaluate("() => performance.getEntriesByType('navigation')[0].loadEventEnd")
        print(f"empty page {floor:.0f} ms, run page {first:.0f} ms, ratio {first / floor:.1f}")
        assert first < max(SLOW_MS, SLOW_RATIO * floor), (first, floor)


WAITS = """() => {
  const seen = performance.getEntriesByName('first-view')[0].startTime;
  const all = performance.getEntriesByType('resource').filter((one) => one.startTime < seen);
  const name = (one) => new URL(one.name).pathname.split('/').at(-1);
  const reads = all.filter((one) => /^GetRun$/.test(name(one)));
  return [all.map(name), reads.map((one) => one.initiatorType)];
}"""


async def test_an_update_is_drawn_when_the_stream_brings_it(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        page = view.page
        await page.route("**/GetRun", lambda route: route.abort())
        await view.open(here, f"/runs/{run.id}#phases")
        await expect(page.locator("#live")).to_have_text("live")
        await here.plane.runs.CancelRun(pb.CancelRunRequest(request_id="cancel", run_id=run.id))
        await expect(page.locator("#run-head h1")).to_contain_text("cancelled")
        await expect(page.locator('#machine-graph .node.now[data-state="CANCELLED"]')).to_have_count(1)
        forgive(view, "net::ERR_FAILED")
