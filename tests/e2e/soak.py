"""Updates for a long time, and what the pages keep of them: `python -m tests.e2e.soak --minutes 30` (make console-soak)."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import CDPSession, Page, async_playwright, expect

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import Console, console, patience_ms, viewed
from tests.e2e.install import DOWNLOADED, MISSING, has_downloaded, system_browser
from tests.helpers.limits import Gauge, Limit
from tests.helpers.loopback import trust_loopback
from tests.scenarios.planes import NOBODY

RUNS = 20
ROUND = 10
"""Updates on each page before the next page is gone to."""
PAGES = (("Runs", "/runs"), ("Agents", "/agents"), ("Queue", "/queue"), ("People", "/people"))
MOST_MORE_NODES, MOST_MORE_LISTENERS, MOST_MORE_BYTES = 300, 60, 2_000_000
"""What caches may still fill up with; a page that keeps something of each update keeps far more."""


class Unscaled(Gauge):
    """Half an hour is half an hour, however busy the machine is: it is no limit of anything."""

    def slowdown(self) -> float:
        """None."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a page has, after everything that nobody refers to was thrown away."""

    nodes: int
    listeners: int
    heap_bytes: int

    def more_than(self, before: "Kept") -> "Kept":
        """The growth since another time."""
        listeners, heap_bytes = self.listeners - before.listeners, self.heap_bytes - before.heap_bytes
        return Kept(self.nodes - before.nodes, listeners, heap_bytes)

    @property
    def is_growth(self) -> bool:
        """Whether it is more than caches explain."""
        return self.nodes > MOST_MORE_NODES or self.listeners > MOST_MORE_LISTENERS or self.heap_bytes > MOST_MORE_BYTES


class Soak:
    """One page that is led through the console while runs and agents change."""

    def __init__(self, here: Console, page: Page) -> None:
        self._here, self._page = here, page
        self._session: CDPSession | None = None
        self._runs: list[runs.Run] = []
        self.updates = 0

    async def begin(self) -> None:
        """Runs that can be changed without end."""
        plane = self._here.plane
        for number in range(RUNS):
            run = await plane.submit(f"Fix the signal {number} in src/signal.py")
            self._runs.append(await plane.reached(run.id, runs.RUN_STATE_CODER_EXEC))
        self._session = await self._page.context.new_cdp_session(self._page)
        await self._session.send("Performance.enable")
        await expect(self._page.locator("#run-count")).to_have_text(f"{RUNS} runs")

    async def round(self) -> None:
        """Some updates on each page; each is waited for, so that none is lost in the next."""
        for name, path in PAGES:
            await self._page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
            await self._page.wait_for_url(f"{self._here.address}{path}")
            for _ in range(ROUND):
                await self._update(path)
            if path == "/runs":
                await self._round_of_a_run()

    async def _round_of_a_run(self) -> None:
        """Some updates of one run, on its own page."""
        run = self._runs[self.updates % RUNS]
        await self._page.locator(f'.vrow[data-key="{run.id}"] .c-run a').click()
        await self._page.wait_for_url(f"{self._here.address}/runs/{run.id}")
        for _ in range(ROUND):
            await self._update("", run)
            await expect(self._page.locator("#run-head")).to_contain_text(
                f"round={self.updates}", timeout=patience_ms()
            )

    async def _update(self, path: str, wanted_run: runs.Run | None = None) -> None:
        self.updates += 1
        run, plane = wanted_run or self._runs[self.updates % RUNS], self._here.plane
        labels = {"round": str(self.updates)}
        await plane.runs.LabelRun(pb.LabelRunRequest(request_id=plane.request_id(), run_id=run.id, labels=labels))
        wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_REVIEW])
        seen_by = f"reviewer-{self.updates % 7}"
        await plane.agents.Poll(agent.PollRequest(request_id=plane.request_id(), agent_id=seen_by, wanted=wanted))
        if path == "/runs":
            row = self._page.locator(f'.vrow[data-key="{run.id}"]')
            await expect(row).to_contain_text(f"round={self.updates}", timeout=patience_ms())

    async def kept(self) -> Kept:
        """What the page has now."""
        assert self._session is not None
        await self._session.send("HeapProfiler.collectGarbage")
        found = (await self._session.send("Performance.getMetrics"))["metrics"]
        named = {one["name"]: int(one["value"]) for one in found}
        return Kept(named["Nodes"], named["JSEventListeners"], named["JSHeapUsedSize"])


async def soak(minutes: float) -> Kept:
    """Update for so long, print what is kept after each round, and return the growth since the second one."""
    with tempfile.TemporaryDirectory() as data:
        async with (
            console(Path(data), NOBODY) as here,
            async_playwright() as playwright,
            await playwright.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"]) as browser,
            viewed(browser) as view,
        ):
            await view.open(here, "/runs")
            led = Soak(here, view.page)
            await led.begin()
            await led.round()
            await led.round()
            first = last = await led.kept()
            limit = Limit(60 * minutes, Unscaled())
            while not limit.is_over():
                await led.round()
                last = await led.kept()
                figures = {"nodes": last.nodes, "listeners": last.listeners, "heap_bytes": last.heap_bytes}
                print(json.dumps({"updates": led.updates, **figures}), flush=True)
            return last.more_than(first)


def main() -> None:
    """Update, and end with 1 where the page has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    if not (system_browser() or has_downloaded()):
        sys.exit(MISSING)
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = str(DOWNLOADED)
    trust_loopback()
    more = asyncio.run(soak(parser.parse_args().minutes))
    print(json.dumps({"more_nodes": more.nodes, "more_listeners": more.listeners, "more_heap_bytes": more.heap_bytes}))
    sys.exit(1 if more.is_growth else 0)


if __name__ == "__main__":
    main()
