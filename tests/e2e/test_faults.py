"""Faults that the console once had, each looked for in a real browser."""

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from playwright.async_api import Browser, Response, expect
from playwright.async_api import Error as PlaywrightError

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import PHONE, Console, console, forgive, forgive_outages, viewed
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]
LIGHT = 2048


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Console]:
    """One control plane for the module, without agents."""
    async with console(tmp_path_factory.mktemp("faults"), NOBODY) as plane:
        yield plane


async def stuck(here: Console, message: str = "Fix the signal in src/signal.py") -> runs.Run:
    """A run that nobody can take."""
    run: runs.Run = await here.plane.reached((await here.plane.submit(message)).id, runs.RUN_STATE_CODER_EXEC)
    return run


async def test_a_link_within_the_page_does_not_build_it_anew(here: Console, browser: Browser) -> None:
    run = await stuck(here)
    async with viewed(browser) as view:
        page = await view.open(here, f"/runs/{run.id}")
        await page.locator("#run-head").evaluate("(head) => { head.seen = true; }")
        await page.get_by_role("link", name="Journal").click()
        await expect(page.locator("#journal")).to_be_visible()
        await page.locator(".vspace a").first.click()
        await expect(page.locator(".payload")).to_be_visible()
        await page.go_back()
        await page.go_back()
        await expect(page.locator("#review")).to_be_visible()
        assert await page.locator("#run-head").evaluate("(head) => head.seen")


async def test_the_badge_counts_all_and_its_poll_is_light_and_compressed(here: Console, browser: Browser) -> None:
    await here.plane.asked((await here.plane.submit("Fix the newest thing in src/new.py")).id)
    polls: list[int] = []

    async def measure(answer: Response) -> None:
        if "CountRuns" in answer.url:
            with suppress(PlaywrightError):  # the page that asked is gone
                polls.append(len(await answer.body()))

    async with viewed(browser) as view:
        await here.log_in(view.page)
        view.page.on("response", measure)
        page = await view.open(here, "/runs?q=nothing-is-like-this")
        await expect(page.locator("#people-count")).to_have_text("1")
        await expect(page).to_have_title("(1) Runs · Pointsman")
        assert polls
        assert max(polls) < LIGHT
        script = await page.evaluate(
            "() => performance.getEntriesByType('resource').find((one) => /console.js/.test(one.name))"
        )
        assert script["encodedBodySize"] < script["decodedBodySize"] / 2


async def test_every_way_keeps_the_project(here: Console, browser: Browser) -> None:
    request = pb.SubmitRequest(request_id=here.plane.request_id(), message="Fix the other one in src/other.py")
    await here.plane.runs.Submit(request, metadata=(("pointsman-project", "other"),))
    async with viewed(browser) as view:
        page = await view.open(here, "/runs?project=other")
        await expect(page.locator("#project")).to_have_text("other")
        await expect(page.locator(".vspace .vrow")).to_have_count(1)
        for link in await page.locator("header nav a, .tabs a, .bar a, .vrow a").all():
            assert "project=other" in (await link.get_attribute("href") or ""), await link.inner_text()


async def test_a_page_that_was_opened_in_an_outage_comes_by_itself(here: Console, browser: Browser) -> None:
    async with viewed(browser) as view:
        await view.open(here, "/runs")
        await here.stop_services()
        page = await view.open(here, "/agents")
        await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        await here.start_services()
        await expect(page.locator("#agents")).to_contain_text("No agent has ever polled")
        forgive_outages(view)


async def test_an_address_that_leads_nowhere_has_a_page(here: Console, browser: Browser) -> None:
    async with viewed(browser) as view:
        page = await view.open(here, "/runs")
        answer = await page.goto(f"{here.address}/nothing/here")
        assert answer is not None
        assert answer.status == 404
        await expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
        await page.get_by_role("link", name="All runs").click()
        await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        forgive(view, "404")


async def test_the_focus_stays_on_its_run_while_the_list_changes(here: Console, browser: Browser) -> None:
    run = await stuck(here, "Fix the focused one in src/focus.py")
    async with viewed(browser) as view:
        page = await view.open(here, "/runs")
        link = page.locator(f'.vrow[data-key="{run.id}"] .c-run a')
        await link.focus()
        other = await stuck(here, "Fix another one in src/other.py")
        await expect(page.locator(f'.vrow[data-key="{other.id}"]')).to_be_visible()
        await expect(link).to_be_focused()
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.locator(".bulk")).to_contain_text("1 picked")


