"""Takes the README's pictures of the console from a live control plane: `python -m tests.e2e.screenshots`."""

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import Console, console, viewed
from tests.e2e.install import MISSING, system_browser

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
WISHES = (
    "Fix the failing test in src/parser.py and add a regression test",
    "Write the login form in web/login.ts and run the tests",
    "Add retries to the client in src/client.py and test them",
)


async def some_runs(here: Console) -> str:
    """Runs in several states; the id of one that has seen something."""
    plane = here.plane
    for wish in WISHES:
        await plane.ended((await plane.submit(wish)).id)
    await plane.behave(mock.MOCK_ROLE_REVIEWER, mock.MOCK_OUTCOME_FAILURE)
    rich = await plane.asked((await plane.submit("Refactor src/scheduler.py, update its callers and test it")).id)
    await plane.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_SUCCESS)
    await plane.answer(rich, runs.ANSWER_KIND_CLARIFIED, text="Refactor src/scheduler.py and test it")
    await plane.ended(rich.id)
    await plane.asked((await plane.submit("Fix the newest thing in src/new.py")).id)
    await plane.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
    await plane.reached((await plane.submit("Rename the lexer in src/lexer.py")).id, runs.RUN_STATE_CODER_EXEC)
    return str(rich.id)


async def main() -> None:
    """Write the pictures."""
    chromium = system_browser()
    if chromium is None:
        sys.exit(MISSING)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        async with console(Path(data)) as here, async_playwright() as playwright:
            run_id = await some_runs(here)
            browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            async with viewed(browser, {"width": 1280, "height": 900}) as view:
                for name, path in (("runs", "/runs"), ("run", f"/runs/{run_id}")):
                    page = await view.open(here, path)
                    await page.locator(".vspace .vrow").first.wait_for()
                    await page.wait_for_timeout(1000)
                    await page.screenshot(path=FOLDER / f"{name}.png")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
