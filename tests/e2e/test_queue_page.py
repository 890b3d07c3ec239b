"""Merge queues in a real browser: their order, what an entry waits for, and a person's answer."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pointsman.api.orchestrator.v1 import landing_pb2 as landing
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent
from pointsman.services.orchestrator.domain.landing.model import Finding
from tests.contract.orchestrator.orchestrators import orchestrator
from tests.contract.orchestrator.test_landing import enqueue, report, taken
from tests.e2e.consoles import console, viewed
from tests.e2e.test_polls import LIGHT, looks
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]


LONG = "is <b>this</b> as wanted?\n" + "\n".join(f"{number:x} lines of a log" for number in range(2000)) + "\nthe end"
FILES = ("a.py", *(f"src/of/a/long/name/{number}.py" for number in range(200)))


async def entries(data: Path) -> None:
    """A queue of two entries, the second of which asks a person, and one of another branch."""
    async with orchestrator(f"sqlite:///{data / 'orchestrator.db'}") as store:
        await enqueue(store, 1)
        await enqueue(store, 2)
        held = await taken(store)
        assert held is not None
        await report(store, held, 2, Finding(EntryEvent.PROOF_ASKS, LONG, FILES))
        await enqueue(store, 3, target="release")


async def test_entries_are_shown_by_their_queue_answered_and_taken_out(tmp_path: Path, browser: Browser) -> None:
    await entries(tmp_path)
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        page = await view.open(here, "/runs")
        await page.get_by_role("link", name="Queue").click()
        await expect(page.locator("#entries h2")).to_have_text(["Into main", "Into release"])
        asking = page.locator('[data-entry="entry_2"]')
        await expect(asking).to_contain_text("proof asks: a.py")
        await expect(asking.locator("pre")).to_contain_text("is <b>this</b> as wanted?")
        heavy = [(url, size) for url, size in await looks(page, "ListEntries", times=2) if size > LIGHT]
        assert not heavy, heavy
        await asking.get_by_role("button", name="show all").click()
        await expect(asking.locator("pre")).to_have_text(LONG)
        await asking.get_by_role("button", name="reject").click()
        await page.get_by_label("Why").fill("not now")
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator('#landed [data-entry="entry_2"]')).to_contain_text("not now")
        await page.locator('[data-entry="entry_3"]').get_by_role("button", name="take it out").click()
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator('#landed [data-entry="entry_3"]')).to_contain_text("cancelled")
        await expect(page.locator("#predictions")).to_contain_text("None is seen")
        stub = LandingServiceStub(here.plane.channel)
        rejected = (await stub.GetEntry(landing.GetEntryRequest(entry_id="entry_2"))).entry
        assert rejected.state == landing.ENTRY_STATE_REJECTED
