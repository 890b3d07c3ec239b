"""One browser for all tests of the console: the distribution's Chromium, never a downloaded one."""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "NO CHROMIUM: the console is not tested here; install the distribution's package `chromium`"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that something was left out."""
    if CHROMIUM is None:
        terminalreporter.write_line(MISSING, red=True, bold=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """A headless browser, started once."""
    if CHROMIUM is None:
        pytest.skip(MISSING)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()
