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
  const ended = () => document.querySelector('#run-head h1')?.textContent.includes('cancelled');
  new MutationObserver((_, observer) => { if (ended()) { observer.disconnect(); done(Date.now()); } })
    .observe(document.getElementById('main'), { subtree: true, childList: true });
})"""
WIRE = """() => {
  const seen = performance.getEntriesByName('first-view')[0].startTime;
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return all.filter((one) => one.startTime < seen).reduce((sum, one) => sum + one.encodedBodySize, 0);
}"""
COUNTS = "/api/v1/orchestrator.OrchestratorService/CountRuns"
ROUND_TRIP = f"""async () => {{
  const begun = performance.now();
  const answer = await fetch('{COUNTS}');
  const size = (await answer.arrayBuffer()).byteLength;
  return [performance.now() - begun, size];
}}"""
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


async def report_weight(page: Page, url: str, updates: Sequence[float]) -> None:
    """One line: what the first view and the one poll weigh, and an update against a round trip through the gateway."""
    await load(page, url, FIRST_VIEW)
    first_view_bytes = int(await page.evaluate(WIRE))
    trips = [await page.evaluate(ROUND_TRIP) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    trip_ms = sorted(ms for ms, _ in trips)[len(trips) // 2]
    figures = {"first_view_bytes": first_view_bytes, "poll_bytes": trips[0][1], "round_trip_ms": round(trip_ms, 1)}
    ratio = sorted(updates)[len(updates) // 2] / trip_ms
    print(json.dumps({"bench": "gateway weight", **figures, "update_ratio": round(ratio, 1)}), flush=True)


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
        async with console(Path(data), NOBODY, asks_for_a_code=False) as here, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
            page = await (await browser.new_context(viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
            await measure(here, page)
            fresh = await (await browser.new_context(viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
            run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
            updates = [await update(here, page) for _ in range(WARM_UP + ROUNDS // 3)][WARM_UP:]
            await report_weight(fresh, f"{here.address}/runs/{run.id}", updates)
            await browser.close()


def main() -> None:
    """Measure where there is a browser."""
    if system_browser() is None:
        print(MISSING, file=sys.stderr)
        return
    asyncio.run(browse())


if __name__ == "__main__":
    main()
