"""Takes a picture of every page in light and dark, on a desk and on a phone: `python -m tests.e2e.looks FOLDER`."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

from pointsman.cli.commands.demo import example_repository
from tests.e2e.consoles import DESKTOP, PHONE, Console, View, console, forgive, forgive_outages, painted, viewed
from tests.e2e.install import MISSING, system_browser
from tests.e2e.screenshots import a_caught_lie, some_runs
from tests.scenarios.planes import NOBODY

SIZES = {"desk": DESKTOP, "phone": PHONE}
SCHEMES = ("light", "dark")
PAGES = {
    "runs": ("/runs", ".vspace .vrow"),
    "runs-none": ("/runs?q=nothing", ".empty"),
    "people": ("/people", "#questions .card"),
    "agents": ("/agents", "#agents tbody tr"),
    "queue": ("/queue", "#coming > *"),
    "schedules": ("/schedules", "#schedules > *"),
    "router": ("/router", "#recent > *"),
    "new": ("/new", "#message"),
    "components": ("/components", "#rest"),
    "nowhere": ("/nowhere", "#main h1"),
    "no-run": ("/runs/nobody", "#main h1"),
}
PARTS = {
    "review": "#review-summary",
    "output": ".stream pre",
    "plan": "#plan-graph svg",
    "phases": "#machine-graph svg",
    "journal": ".waterfall li",
    "artifacts": ".artifact",
}


async def take(view: View, name: str, place: str) -> None:
    """A picture of the whole page, once a place of it is there."""
    await view.page.locator(place).first.wait_for()
    await painted(view.page)
    await view.page.screenshot(path=Path(sys.argv[1]) / f"{name}.png", full_page=True)


async def of_pages(here: Console, view: View, suffix: str) -> None:
    """Every page that is no run's, then a run that asks, and one while nobody answers."""
    for name, (path, place) in PAGES.items():
        await view.open(here, path)
        await take(view, f"{name}-{suffix}", place)
    await view.open(here, "/runs?show=needs-you")
    await view.page.locator(".vspace .vrow .c-run a").first.click()
    await take(view, f"asked-{suffix}", ".asked:visible, #accept")


async def of_parts(here: Console, view: View, run_id: str, suffix: str) -> None:
    """Every part of a run."""
    for name, place in PARTS.items():
        await view.open(here, f"/runs/{run_id}#{name}")
        if name == "review":
            await choose_the_lie(view.page)
        await take(view, f"run-{name}-{suffix}", place)


async def choose_the_lie(page: Page) -> None:
    """The attempt that was caught."""
    await page.get_by_role("button", name="T2").click()
    await page.get_by_role("button", name="attempt 1").click()
    await page.locator("#verdict.refused").wait_for()


async def look(browser: Browser, data: Path) -> None:
    """Both control planes, each in every look."""
    async with console(data / "lie", NOBODY, asks_for_a_code=False) as here:
        run_id = await a_caught_lie(here, await example_repository(data))
        for suffix, size, scheme in looks():
            async with viewed(browser, size, color_scheme=scheme) as view:
                await of_parts(here, view, run_id, suffix)
    async with console(data / "list", asks_for_a_code=False) as here:
        await some_runs(here)
        for suffix, size, scheme in looks():
            async with viewed(browser, size, color_scheme=scheme) as view:
                forgive(view, "404")
                await of_pages(here, view, suffix)
        await here.stop_services()
        for suffix, size, scheme in looks():
            async with viewed(browser, size, color_scheme=scheme) as view:
                forgive_outages(view)
                await view.open(here, "/people")
                await view.open(here, "/agents")
                await take(view, f"outage-{suffix}", "[role=alert]")
        await here.start_services()


def looks() -> list[tuple[str, dict[str, int], str]]:
    """The name, size and scheme of each."""
    return [(f"{name}-{scheme}", size, scheme) for name, size in SIZES.items() for scheme in SCHEMES]


async def main() -> None:
    """Take them all."""
    chromium = system_browser()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as data:
        os.environ["POINTSMAN_DATA"] = str(Path(data) / "worker")
        async with (
            async_playwright() as playwright,
            await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
        ):
            await look(browser, Path(data))


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    asyncio.run(main())
