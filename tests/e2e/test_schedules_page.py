"""Schedules in a real browser: when they start, what became of it, and what a person does with them."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import schedule_pb2 as schedule
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from tests.e2e.consoles import PHONE, Console, console, viewed
from tests.e2e.test_other_pages import HOSTILE, calm
from tests.e2e.test_polls import LIGHT, looks
from tests.scenarios.planes import WISH

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]


async def made(here: Console, message: str = WISH) -> str:
    spec = schedule.ScheduleSpec(cron="0 3 * * *", time_zone="Europe/Berlin", overlap=schedule.OVERLAP_POLICY_ALLOW)
    order = pb.SubmitRequest(request_id="x", message=message)
    request = schedule.CreateScheduleRequest(request_id=here.plane.request_id(), spec=spec, order=order)
    return str((await ScheduleServiceStub(here.plane.channel).CreateSchedule(request)).schedule.id)


async def told(page: Page, name: str, why: str = "") -> None:
    """Press a button of the schedule, say why where that is asked, and confirm."""
    await page.get_by_role("button", name=name, exact=True).click()
    if why:
        await page.get_by_label("Why").fill(why)
    await page.get_by_role("button", name="Confirm").click()


async def test_a_schedule_is_triggered_paused_resumed_and_deleted_and_leads_to_its_runs(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as here, viewed(browser) as view:
        page = await view.open(here, "/runs")
        await page.get_by_role("link", name="Schedules").click()
        await expect(page.locator("#schedules")).to_contain_text("No schedules")
        schedule_id = await made(here)
        card = page.locator(f'[data-schedule="{schedule_id}"]')
        await expect(card).to_contain_text("next: ")
        await expect(card).to_contain_text("0 3 * * * Europe/Berlin")
        await told(page, "trigger")
        await expect(card.locator(".starts li")).to_contain_text("complete", ignore_case=True)
        await told(page, "pause", "release week")
        await expect(card).to_contain_text("paused: release week")
        await told(page, "resume")
        await expect(card).to_contain_text("next: ")
        heavy = [(url, size) for url, size in await looks(page, "ListSchedules", times=2) if size > LIGHT]
        assert not heavy, heavy
        await card.get_by_role("link", name="1 runs").click()
        await expect(page.locator(".vspace .vrow")).to_have_count(1)
        await page.go_back()
        await told(page, "delete", "enough")
        await expect(page.locator("#schedules")).to_contain_text("No schedules")


async def test_hostile_words_of_a_schedule_stay_words_on_a_phone(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as here, viewed(browser, PHONE) as view:
        await made(here, f"{WISH} {HOSTILE}")
        page = await view.open(here, "/schedules")
        await expect(page.locator("#schedules .card")).to_contain_text("onerror")
        await calm(page, "schedules")
