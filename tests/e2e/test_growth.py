"""A page keeps nothing of the updates that it has shown: the short version of `make console-soak`."""

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.e2e.consoles import console, viewed
from tests.e2e.soak import Soak
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
ROUNDS = 4


async def test_many_updates_and_pages_leave_nothing_behind(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        await view.open(here, "/runs")
        led = Soak(here, view.page)
        await led.begin()
        await led.round()
        await led.round()
        first = await led.kept()
        for _ in range(ROUNDS):
            await led.round()
        more = (await led.kept()).more_than(first)
        print(f"{more} after {led.updates} updates")
        assert not more.is_growth, more
