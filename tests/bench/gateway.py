"""The console in a browser: the first view against an empty page, updates against a round trip, and their weight."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from playwright.async_api import Browser, Page, async_playwright

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.rpc.client import open_channel
from tests.e2e.consoles import DESKTOP
from tests.e2e.handing_in import hand_in
from tests.e2e.install import MISSING, system_browser
from tests.scenarios.planes import Plane, clients

WARM_UP, ROUNDS = 3, 20
MOST_FIRST_RATIO, MOST_UPDATE_RATIO, MOST_BYTES, MOST_POLL_BYTES = 1.6, 4.0, 61440, 2048
VAGUE = "Fix the newest thing in src/new.py"
EMPTY = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
FIRST_VIEW = """() => new Promise((done) => {
  const look = () => {
    const [mark] = performance.getEntriesByName('first-view');
    if (mark) done(mark.startTime); else setTimeout(look, 5);
  };
  look();
})"""
SHOWN = """(text) => new Promise((done) => {
  const main = document.getElementById('main');
  new MutationObserver((_, observer) => {
    if (main.textContent.includes(text)) { observer.disconnect(); done(Date.now()); }
  }).observe(main, { subtree: true, childList: true, characterData: true });
})"""
WIRE = """() => {
  const seen = performance.getEntriesByName('first-view')[0].startTime;
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  return all.filter((one) => one.startTime < seen).reduce((sum, one) => sum + one.encodedBodySize, 0);
}"""
COUNTS = "/api/v1/orchestrator.OrchestratorService/CountRuns"
ROUND_TRIP = f"""async () => {{
  const headers = {{ 'pointsman-console': localStorage.getItem('console') ?? '' }};
  const begun = performance.now();
  const answer = await fetch('{COUNTS}', {{ headers }});
  const size = (await answer.arrayBuffer()).byteLength;
  return [performance.now() - begun, size];
}}"""
IS_LIVE = "() => document.getElementById('live').textContent === 'live'"
Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class There:
    """A console in another process, as it is for people: what drives the browser takes no time from what serves it."""

    address: str
    plane: Plane
    links: list[str]
    browser: Browser

    async def page(self) -> Page:
        """A page of a new browser, signed in where that is asked for."""
        page = await (await self.browser.new_context(viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
        await page.goto(self.links.pop())
        await page.wait_for_url(f"{self.address}/**")
        await page.wait_for_function("() => document.getElementById('main')")
        return page

    async def at_work(self) -> runs.Run:
        """A run whose work waits for a coder."""
        run: runs.Run = await self.plane.reached((await self.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        return run

    async def at(self, run_id: str, event: str) -> float:
        """When a run's last event of a kind was committed, in milliseconds."""
        request = pb.ListTransitionsRequest(run_id=run_id, page=common.Page(page_size=1000))
        found = (await self.plane.runs.ListTransitions(request)).transitions
        return max(float(one.at.ToMicroseconds()) / 1000 for one in found if one.event == event)


Change = Callable[[There, Page, int], Awaitable[tuple[str, Callable[[], Awaitable[float]]]]]
"""Goes where it is looked at; gives the text that is waited for, and what changes it and says when that was committed."""


async def load(page: Page, url: str, until: str) -> float:
    """Go there; the milliseconds since the navigation began."""
    await page.goto(url)
    return float(await page.evaluate(until))


