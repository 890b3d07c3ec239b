"""The console in a browser: the first view against an empty page, an update against a round trip, and their weight."""

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

WARM_UP, ROUNDS = 3, 20
MOST_FIRST_RATIO, MOST_UPDATE_RATIO, MOST_BYTES, MOST_POLL_BYTES = 1.6, 4.0, 61440, 2048
EMPTY = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
FIRST_VIEW = """() => new Promise((done) => {
  const look = () => {
    const [mark] = performance.getEntriesByName('first-view');
    if (mark) done(mark.startTime); else setTimeout(look, 5);
  };
  look();
})"""
SHOWN = """(text) => new Promise((done) => {
  const head = document.getElementById('run-head');
  new MutationObserver((_, observer) => {
    if (head.textContent.includes(text)) { observer.disconnect(); done(Date.now()); }
  }).observe(head, { subtree: true, childList: true, characterData: true });
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
Pairs = Sequence[tuple[float, float]]


async def load(page: Page, url: str, until: str) -> float:
    """Go there; the milliseconds since the navigation began."""
    await page.goto(url)
    return float(await page.evaluate(until))


async def update(here: Console, page: Page, run_id: str, number: int) -> float:
    """Change a run that is looked at; the milliseconds from the commit until the page shows it."""
    text = f"round={number}"
    seen = asyncio.ensure_future(page.evaluate(SHOWN, text))
    await page.evaluate("() => 1")
    request = pb.LabelRunRequest(request_id=here.plane.request_id(), run_id=run_id, labels={"round": str(number)})
    changed = (await here.plane.runs.LabelRun(request)).run
    return float(await seen) - float(changed.updated_at.ToMicroseconds()) / 1000


def report(name: str, pairs: Pairs, most: float, **more: float) -> None:
    """One line: the median of the floor, of ours and of the ratio of each pair, and the quartiles of that ratio."""
    floors, ours = sorted(one for one, _ in pairs), sorted(other for _, other in pairs)
    ratios = sorted(other / one for one, other in pairs)
    figures = {"floor_ms": floors[len(pairs) // 2], "ms": ours[len(pairs) // 2], "ratio": ratios[len(pairs) // 2]}
    figures |= {"ratio_low": ratios[len(pairs) // 4], "ratio_high": ratios[3 * len(pairs) // 4], "most": most}
    rounded = {key: round(value, 2) for key, value in (figures | more).items()}
    print(json.dumps({"bench": name, "rounds": len(pairs), **rounded}), flush=True)


async def measure_first_view(here: Console, page: Page, run_id: str) -> None:
    """A run at work, again and again, each time beside an empty page."""
    run_url, empty_url = f"{here.address}/runs/{run_id}", f"{here.address}/healthz"
    pairs = [
        (await load(page, empty_url, EMPTY), await load(page, run_url, FIRST_VIEW)) for _ in range(WARM_UP + ROUNDS)
    ]
    report("gateway first view", pairs[WARM_UP:], MOST_FIRST_RATIO)


async def measure_updates(here: Console, page: Page, run_id: str) -> None:
    """Changes of a run that is looked at, each beside a round trip through the gateway from the same page."""
    await page.goto(f"{here.address}/runs/{run_id}")
    await page.wait_for_function(IS_LIVE)
    pairs = []
    for number in range(WARM_UP + ROUNDS):
        trips = sorted([(await page.evaluate(ROUND_TRIP))[0] for _ in range(3)])
        pairs.append((trips[1], await update(here, page, run_id, number)))
    report("gateway update", pairs[WARM_UP:], MOST_UPDATE_RATIO)


async def measure_weight(here: Console, page: Page, run_id: str) -> None:
    """What a browser without a cache loads before the first view, and the poll that every page has."""
    await load(page, f"{here.address}/runs/{run_id}", FIRST_VIEW)
    poll_bytes = (await page.evaluate(ROUND_TRIP))[1]
    figures = {"first_view_bytes": int(await page.evaluate(WIRE)), "most": MOST_BYTES}
    figures |= {"poll_bytes": poll_bytes, "most_poll": MOST_POLL_BYTES}
    print(json.dumps({"bench": "gateway weight", **figures}), flush=True)


async def browse() -> None:
    """One browser, one control plane, one run at work."""
    with tempfile.TemporaryDirectory() as data:
        async with console(Path(data), NOBODY, asks_for_a_code=False) as here, async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
            run = await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
            for measure in (measure_weight, measure_first_view, measure_updates):
                page = await (await browser.new_context(viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
                await measure(here, page, run.id)
            await browser.close()


def main() -> None:
    """Measure where there is a browser."""
    if system_browser() is None:
        print(MISSING, file=sys.stderr)
        return
    asyncio.run(browse())


if __name__ == "__main__":
    main()
