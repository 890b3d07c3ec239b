"""A new run in a real browser: the repositories that agents have, who plays what, and the plan before the work."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import console, viewed
from tests.scenarios.planes import NOBODY

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]
REPOSITORY, COMMIT = "7" * 40, "8" * 40
SHOP = agent.OfferedRepository(id="6" * 40, name="shop", branch="main", head="9" * 40, verify=["make test"])


async def test_a_new_run_says_who_plays_what_and_what_follows_where_nobody_does(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        for agent_id, capability, having in (
            ("vm-coder", assignments.CAPABILITY_CODE, [REPOSITORY]),
            ("vm-verifier", assignments.CAPABILITY_VERIFY, []),
            ("other-verifier", assignments.CAPABILITY_VERIFY, [SHOP.id]),
        ):
            offers = [SHOP] if SHOP.id in having else []
            wanted = agent.Wanted(capabilities=[capability], repository_ids=having, repositories=offers)
            request = agent.PollRequest(request_id=here.plane.request_id(), agent_id=agent_id, wanted=wanted)
            await here.plane.agents.Poll(request)
        page = await view.open(here, "/new")
        await expect(page.locator('#crew [data-role="coder"]')).to_contain_text("vm-coder")
        await expect(page.locator('#crew [data-role="verifier"]')).to_contain_text("vm-verifier")
        await expect(page.locator('#crew [data-role="planner"]')).to_contain_text("the work is one task for one coder")
        await page.locator("#repository").select_option(label="shop · main at 999999999999")
        await expect(page.locator("#commit")).to_have_value(SHOP.head)
        await expect(page.locator("#verify")).to_have_value("make test")
        await page.locator("#repository").select_option(REPOSITORY)
        await expect(page.locator("#commit")).to_have_value("")
        await expect(page.locator("#verify")).to_have_value("")
        await expect(page.locator('#crew [data-role="verifier"]')).to_contain_text("pointsman agent --repo .")
        await page.locator("#commit").fill(COMMIT)
        await page.locator("#message").fill("fix the failing test in src/parser.py")
        await page.locator("#parallel").fill("2")
        await page.locator("#review_plan").check()
        await page.get_by_role("button", name="Start").click()
        await page.get_by_role("link", name="Plan", exact=True).click()
        await expect(page.get_by_role("button", name="edit the plan")).to_be_visible()
        run = await here.plane.asked(page.url.rpartition("/")[2].partition("#")[0])
        assert run.question.kind == runs.QUESTION_KIND_DEBATE
        assert (run.repository.id, run.repository.base_commit) == (REPOSITORY, COMMIT)