def report(name: str, pairs: Pairs, most: float) -> None:
    """One line: the median of the floor, of ours and of the ratio of each pair, and the quartiles of that ratio."""
    floors, ours = sorted(one for one, _ in pairs), sorted(other for _, other in pairs)
    ratios = sorted(other / one for one, other in pairs)
    figures = {"floor_ms": floors[len(pairs) // 2], "ms": ours[len(pairs) // 2], "ratio": ratios[len(pairs) // 2]}
    figures |= {"ratio_low": ratios[len(pairs) // 4], "ratio_high": ratios[3 * len(pairs) // 4], "most": most}
    rounded = {key: round(value, 2) for key, value in figures.items()}
    print(json.dumps({"bench": name, "rounds": len(pairs), **rounded}), flush=True)


async def measure_first_views(there: There, about: str) -> None:
    """A run at work and the list of runs, again and again, each time beside an empty page."""
    run, page = await there.at_work(), await there.page()
    for name, path in (("run", f"/runs/{run.id}"), ("list", "/runs")):
        pairs = []
        for _ in range(WARM_UP + ROUNDS):
            floor = await load(page, f"{there.address}/healthz", EMPTY)
            pairs.append((floor, await load(page, there.address + path, FIRST_VIEW)))
        report(f"gateway first view, {name}{about}", pairs[WARM_UP:], MOST_FIRST_RATIO)


async def labelled(there: There, page: Page, number: int) -> tuple[str, Callable[[], Awaitable[float]]]:
    """A label of the run that is looked at, or of a run in the list."""
    run_id = await page.evaluate(
        "() => document.querySelector('[data-key]')?.dataset.key ?? location.pathname.slice(6)"
    )

    async def change() -> float:
        labels = {"round": str(number)}
        request = pb.LabelRunRequest(request_id=there.plane.request_id(), run_id=run_id, labels=labels)
        changed = (await there.plane.runs.LabelRun(request)).run
        return float(changed.updated_at.ToMicroseconds()) / 1000

    return f"round={number}", change


async def answered(there: There, page: Page, _number: int) -> tuple[str, Callable[[], Awaitable[float]]]:
    """An answer, after which another state is shown: nothing that the answer itself would say."""
    asked = await there.plane.asked((await there.plane.submit(VAGUE)).id)
    await look_at(page, f"{there.address}/runs/{asked.id}")

    async def change() -> float:
        await there.plane.answer(asked, runs.ANSWER_KIND_CLARIFIED, text="Fix the newest test in src/new.py")
        return await there.at(asked.id, "answered")

    return "test in src/new.py", change


async def handed_in(there: There, page: Page, _number: int) -> tuple[str, Callable[[], Awaitable[float]]]:
    """Work that was handed in: the review page shows the attempt, which has to be read."""
    run = await there.at_work()
    await look_at(page, f"{there.address}/runs/{run.id}#review")

    async def change() -> float:
        await hand_in(there.plane, run.id)
        return await there.at(run.id, "work_handed_in")

    return "agent says exit 0", change


async def look_at(page: Page, url: str) -> None:
    """Go there, and wait until the page follows what happens."""
    await page.goto(url)
    await page.wait_for_function(IS_LIVE)


async def measure_updates(there: There, name: str, change: Change, path: str = "") -> None:
    """Changes of what is looked at, each beside a round trip through the gateway from the same page."""
    page = await there.page()
    if path:
        await look_at(page, there.address + path)
    pairs = []
    for number in range(WARM_UP + ROUNDS):
        text, act = await change(there, page, number)
        trips = sorted([(await page.evaluate(ROUND_TRIP))[0] for _ in range(3)])
        seen = asyncio.ensure_future(page.evaluate(SHOWN, text))
        await page.evaluate("() => 1")
        committed = await act()
        pairs.append((trips[1], float(await seen) - committed))
    report(f"gateway update, {name}", pairs[WARM_UP:], MOST_UPDATE_RATIO)


async def measure_weight(there: There) -> None:
    """What a browser without a cache loads before the first view, and the poll that every page has."""
    run, page = await there.at_work(), await there.page()
    fresh = await (await there.browser.new_context(viewport=DESKTOP)).new_page()  # type: ignore[arg-type]
    await load(fresh, f"{there.address}/runs/{run.id}", FIRST_VIEW)
    figures = {"first_view_bytes": int(await fresh.evaluate(WIRE)), "most": MOST_BYTES}
    figures |= {"poll_bytes": (await page.evaluate(ROUND_TRIP))[1], "most_poll": MOST_POLL_BYTES}
    print(json.dumps({"bench": "gateway weight", **figures}), flush=True)


@asynccontextmanager
async def elsewhere(browser: Browser, access: str) -> AsyncIterator[There]:
    """A console in a process of its own, ended at the end."""
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "tests.bench.gateway_server", data, access]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        where = json.loads(await process.stdout.readline())
        channel = open_channel(where["services"])
        try:
            yield There(where["address"], clients(channel), where["links"], browser)
        finally:
            await channel.close()
            process.terminate()
            await process.wait()


async def browse() -> None:
    """One browser; a console that lets everybody in, and one as `pointsman up` starts it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
        async with elsewhere(browser, "open") as there:
            await measure_weight(there)
            await measure_first_views(there, "")
        async with elsewhere(browser, "signed-in") as there:
            await measure_first_views(there, ", signed in")
            run = await there.at_work()
            await measure_updates(there, "label", labelled, f"/runs/{run.id}")
            await measure_updates(there, "label in the list", labelled, "/runs")
            await measure_updates(there, "answer", answered)
            await measure_updates(there, "work handed in", handed_in)
        await browser.close()


def main() -> None:
    """Measure where there is a browser."""
    if system_browser() is None:
        print(MISSING, file=sys.stderr)
        return
    asyncio.run(browse())


if __name__ == "__main__":
    main()
