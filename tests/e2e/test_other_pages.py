"""Agents, the router, hostile strings and accessibility, in a real browser."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.e2e.consoles import DESKTOP, PHONE, Console, console, forgive, loaded, painted, viewed
from tests.helpers.certificates import Authority
from tests.scenarios.planes import NOBODY, WISH

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser"), pytest.mark.timeout(150)]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
VAGUE = "Fix the newest thing in src/new.py"
HOSTILE = (
    '<img src=x onerror="window.owned=1">"><script>window.owned=1</script>\'--{{7*7}}${7*7} javascript:window.owned=1 '
    "\u202etxt.exe \u200b\u200d\U0001f469\u200d\U0001f4bb e\u0301\u0301\u0301\u0301 " + "W" * 900
)


async def poll(here: Console, agent_id: str, *capabilities: Any) -> list[agent.Lease]:
    """Take work as an agent."""
    request = agent.PollRequest(request_id=here.plane.request_id(), agent_id=agent_id)
    request.wanted.capabilities.extend(capabilities)
    request.wait.FromSeconds(5)
    leases: list[agent.Lease] = list((await here.plane.agents.Poll(request)).leases)
    return leases


async def test_agents_are_shown_with_their_work_and_open_work_with_its_need(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        page = await view.open(here, "/agents")
        await expect(page.locator("#agents")).to_contain_text("No agent has ever polled")
        await here.plane.reached((await here.plane.submit()).id, runs.RUN_STATE_CODER_EXEC)
        await expect(page.locator("#open-work")).to_contain_text("stage T1 DEV")
        (lease,) = await poll(here, "coder-7", assignments.CAPABILITY_CODE)
        row = page.locator('[data-agent="coder-7"]')
        await expect(row).to_contain_text("working")
        await expect(row).to_contain_text("stage T1 DEV")
        await expect(page.locator("#open-work")).to_contain_text("No work waits for an agent.")
        await row.locator("a").click()
        await expect(page.locator("#run-head .id").first).to_have_text(lease.assignment.run_id)


async def test_agents_that_were_lost_say_since_when(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        request = agent.PollRequest(request_id=here.plane.request_id(), agent_id="coder-8")
        request.wanted.capabilities.append(assignments.CAPABILITY_CODE)
        await here.plane.agents.Poll(request)

        async def an_hour_later(route: Route) -> None:
            body = await (await route.fetch()).json()
            for one in body["agents"]:
                one |= {"state": "AGENT_STATE_LOST", "last_seen_at": "2026-01-01T00:00:00Z"}
            await route.fulfill(json=body)

        page = await view.open(here, "/agents")
        row = page.locator('[data-agent="coder-8"]')
        await expect(row).to_contain_text("idle")
        await page.route("**/ListAgents*", an_hour_later)
        await expect(row).to_contain_text("lost")
        await expect(row.locator("td").last).to_contain_text(" d ago")


async def test_the_router_marks_the_words_that_decided(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser) as view:
        page = await view.open(here, "/router")
        await expect(page.locator("#recent")).to_contain_text("Nothing has been decided yet.")
        await page.locator("#router-text").fill("\U0001f980 fix the test in src/parser.py and delete all tables")
        await page.get_by_role("button", name="Decide").click()
        await expect(page.locator("#decision .verdict")).to_contain_text("ACTION")
        await expect(page.locator("#spans mark.trigger").first).to_have_text("fix")
        await expect(page.locator("#spans")).to_contain_text("\U0001f980 fix the test")
        await expect(page.locator("#spans mark", has_text="src/parser.py")).to_have_count(1)
        await expect(page.locator("#decision")).to_contain_text("destructive")
        await expect(page.locator("#recent tbody tr")).to_have_count(1)
        await page.locator("#router-text").fill("thanks!")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("#decision .verdict")).to_contain_text("ANSWER")
        await expect(page.locator("#stats")).to_contain_text("50 %")
        await expect(page.locator(".bars li")).to_have_count(14)


async def hostile_run(here: Console) -> str:
    """A run in which everything that somebody else could write is hostile; it ends at its reviewer's desk."""
    run = await here.plane.submit(
        f"{WISH} {HOSTILE}",
        labels={"team": HOSTILE[:250]},
        session_id=HOSTILE[:120],
        budget=runs.Budget(assignments=40),
    )
    await here.plane.reached(run.id, runs.RUN_STATE_CODER_EXEC)
    (lease,) = await poll(here, HOSTILE[:100], assignments.CAPABILITY_CODE)
    evidence = handoff.Evidence(
        id="E1",
        kind=handoff.EVIDENCE_KIND_COMMAND,
        command=[HOSTILE, "x"],
        exit_code=1,
        excerpt=HOSTILE,
        path=HOSTILE[:900],
    )
    claim = handoff.Claim(id=HOSTILE[:100], statement=HOSTILE, evidence_ids=["E1"], criterion_ids=[HOSTILE[:100]])
    files = [handoff.ChangedFile(path=HOSTILE[:1000], change=handoff.FILE_CHANGE_ADDED)]
    result = handoff.CoderResult(claims=[claim], evidence=[evidence], changed_files=files)
    stage = work.StageResult(route=work.StageRoute(verdict="PASS", hint=HOSTILE), coder_result=result)
    completion = agent.Completion(
        lease=agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret), stage=stage
    )
    request = agent.CompleteRequest(
        request_id=here.plane.request_id(), agent_id=HOSTILE[:100], completions=[completion]
    )
    answer = await here.plane.agents.Complete(request)
    assert [outcome.accepted for outcome in answer.outcomes] == [True], answer
    return str(run.id)


