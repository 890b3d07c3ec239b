"""The console in a test: real services and a real gateway that can be stopped apart, and a page that tells of its errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import grpc
from playwright.async_api import Browser, Page, expect

from pointsman.credentials.folder import CredentialFolder
from pointsman.services.chassis.core.config import PeerSettings, ServerSettings
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import Running, Service, start
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from tests.helpers.limits import scaled
from tests.helpers.ports import free_port
from tests.scenarios.planes import MOCKED, Plane, builder, clients

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 780}
PATIENCE_SECONDS = 30.0
HELD_SECONDS = 3600.0
"""No lease runs out and no agent is lost while a test is slow: what a mock was told to do it does for the whole test."""
_thousands = (count(start) for start in count(1, 1000))


def patience_ms(seconds: float = PATIENCE_SECONDS) -> float:
    """How long the browser may take for what a page has to show, on a machine as busy as this one."""
    return 1000 * scaled(seconds)


@dataclass(slots=True)
class Console:
    """A control plane and its gateway, each of which can be stopped and started again at the same address."""

    data: Path
    mocks: MockSettings
    settings: OrchestratorSettings
    token_keys: Path | None = None
    asks_for_a_code: bool = True
    service_port: int = field(default_factory=free_port)
    gateway_port: int = field(default_factory=free_port)
    running: Running | None = None
    channel: grpc.aio.Channel | None = None
    server: GatewayServer | None = None
    gateway: Service | None = None
    loops: Loops = field(default_factory=Loops)
    numbers: "count[int]" = field(default_factory=lambda: next(_thousands))

    @property
    def address(self) -> str:
        """Where the browser finds it."""
        return f"http://127.0.0.1:{self.gateway_port}"

    @property
    def plane(self) -> Plane:
        """Clients of the services."""
        assert self.channel is not None
        return replace(clients(self.channel), numbers=self.numbers)

    async def start_services(self) -> None:
        """Start the four services, at the port they had before."""
        build = builder(self.data, self.mocks, self.settings)
        self.running = await start(build, ServerSettings(port=self.service_port, drain_seconds=0.2))
        self.channel = open_channel(self.running.address)
        await self.plane.are_there(self.mocks)

    async def stop_services(self) -> None:
        """Stop them; their data stays."""
        assert self.channel is not None
        assert self.running is not None
        await self.channel.close()
        await self.running.stop()

    async def start_gateway(self) -> None:
        """Start the gateway, at the port it had before."""
        credentials = CredentialFolder.of(self.data) if self.asks_for_a_code else None
        if credentials is not None:
            credentials.make()
        self.server = GatewayServer(GatewaySettings(port=self.gateway_port, token_keys=self.token_keys), credentials)
        self.gateway = self.server.service(PeerSettings().all_at(f"127.0.0.1:{self.service_port}"))
        self.loops.start(*self.gateway.loops[0])

    async def log_in(self, page: Page) -> None:
        """Open the console with a code, as a person does; where it asks for tokens there is none."""
        assert self.server is not None
        if self.token_keys is None and self.asks_for_a_code:
            await page.goto(self.server.console_link())
            await page.wait_for_url(f"{self.address}/")

    async def stop_gateway(self) -> None:
        """Stop it."""
        await self.loops.stop()
        assert self.gateway is not None
        assert self.gateway.close is not None
        await self.gateway.close()


@asynccontextmanager
async def console(
    data: Path,
    mocks: MockSettings = MOCKED,
    token_keys: Path | None = None,
    *,
    asks_for_a_code: bool = True,
    **settings: Any,
) -> AsyncIterator[Console]:
    """Everything started, and stopped at the end."""
    held = {"lease_seconds": HELD_SECONDS, "present_seconds": HELD_SECONDS}
    here = Console(data, mocks, OrchestratorSettings(**(held | settings)), token_keys, asks_for_a_code)
    await here.start_services()
    await here.start_gateway()
    try:
        yield here
    finally:
        await here.stop_gateway()
        await here.stop_services()


@dataclass(frozen=True, slots=True)
class View:
    """A page, and everything that it complained about."""

    page: Page
    problems: list[str]
    forgiven: list[str]
    """Words of complaints that the test expects, also of those that are yet to come."""

    async def open(self, here: Console, path: str) -> Page:
        """Go to a page of the console; with a code where the browser has no session yet."""
        if not await self.page.context.cookies(here.address):
            await here.log_in(self.page)
        await self.page.goto(here.address + path)
        return self.page


@asynccontextmanager
async def viewed(browser: Browser, size: dict[str, int] | None = None, **options: Any) -> AsyncIterator[View]:
    """A fresh window; that nothing complained is part of every test."""
    context = await browser.new_context(viewport=size or DESKTOP, **options)  # type: ignore[arg-type]
    context.set_default_timeout(patience_ms())
    expect.set_options(timeout=patience_ms())
    page = await context.new_page()
    problems: list[str] = []
    failed: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("response", lambda answer: failed.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(f"a dialog appeared: {dialog.message}"))
    view = View(page, problems, [])
    yield view
    await context.close()
    missing = [answer for answer in failed if answer.startswith("404 ")]
    if missing and all("GetPipeline" in answer for answer in missing):  # one that the run is just starting
        forgive(view, "status of 404")
    left = [problem for problem in problems if not any(words in problem for words in view.forgiven)]
    assert not left, (left, failed)


def forgive_outages(view: View) -> None:
    """Do not mind the browser's own lines about a server that was stopped on purpose."""
    forgive(view, "net::ERR_", "status of 503", "status of 504")


def forgive(view: View, *words: str) -> None:
    """Do not mind complaints with these words, whenever they come."""
    view.forgiven.extend(words)


LOADED = {
    "/runs": ".vspace .vrow",
    "/people": "#questions > *",
    "/new": "#message",
    "/components": "#rest",
    "/agents": "#agents tbody tr",
    "/queue": "#coming > *",
    "/schedules": "#schedules > *",
    "/router": "#recent > *",
}


async def loaded(page: Page, path: str) -> None:
    """Wait until what the page is about is there, and is painted."""
    await expect(page.locator(LOADED.get(path.partition("?")[0], "#review-summary")).first).to_be_visible()
    await painted(page)


async def painted(page: Page) -> None:
    """Wait for two frames: what was drawn before them is on the screen."""
    await page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
