"""What is done to several runs at once, and who is told that a run needs somebody, in a real browser."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import Console, console, viewed
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]
VAGUE = "Fix the newest thing in src/new.py"
MEANT = "Fix the newest test in src/new.py and run it"


async def asked(here: Console, count: int) -> list[runs.Run]:
    """Runs that all ask what is meant."""
    return [await here.plane.asked((await here.plane.submit(VAGUE)).id) for _ in range(count)]


async def answered(here: Console, all_asked: list[runs.Run]) -> None:
    """Each of them goes on with what was meant."""
    for run in all_asked:
        ended = await here.plane.ended(run.id)
        assert (ended.state, ended.intent) == (runs.RUN_STATE_COMPLETE, MEANT)


async def test_all_questions_of_a_kind_are_answered_alike(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        all_asked = await asked(here, 3)
        page = await view.open(here, "/people")
        await page.get_by_role("button", name="answer all 3 alike").click()
        await page.locator("dialog [name=answer]").select_option(label="clarify")
        await page.locator("dialog [name=text]").fill(MEANT)
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("#toasts")).to_contain_text("3 answered")
        await expect(page.locator("#questions")).to_have_text("Nobody is waited for.")
        await answered(here, all_asked)


async def test_picked_runs_are_answered_and_failed_ones_retried(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        all_asked = await asked(here, 2)
        page = await view.open(here, "/runs?show=needs-you")
        await expect(page.locator("#run-count")).to_have_text("2 runs")
        await page.get_by_label("Pick all that are shown").click()
        await page.get_by_role("button", name="answer 2").click()
        await page.locator("dialog [name=answer]").select_option(label="clarify")
        await page.locator("dialog [name=text]").fill(MEANT)
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("#run-count")).to_have_text("0 runs")
        await answered(here, all_asked)
        for number in range(2):
            poor = await here.plane.submit(f"Fix the poor {number} in src/a.py", budget=runs.Budget(transitions=10))
            assert (await here.plane.ended(poor.id)).state == runs.RUN_STATE_FAILED
        page = await view.open(here, "/runs?show=failed")
        await expect(page.locator("#run-count")).to_have_text("2 runs")
        await page.get_by_label("Pick all that are shown").click()
        await page.get_by_role("button", name="retry 2").click()
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("#run-count")).to_have_text("4 runs")
        listed = await here.plane.runs.ListRuns(pb.ListRunsRequest(text="poor"))
        assert sorted(run.intent for run in listed.runs) == sorted(
            [f"Fix the poor {number} in src/a.py" for number in range(2)] * 2
        )


RECORDED = """() => {
  window.told = [];
  window.away = false;
  Object.defineProperty(document, 'hidden', { get: () => window.away });
  window.Notification = class extends EventTarget {
    static permission = 'granted';
    static requestPermission = async () => 'granted';
    constructor(title, { body }) { super(); window.told.push(`${title}: ${body}`); }
  };
}"""


async def test_whoever_wants_to_be_told_is_told_where_no_page_is_in_sight(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        await view.page.add_init_script(f"({RECORDED})()")
        page = await view.open(here, "/people")
        await expect(page.locator("#news")).to_have_attribute("aria-pressed", "false")
        await page.locator("#news").click()
        await expect(page.locator("#news")).to_have_attribute("aria-pressed", "true")
        await asked(here, 1)
        await expect(page).to_have_title("(1) People · Pointsman")
        assert await page.evaluate("() => window.told") == []
        await page.evaluate("() => { window.away = true; }")
        await asked(here, 1)
        await page.wait_for_function("() => window.told.length > 0")
        assert await page.evaluate("() => window.told") == ["Pointsman: 2 runs need you"]
        await page.locator("#news").click()
        await expect(page.locator("#news")).to_have_attribute("aria-pressed", "false")
