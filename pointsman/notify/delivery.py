"""Sends notices: by HTTP or by a command; tried again until they are taken."""

import asyncio
import contextlib
import logging
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from pointsman._shared.system_time import now_seconds
from pointsman.notify.notice import Notice, Receiver, body_of, headers_of

TIMEOUT_SECONDS = 10.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 60.0
log = logging.getLogger("pointsman.notify")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A receiver that sends us elsewhere has taken nothing, and does not choose whom we call."""

    def redirect_request(self, *_args: Any) -> None:
        """Nobody else is called; the answer stays a failure."""


_OPENER = urllib.request.build_opener(_NoRedirects)


class NotTaken(Exception):
    """The receiver did not take a notice; it is sent again later."""


@dataclass(frozen=True, slots=True)
class Channel:
    """Where notices go: an address with a kind of receiver, a command, or both."""

    address: str = ""
    receiver: Receiver = Receiver.WEBHOOK
    secret: str = ""
    command: tuple[str, ...] = ()

    async def send(self, notice: Notice) -> None:
        """Send until it is taken."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await self._send_once(notice)
            except NotTaken as reason:
                log.warning("the notice %s was not taken: %s; again in %.0f s", notice.id, reason, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    async def _send_once(self, notice: Notice) -> None:
        if self.address:
            await asyncio.to_thread(self._post, notice)
        if self.command:
            await self._run(notice)

    def _post(self, notice: Notice) -> None:
        body = body_of(notice, self.receiver)
        headers = headers_of(notice, self.receiver, body, self.secret, int(now_seconds()))
        request = urllib.request.Request(self.address, body, headers, method="POST")  # noqa: S310 - checked to be http
        try:
            with _OPENER.open(request, timeout=TIMEOUT_SECONDS):
                return
        except (urllib.error.URLError, OSError) as error:
            raise NotTaken(str(error)) from None

    async def _run(self, notice: Notice) -> None:
        """Run the command with the notice as its last argument; no shell reads what others wrote."""
        process = await asyncio.create_subprocess_exec(
            *self.command, notice.line, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            env={**os.environ, "POINTSMAN_NOTICE_ID": notice.id, "POINTSMAN_NOTICE_LINK": notice.link},
        )  # fmt: skip
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                code = await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            code = await process.wait()
        if code:
            raise NotTaken(f"{self.command[0]} ended with exit code {code}")