async def test_after_a_dialog_the_focus_is_where_it_came_from(here: Console, browser: Browser) -> None:
    run = await stuck(here)
    async with viewed(browser) as view:
        page = await view.open(here, f"/runs/{run.id}")
        await page.get_by_role("button", name="cancel", exact=True).click()
        await page.get_by_label("Why").fill("enough")
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("#run-head h1")).to_contain_text("cancelled")
        await page.wait_for_function("() => document.activeElement !== document.body")
        await page.get_by_role("link", name="Phases").click()
        await expect(page.locator('.node.now.stopped[data-state="CANCELLED"]')).to_have_count(1)


async def test_a_dead_network_is_said_at_once(here: Console, browser: Browser) -> None:
    run = await stuck(here)
    async with viewed(browser) as view:
        page = await view.open(here, f"/runs/{run.id}")
        await expect(page.locator("#live")).to_have_text("live")
        await page.context.set_offline(offline=True)
        await expect(page.locator("#live")).to_have_text("reconnecting")
        await page.context.set_offline(offline=False)
        await expect(page.locator("#live")).to_have_text("live")
        forgive_outages(view)


async def test_raising_a_budget_proposes_room_for_more_than_one_step(here: Console, browser: Browser) -> None:
    poor = await here.plane.submit(
        "Fix the poor one in src/poor.py", budget=runs.Budget(wall_clock=Duration(seconds=1))
    )
    asked = await here.plane.asked(poor.id)
    assert asked.question.kind == runs.QUESTION_KIND_BUDGET
    async with viewed(browser) as view:
        page = await view.open(here, f"/runs/{poor.id}")
        await page.get_by_role("button", name="raise").click()
        assert int(await page.locator("dialog [name=assignments]").input_value()) >= 520
        assert int(await page.locator("dialog [name=hours]").input_value()) >= 1
        await page.get_by_role("button", name="Back").click()
    await here.plane.runs.CancelRun(pb.CancelRunRequest(request_id=here.plane.request_id(), run_id=poor.id))


async def test_tables_are_whole_on_a_phone(here: Console, browser: Browser) -> None:
    run = await stuck(here)
    async with viewed(browser, PHONE) as view:
        for path in ("/agents", "/router", f"/runs/{run.id}#plan"):
            page = await view.open(here, path)
            await expect(page.locator(".scroll").first).to_be_attached()
            fits = (
                "() => [...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth + 1)"
            )
            await page.wait_for_function(fits)


async def test_the_keys_and_the_palette_lead_anywhere(here: Console, browser: Browser) -> None:
    await stuck(here, "Fix the palette in src/palette.py")
    async with viewed(browser) as view:
        page = await view.open(here, "/runs")
        await expect(page.get_by_label("Search")).to_be_visible()
        await page.keyboard.press("?")
        await expect(page.locator("dialog")).to_contain_text("new run")
        await page.keyboard.press("Escape")
        await expect(page.locator("dialog[open]")).to_have_count(0)
        await page.keyboard.press("/")
        await expect(page.get_by_label("Search")).to_be_focused()
        await page.keyboard.press("Control+k")
        await expect(page.locator("dialog.palette input")).to_be_focused()
        await page.keyboard.type("palette")
        await expect(page.locator("dialog.palette .found li")).to_have_count(1)
        await expect(page.locator("dialog.palette .found")).to_contain_text("Fix the palette")
        await page.keyboard.press("Enter")
        await expect(page.locator("#run-head .wanted")).to_contain_text("palette")
        await page.keyboard.press("n")
        await expect(page.locator("#message")).to_be_focused()
        await page.locator("h1").click()
        await page.keyboard.press("Control+k")
        await expect(page.locator("dialog.palette .found")).to_contain_text("Runs that need you")
        await page.locator("dialog.palette input").fill("Fix the palette")
        await page.keyboard.press("Enter")
        await expect(page.locator("#run-head .wanted")).to_contain_text("palette")
