"""Takes the README's pictures of the console from a live control plane: `python -m tests.e2e.screenshots`."""

import asyncio
import os
import shlex
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.commands import demo_agent
from pointsman.cli.commands.demo import example_repository
from pointsman.cli.render.run_progress import PlainView
from pointsman.cli.session.follow import follow
from pointsman.cli.session.workers import WorkerSpec, profile_for, worker_for, worker_running, workspace_for
from pointsman.client import Client, Order
from pointsman.credentials.folder import CredentialRole
from pointsman.services.chassis.rpc.client import open_channel, own_identity
from pointsman.worker.git import repository_id, text
from tests.e2e.consoles import Console, console, viewed
from tests.e2e.install import MISSING, system_browser
from tests.scenarios.planes import NOBODY

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE = {"width": 1280, "height": 820}
PROOF = ("python3", "-m", "unittest", "discover", "-q")
WISHES = (
    "Fix the failing test in src/parser.py and add a regression test",
    "Write the login form in web/login.ts and run the tests",
    "Add retries to the client in src/client.py and test them",
)


async def some_runs(here: Console) -> None:
    """Runs that ask different things."""
    plane = here.plane
    for wish in WISHES:
        await plane.ended((await plane.submit(wish)).id)
    await plane.behave(mock.MOCK_ROLE_REVIEWER, mock.MOCK_OUTCOME_MALFORMED)
    await plane.asked((await plane.submit("Refactor src/scheduler.py and update its callers", lenient=True)).id)
    await plane.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_SUCCESS)
    poor = await plane.submit("Split the report in src/report.py", budget=runs.Budget(transitions=10))
    await plane.ended(poor.id)
    await plane.asked((await plane.submit("Fix the newest thing in src/new.py")).id)
    await plane.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
    await plane.taken((await plane.submit("Migrate billing in src/billing.py", labels={"team": "payments"})).id)
    elsewhere = Repository(id="0" * 40, base_commit="0" * 40)
    await plane.submit("Rename the lexer in src/lexer.py", repository=elsewhere)


async def a_caught_lie(here: Console, folder: Path) -> str:
    """A run on a real repository whose agent lies at its first try of the second task."""
    assert here.running is not None
    client = Client(open_channel(here.running.address, identity=own_identity(CredentialRole.SERVICE)))
    command = shlex.join((sys.executable, "-I", demo_agent.__file__))
    spec = WorkerSpec(("verifier", "surveyor", "planner", "coder"), profile_for("", command), name="vm")
    repository = Repository(id=await repository_id(folder), base_commit=await text(folder, "rev-parse", "HEAD"))
    async with worker_running(client, worker_for(await workspace_for([folder]), spec)):
        order = Order("Write the functions of the shop and test them", repository, [PROOF], as_action=True)
        run = await follow(client, (await client.runs.submit(order)).run.id, PlainView())
    return str(run.id)


async def main() -> None:
    """Write the pictures."""
    chromium = system_browser()
    if chromium is None:
        sys.exit(MISSING)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        os.environ["POINTSMAN_DATA"] = str(Path(data) / "worker")
        async with (
            async_playwright() as playwright,
            await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
        ):
            await picture_the_lie(browser, Path(data))
            await picture_the_list(browser, Path(data))


async def picture_the_lie(browser: Browser, data: Path) -> None:
    """The review page of the attempt that was caught."""
    async with console(data / "lie", NOBODY, asks_for_a_code=False) as here, viewed(browser, SIZE) as view:
        run_id = await a_caught_lie(here, await example_repository(data))
        page = await view.open(here, f"/runs/{run_id}")
        await page.get_by_role("button", name="T2").click()
        await page.get_by_role("button", name="attempt 1").click()
        await page.locator("#verdict.refused").wait_for()
        await page.screenshot(path=FOLDER / "review.png")


async def picture_the_list(browser: Browser, data: Path) -> None:
    """The list by attention."""
    async with console(data / "list", asks_for_a_code=False) as here, viewed(browser, SIZE) as view:
        await some_runs(here)
        page = await view.open(here, "/runs")
        await page.locator(".vspace .vrow").nth(5).wait_for()
        await page.locator("#people-count").wait_for()  # counts are asked for after the first view
        await page.screenshot(path=FOLDER / "runs.png")


if __name__ == "__main__":
    asyncio.run(main())
