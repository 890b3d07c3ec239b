"""A control plane inside a command: it serves others too, until the command ends or `pointsman up` takes over."""

import asyncio
import fcntl
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import IO

from pointsman.cli.session.attached_commands import STEP_SECONDS, guests_gone
from pointsman.services.all_in_one import Build
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.runtime.service import Running, start
from pointsman.services.chassis.storage.file_lock import StoreLock, owner_of

UP = "pointsman.up"
"""Locked by `pointsman up` while it waits for the data directory."""
GUESTS = "pointsman.guests"
LOOK_SECONDS = 0.25
HERE = (
    "pointsman: no control plane was running on {directory}: this command has one inside, "
    "which ends with it; `pointsman up` starts one that stays"
)
MOVED = "pointsman: the control plane has moved to `pointsman up`; this command goes on with that one"


class Host:
    """Has a control plane while nobody else has one; gives it up to `pointsman up`, and has one again after that."""

    def __init__(self, lock: Path, build: Build) -> None:
        self._lock = lock
        self._build = build
        self._held: tuple[StoreLock, Running] | None = None
        self._cannot = False

    @property
    def serves(self) -> bool:
        """Whether the control plane is in this process."""
        return self._held is not None

    async def serve(self) -> bool:
        """Start a control plane unless there is one, or one is about to start; whether it is here now."""
        if is_wanted_by_up(self._lock):
            return False
        try:
            claim = StoreLock(self._lock, yields=True)
        except Refusal as refusal:
            if refusal.reason is not Reason.UNAVAILABLE:
                raise
            return False
        try:
            running = await start(self._build, ServerSettings(port=0))
        except BaseException:
            claim.release()
            raise
        claim.announce(running.address)
        self._held = (claim, running)
        return True

    async def keep(self, ended: asyncio.Event) -> None:
        """Until the end: take the place of a control plane that is gone, make room for one that stays."""
        while not await _within(ended, LOOK_SECONDS):
            if self._held is None:
                if await self._take_over():
                    say_so(self._lock.parent)
            elif is_wanted_by_up(self._lock):
                await self.stop()
                print(MOVED, file=sys.stderr, flush=True)

    async def _take_over(self) -> bool:
        """Serve in the place of a control plane that is gone; one that cannot start is told, and waited for elsewhere."""
        if self._cannot:
            return False
        try:
            return await self.serve()
        except (Refusal, OSError) as error:
            self._cannot = True
            print(f"pointsman: no control plane can start here: {error}", file=sys.stderr, flush=True)
            return False

    async def stop(self, guests: Path | None = None) -> None:
        """Serve no longer; commands that are guests here are waited for."""
        if self._held is None:
            return
        claim, running = self._held
        self._held = None
        claim.announce("")
        if guests is not None:
            await guests_gone(guests)
        await running.stop()
        claim.release()


def say_so(directory: Path) -> None:
    """Tell that this command has a control plane inside."""
    print(HERE.format(directory=directory), file=sys.stderr, flush=True)


@asynccontextmanager
async def kept_up(host: Host, guests: Path) -> AsyncIterator[None]:
    """Look after a host while the block runs, and stop it at the end."""
    ended = asyncio.Event()
    keeping = asyncio.create_task(host.keep(ended))
    try:
        yield
    finally:
        ended.set()
        await keeping
        await host.stop(guests)


async def claim_for_good(lock: Path) -> StoreLock:
    """The data directory, once those that have it for a while have handed it over; refused while another `up` has it."""
    with ExitStack() as stack:
        request: IO[bytes] | None = None
        while True:
            try:
                return StoreLock(lock)
            except Refusal as refusal:
                owner = owner_of(lock)
                if refusal.reason is not Reason.UNAVAILABLE or (owner is not None and not owner.yields):
                    raise
                if owner is not None and request is None:
                    print(f"pointsman: waiting for process {owner.pid} to hand {lock.parent} over", file=sys.stderr)
                    request = stack.enter_context(lock.with_name(UP).open("ab"))
            if request is not None:
                with suppress(BlockingIOError):
                    fcntl.flock(request, fcntl.LOCK_EX | fcntl.LOCK_NB)
            await asyncio.sleep(STEP_SECONDS)


def is_wanted_by_up(lock: Path) -> bool:
    """Whether a `pointsman up` waits for the data directory; a lock says so, and ends with its process."""
    try:
        with lock.with_name(UP).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


async def _within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event comes in that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