async def calm(page: Page, where: str) -> None:
    """Nothing ran, nothing became an element that could run, nothing sticks out."""
    await painted(page)
    assert await page.evaluate(
        "() => window.owned === undefined && !document.querySelector('main img, main script')"
    ), where
    assert await page.evaluate("() => document.documentElement.scrollWidth <= innerWidth + 1"), where
    assert await page.evaluate("() => !/[\\u202a-\\u202e\\u2066-\\u2069]|\\p{M}{4}/u.test(document.body.innerText)"), (
        where
    )


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_hostile_strings_stay_strings(tmp_path: Path, browser: Browser, size: dict[str, int]) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser, size) as view:
        run_id = await hostile_run(here)
        rival = await here.plane.asked((await here.plane.submit(f"{WISH} {HOSTILE}", session_id=HOSTILE[:120])).id)
        page = await view.open(here, f"/runs/{run_id}")
        await expect(page.locator(".claim .evidence")).to_contain_text("window.owned=1")
        await page.locator("#claims > summary").click()
        await calm(page, "review")
        await page.get_by_role("link", name="Journal").click()
        await page.locator("#journal .vspace button").first.click()
        await calm(page, "journal")
        await page.get_by_role("link", name="Artifacts").click()
        await page.locator(".artifact summary").first.click()
        await calm(page, "artifacts")
        page = await view.open(here, "/runs?q=%3Cimg src=x onerror")
        await expect(page.locator(".vspace .vrow").first).to_contain_text("onerror")
        await calm(page, "runs")
        page = await view.open(here, "/people")
        await expect(page.locator("#questions .card").first).to_contain_text("onerror")
        await page.get_by_role("button", name="keep").first.click()
        await calm(page, "people")
        await page.keyboard.press("Escape")
        page = await view.open(here, "/agents")
        await expect(page.locator("#agents")).to_contain_text("onerror")
        await calm(page, "agents")
        page = await view.open(here, "/router")
        await page.locator("#router-text").fill(f"fix {HOSTILE}")
        await page.get_by_role("button", name="Decide").click()
        await expect(page.locator("#spans")).to_contain_text("onerror")
        await calm(page, "router")
        page = await view.open(here, "/runs/%3Cscript%3Ewindow.owned=1%3C%2Fscript%3E")
        await expect(page.get_by_role("alert")).to_contain_text("no run")
        await calm(page, "missing")
        assert rival.question.kind == runs.QUESTION_KIND_CONFLICT
        forgive(view, "404")


async def serious(page: Page, where: str) -> list[str]:
    """What an accessibility checker finds that keeps somebody out."""
    await page.evaluate(AXE.read_text())
    result = await page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{where}: {one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in result["violations"]
        if one["impact"] in ("moderate", "serious", "critical")
        for node in one["nodes"][:3]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_nobody_is_kept_out(tmp_path: Path, browser: Browser, scheme: Any) -> None:
    async with console(tmp_path) as here, viewed(browser, color_scheme=scheme, bypass_csp=True) as view:
        done = await here.plane.ended((await here.plane.submit()).id)
        await here.plane.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        await here.plane.taken((await here.plane.submit()).id)
        await here.plane.asked((await here.plane.submit(VAGUE)).id)
        found: list[str] = []
        for path in (
            "/runs",
            f"/runs/{done.id}",
            "/people",
            "/agents",
            "/queue",
            "/schedules",
            "/router",
            "/new",
            "/components",
        ):
            page = await view.open(here, path)
            await loaded(page, path)
            if path == "/people":
                await page.get_by_role("button", name="clarify").click()
                await expect(page.locator("dialog")).to_be_visible()
            found += await serious(page, path)
        assert not found, "\n".join(found)
        await expect(page.locator("[data-contender]")).to_have_count(3)
        await expect(page.locator(".contenders .chosen")).to_contain_text("PROVEN")


async def test_light_and_dark_are_chosen_and_kept(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path, NOBODY) as here, viewed(browser, color_scheme="light") as view:
        page = await view.open(here, "/runs")
        ground = "() => getComputedStyle(document.body).backgroundColor"
        light = await page.evaluate(ground)
        await page.locator("#theme").click()
        dark = await page.evaluate(ground)
        assert light != dark
        await page.reload()
        assert await page.evaluate(ground) == dark


async def test_where_tokens_are_asked_for_a_person_signs_in(tmp_path: Path, browser: Browser) -> None:
    authority = Authority(tmp_path)
    async with console(tmp_path, NOBODY, authority.public_key) as here, viewed(browser) as view:
        await here.plane.submit()
        page = await view.open(here, "/runs")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await page.get_by_label("Bearer token").fill("nonsense")
        await page.get_by_role("button", name="Enter").click()
        await expect(page.locator("form.failure")).to_contain_text("not signed by a known key")
        token = authority.token({"sub": "ann", "roles": ["viewer"], "projects": ["local"]})
        await page.get_by_label("Bearer token").fill(token)
        await page.get_by_role("button", name="Enter").click()
        await expect(page.locator(".vspace .vrow")).to_have_count(1)
        await expect(page.locator("#live")).to_have_text("live")
        await page.locator(".vspace .vrow .c-run a").click()
        await page.get_by_role("button", name="cancel", exact=True).click()
        await page.get_by_role("button", name="Confirm").click()
        await expect(page.locator("dialog .problem")).to_contain_text("operator")
        forgive(view, "401", "403")
