"""One browser for all tests of the console: the distribution's Chromium, or the one that `tests.e2e.install` brought."""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.e2e.install import DOWNLOADED, MISSING, has_downloaded, system_browser


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A headless browser, started once."""
    if not (system_browser() or has_downloaded()):
        pytest.skip(MISSING)
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = str(DOWNLOADED)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=system_browser(), args=["--no-sandbox"])
        yield browser
        await browser.close()
