"""What people come for, in a real browser, with the number of clicks that each takes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import Console, console, viewed
from tests.e2e.handing_in import hand_in, take
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Console]:
    """One control plane for the module, whose agents are the tests themselves."""
    async with console(tmp_path_factory.mktemp("tasks"), NOBODY) as plane:
        yield plane


class Clicks:
    """Counts the clicks of one task, and says so."""

    def __init__(self, task: str, aim: int) -> None:
        self._task, self._aim, self._count = task, aim, 0

    async def on(self, target: Locator) -> None:
        """One click."""
        await target.click()
        self._count += 1

    def done(self) -> None:
        """The task is done."""
        print(json.dumps({"task": self._task, "clicks": self._count, "aim": self._aim}))
        assert self._count <= self._aim, self._task


async def handed_in(here: Console, message: str) -> str:
    """A run whose coder has handed in a change with its diff, and says that all is well."""
    run = await here.plane.reached((await here.plane.submit(message)).id, runs.RUN_STATE_CODER_EXEC)
    await hand_in(here.plane, run.id)
    return str(run.id)


async def test_a_run_is_submitted_with_the_routers_decision_under_the_words(here: Console, browser: Browser) -> None:
    async with viewed(browser) as view:
        page, clicks = await view.open(here, "/runs"), Clicks("submit", 3)
        await clicks.on(page.get_by_role("link", name="New run"))
        await page.keyboard.type("fix the failing test in src/parser.py")
        await expect(page.locator("#decision")).to_contain_text("starts a run")
        await page.locator("#message").fill("thanks!")
        await expect(page.locator("#decision")).to_contain_text("answers only")
        await page.locator("#message").fill("fix the failing test in src/parser.py")
        await page.locator("#verify").fill("make check")
        await clicks.on(page.get_by_role("button", name="Start"))
        await expect(page.locator("#run-head .wanted")).to_have_text("fix the failing test in src/parser.py")
        await expect(page.locator("#review")).to_contain_text("`make check` succeeds")
        clicks.done()
        run_id = page.url.rpartition("/")[2]
        page = await view.open(here, f"/new?from={run_id}")
        await expect(page.locator("#message")).to_have_value("fix the failing test in src/parser.py")
        await expect(page.locator("#verify")).to_have_value("make check")


async def test_a_question_is_answered(here: Console, browser: Browser) -> None:
    run = await here.plane.asked((await here.plane.submit("Fix the newest thing in src/new.py")).id)
    async with viewed(browser) as view:
        page, clicks = await view.open(here, "/people"), Clicks("answer", 2)
        await clicks.on(page.get_by_role("button", name="clarify").first)
        await page.locator("dialog [name=text]").fill("Fix the newest test in src/new.py")
        await clicks.on(page.get_by_role("button", name="Confirm"))
        await expect(page.locator("#questions")).not_to_contain_text(run.question.text)
        clicks.done()


async def test_the_change_is_seen_with_what_the_agent_says_outlined(here: Console, browser: Browser) -> None:
    run_id = await handed_in(here, "Trim the fields of src/parser.py")
    async with viewed(browser) as view:
        page, clicks = await view.open(here, "/runs?q=trim"), Clicks("see the diff", 1)
        await clicks.on(page.locator(".vspace .vrow .c-run a"))
        await expect(page.locator("#diff tr.added").last).to_contain_text("x.strip()")
        clicks.done()
        await expect(page.locator("#diff .file").first).to_have_attribute("data-path", "tests/test_parser.py")
        await expect(page.locator("#diff .s-keyword").first).to_have_text("def")
        await expect(page.locator('[data-criterion="T1-C1"] .chip.claimed')).to_have_text("agent says exit 0")
        await expect(page.locator("#review .mark.held, #review .chip.good")).to_have_count(0)
        await expect(page.locator("#review-summary")).to_contain_text("0 of 1 proven")
        await page.locator("#line-1-2 button").click()
        await page.get_by_label("Note on src/parser.py:2").fill("what of tabs?")
        await view.open(here, f"/runs/{run_id}#line-1-2")
        await expect(page.locator("#line-1-2.target")).to_be_visible()


async def test_the_output_is_followed_searched_and_leads_to_the_first_error(here: Console, browser: Browser) -> None:
    run = await here.plane.reached(
        (await here.plane.submit("Migrate billing in src/billing.py")).id, runs.RUN_STATE_CODER_EXEC
    )
    lease = await take(here.plane, "printer", run.id)

    async def prints(offset: int, text: str) -> None:
        beat = agent.HeartbeatRequest(request_id=here.plane.request_id(), agent_id="printer")
        beat.leases.add(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
        beat.outputs.add(assignment_id=lease.assignment.id, offset=offset, text=text)
        await here.plane.agents.Heartbeat(beat)

    await prints(0, "reading\n\x1b[31mTypeError\x1b[0m: no\nan error: gone\n")
    async with viewed(browser) as view:
        page, clicks = await view.open(here, "/runs?q=billing"), Clicks("live output", 1)
        await clicks.on(page.get_by_role("link", name="Output"))
        await expect(page.locator(".stream pre")).to_contain_text("reading")
        await prints(len("reading\n\x1b[31mTypeError\x1b[0m: no\nan error: gone\n"), "still at work\n")
        await expect(page.locator(".stream pre")).to_contain_text("still at work")
        clicks.done()
        assert "\x1b" not in (await page.locator(".stream pre").inner_text())
        await page.locator("#first-error").click()
        await expect(page.locator(".line.now")).to_contain_text("an error: gone")
        await page.get_by_label("Search the output").fill("STILL")
        await expect(page.locator(".line.hit")).to_have_count(1)
    assert run.id


async def test_ten_runs_are_cancelled_a_text_is_found_and_a_link_is_shared(here: Console, browser: Browser) -> None:
    for number in range(10):
        await here.plane.submit(f"Fix wagon {number} in src/wagons.py")
    async with viewed(browser) as view:
        page, clicks = await view.open(here, "/runs"), Clicks("find by text", 1)
        await clicks.on(page.get_by_label("Search"))
        await page.keyboard.type("wagon")
        await expect(page.locator("#run-count")).to_have_text("10 runs")
        clicks.done()
        shared = Clicks("share a link", 1)
        await shared.on(page.locator(".vspace .vrow .c-run a").nth(3))
        await expect(page.locator("#run-head .wanted")).to_contain_text("wagon")
        other = await page.context.new_page()
        await other.goto(page.url)
        await expect(other.locator("#run-head .wanted")).to_have_text(await page.locator(".wanted").inner_text())
        shared.done()
        await page.go_back()
        await expect(page.locator("#run-count")).to_have_text("10 runs")
        many = Clicks("cancel 10", 4)
        await many.on(page.get_by_label("Pick all that are shown"))
        await many.on(page.get_by_role("button", name="cancel 10"))
        await many.on(page.get_by_role("button", name="Confirm"))
        await expect(page.locator('.vrow:has-text("cancelled")')).to_have_count(10)
        many.done()
        await page.get_by_label("Pick all that are shown").click()
        await page.get_by_role("button", name="label 10").click()
        await page.locator("dialog [name=key]").fill("yard")
        await page.locator("dialog [name=value]").fill("north")
        await page.get_by_role("button", name="Confirm").click()
        await page.get_by_label("Search").fill("yard=north")
        await expect(page.locator("#run-count")).to_have_text("10 runs")
        await page.get_by_role("button", name="Save view").click()
        await page.locator("dialog [name=name]").fill("the yard")
        await page.get_by_role("button", name="Confirm").click()
        await page.get_by_role("link", name="all", exact=True).click()
        await page.get_by_role("link", name="the yard").click()
        await expect(page.locator("#run-count")).to_have_text("10 runs")


async def test_the_last_failure_and_why_work_was_rejected_are_one_click_away(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        await here.plane.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_NO_EVIDENCE)
        run = await here.plane.asked((await here.plane.submit("Fix the caught one in src/lie.py")).id)
        page, clicks = await view.open(here, "/runs"), Clicks("why rejected", 1)
        await expect(page.locator(".vspace .vrow")).to_contain_text("1 caught")
        await expect(page.locator(".vspace .vrow .c-asks .chip.ask")).to_have_text("needs you")
        await expect(page.locator(".vspace .vrow .c-asks")).to_contain_text("work failed")
        await clicks.on(page.locator(".vspace .vrow .c-run a"))
        await expect(page.locator("#verdict")).to_contain_text("Caught and refused")
        await expect(page.locator("#verdict")).to_contain_text("evidence")
        clicks.done()
        await expect(page.locator("#grades .caught")).to_contain_text("CAUGHT 1")
        poor = await here.plane.submit("Fix the poor one in src/poor.py", budget=runs.Budget(transitions=10))
        assert (await here.plane.ended(poor.id)).state == runs.RUN_STATE_FAILED
        page, clicks = await view.open(here, "/runs"), Clicks("last failed", 1)
        await clicks.on(page.get_by_role("link", name="failed"))
        await expect(page.locator(".vspace .vrow")).to_have_count(1)
        await expect(page.locator(".vspace .vrow").first).to_contain_text("poor")
        clicks.done()
        assert run.question.takes
