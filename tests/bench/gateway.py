"""The first view of a run and an update of it, in a browser, against the load of an empty page: JSON lines."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Page, async_playwright

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import DESKTOP, Console, console
from tests.e2e.install import MISSING, system_browser
from tests.scenarios.planes import NOBODY

WARM_UP, ROUNDS = 3, 15
EMPTY = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
FIRST_VIEW = """() => new Promise((done) => {
  const look = () => {
    const [mark] = performance.getEntriesByName('first-view');
    if (mark) done(mark.startTime); else setTimeout(look, 5);
  };
  look();
})"""
CHANGED = """() => new Promise((done) => {
  const ended = () => document.querySelector('#run-head h1')?.textContent.includes('CANCELLED');
  new MutationObserver((_, observer) => { if (ended()) { observer.disconnect(); done(Date.now()); } })
    .observe(document.getElementById('main'), { subtree: true, childList: true });
})"""
IS_LIVE = "() => document.getElementById('live').textContent === 'live'"


async def load(page: Page, url: str, until: str) -> float:
    """Go there; the milliseconds since the navigation began."""
    await page.goto(url)
    return float(await page.evaluate(until))


async def update(here: Console, page: Page) -> float:
    """Cancel a run that is looked at; the milliseconds from the commit to the page."""
    run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
    await page.goto(f"{here.address}/runs/{run.id}")
    await page.wait_for_function(IS_LIVE)
    seen = asyncio.ensure_future(page.evaluate(CHANGED))
    await page.evaluate("() => 1")
    await here.plane.runs.CancelRun(pb.CancelRunRequest(request_id=here.plane.request_id(), run_id=run.id))
    at_ms = float(await seen)
    return at_ms - float((await here.plane.get(run.id)).updated_at.ToMicroseconds()) / 1000


def report(name: str, empty: Sequence[float], view: Sequence[float], updates: Sequence[float]) -> None:
    """One line: medians, and the best of each, which other work on the machine disturbs least."""
    for which, pick in (("median", lambda all_: sorted(all_)[len(all_) // 2]), ("best", min)):
        floor, first, changed = pick(empty), pick(view), pick(updates)
        figures = {"empty_page_ms": floor, "first_view_ms": first, "ratio": first / floor, "update_ms": changed}
        rounded = {key: round(value, 1) for key, value in figures.items()}
        print(json.dumps({"bench": name, "of": which, **rounded}), flush=True)


async def measure(here: Console, page: Page) -> None:
    """A run at work, again and again, each time beside an empty page."""
    run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
    pairs = [
        (
            await load(page, f"{here.address}/healthz", EMPTY),
            await load(page, f"{here.address}/runs/{run.id}", FIRST_VIEW),
        )
        for _ in range(WARM_UP + ROUNDS)
    ][WARM_UP:]
    updates = [await update(here, page) for _ in range(ROUNDS // 3)]
    report("gateway", [empty for empty, _ in pairs], [view for _, view in pairs], updates)


async def browse() -> None:
    """One browser, one control plane."""
    with tempfile.TemporaryDirectory() as data:
        async with console(Path(data), NOBODY) as here, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
            page = await (await browser.new_context(viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
            await measure(here, page)
            await browser.close()


def main() -> None:
    """Measure where there is a browser."""
    if system_browser() is None:
        print(MISSING, file=sys.stderr)
        return
    asyncio.run(browse())


if __name__ == "__main__":
    main()
