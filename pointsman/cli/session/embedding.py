"""The embedded control plane of a command: serves other commands too, until it ends or `pointsman up` takes over."""

import asyncio
import fcntl
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pointsman.cli.session.attached_commands import STEP_SECONDS, wait_until_detached
from pointsman.credentials.location import owner_of
from pointsman.services.all_in_one import Build
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.file_lock import StoreLock

if TYPE_CHECKING:
    from pointsman.services.chassis.runtime.service import Running

UP_FILE = "pointsman.up"
"""Locked by `pointsman up` while it waits for the data directory."""
ATTACHED_FILE = "pointsman.guests"
CHECK_SECONDS = 0.25
EMBEDDED_NOTICE = (
    "pointsman: no control plane was running on {directory}: this command has one inside, "
    "which ends with it; `pointsman up` starts one that stays"
)
MOVED_NOTICE = "pointsman: the control plane has moved to `pointsman up`; this command goes on with that one"


class EmbeddedPlane:
    """Serves a control plane while no other process does; yields to `pointsman up`, and serves again after that."""

    def __init__(self, lock: Path, build: Build) -> None:
        self._lock = lock
        self._build = build
        self._held: tuple[StoreLock, Running] | None = None
        self._cannot_start = False

    @property
    def serves(self) -> bool:
        """Whether the control plane is in this process."""
        return self._held is not None

    async def serve(self) -> bool:
        """Starts the control plane unless another one serves or `pointsman up` waits; returns whether it did."""
        from pointsman.services.chassis.rpc.loopback import warn_if_insecure
        from pointsman.services.chassis.runtime.service import start

        if is_up_waiting(self._lock):
            return False
        try:
            claim = StoreLock(self._lock, yields=True)
        except Refusal as refusal:
            if refusal.reason is not Reason.UNAVAILABLE:
                raise
            return False
        try:
            settings = ServerSettings(port=0)
            warn_if_insecure(settings)
            running = await start(self._build, settings)
        except BaseException:
            claim.release()
            raise
        claim.announce(running.local_address, running.address)
        self._held = (claim, running)
        return True

    async def supervise(self, ended: asyncio.Event) -> None:
        """Until the end: replaces a control plane that has stopped, and yields to `pointsman up`."""
        while not await _wait_for_event(ended, CHECK_SECONDS):
            if self._held is None:
                if await self._take_over():
                    announce_embedded(self._lock.parent)
            elif is_up_waiting(self._lock):
                await self.stop()
                print(MOVED_NOTICE, file=sys.stderr, flush=True)

    async def _take_over(self) -> bool:
        """Replaces a control plane that has stopped; after a failed start it prints why and never tries again."""
        if self._cannot_start:
            return False
        try:
            return await self.serve()
        except (Refusal, OSError) as error:
            self._cannot_start = True
            print(f"pointsman: no control plane can start here: {error}", file=sys.stderr, flush=True)
            return False

    async def stop(self, attached_file: Path | None = None) -> None:
        """Stops serving; waits for attached commands first if their lock file is given."""
        if self._held is None:
            return
        claim, running = self._held
        self._held = None
        claim.announce("")
        if attached_file is not None:
            await wait_until_detached(attached_file)
        await running.stop()
        claim.release()


def announce_embedded(directory: Path) -> None:
    """Prints that this command embeds a control plane."""
    print(EMBEDDED_NOTICE.format(directory=directory), file=sys.stderr, flush=True)


@asynccontextmanager
async def supervised(host: EmbeddedPlane, attached_file: Path) -> AsyncIterator[None]:
    """Supervises an embedded control plane during the block, and stops it at the end."""
    ended = asyncio.Event()
    supervising = asyncio.create_task(host.supervise(ended))
    try:
        yield
    finally:
        ended.set()
        await supervising
        await host.stop(attached_file)


async def claim_for_up(lock: Path) -> StoreLock:
    """Locks the data directory for `up`, once embedding commands have yielded; refused while another `up` runs."""
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
                    request = stack.enter_context(lock.with_name(UP_FILE).open("ab"))
            if request is not None:
                with suppress(BlockingIOError):
                    fcntl.flock(request, fcntl.LOCK_EX | fcntl.LOCK_NB)
            await asyncio.sleep(STEP_SECONDS)


def is_up_waiting(lock: Path) -> bool:
    """Whether a `pointsman up` waits for the data directory, by its lock, which ends with its process."""
    try:
        with lock.with_name(UP_FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


async def _wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event is set within that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
