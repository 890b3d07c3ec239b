"""Permissions that an agent by ACP asks for while it works: asked of the run, and the answers laid down where it looks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.client import CallFailed, Unavailable
from pointsman.sandbox import Clock
from pointsman.worker.sdk import Job, log

REQUEST = "permission_request"
MAX_TITLE, MAX_PLACE, MAX_PLACES, MAX_KIND = 1024, 1024, 16, 32
PAUSE_SECONDS = 1.0
ALLOW, DENY = "allow", "deny"


class PermissionDesk:
    """Puts each request of an agent to the run; its time stands still until the answer is there."""

    def __init__(self, job: Job, answers: Path) -> None:
        self.clock = Clock()
        self._job = job
        self._answers = answers
        self._asking: dict[str, asyncio.Task[None]] = {}

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take what the agent's client printed; what is no request is not for here."""
        key = str(event.get("key", ""))
        if event.get("type") == REQUEST and key and key not in self._asking:
            self._asking[key] = asyncio.get_running_loop().create_task(self._ask(_permission(key, event)))

    @asynccontextmanager
    async def open(self) -> AsyncIterator["PermissionDesk"]:
        """Nobody asks any more after the block."""
        try:
            yield self
        finally:
            for task in self._asking.values():
                task.cancel()

    async def _ask(self, permission: pb.Permission) -> None:
        log.info("%s: asks for a permission: %s", self._job.agent_id, permission.title)
        self.clock.stop()
        try:
            state = await self._answered(permission)
        except CallFailed as failure:
            log.warning("%s: the permission was not asked for: %s", self._job.agent_id, failure)
            state = pb.PERMISSION_STATE_DENIED
        finally:
            self.clock.go_on()
        _lay_down(self._answers / permission.key, ALLOW if state == pb.PERMISSION_STATE_ALLOWED else DENY)

    async def _answered(self, permission: pb.Permission) -> pb.PermissionState.ValueType:
        """The answer, however long it takes and however often the control plane goes away meanwhile."""
        job = self._job
        while True:
            try:
                state = await job.client.agents.request_permission(job.agent_id, job.key, permission)
            except Unavailable:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if state != pb.PERMISSION_STATE_PENDING:
                return state


def _permission(key: str, event: Mapping[str, Any]) -> pb.Permission:
    """The request within the bounds of the contract; NUL has no place in it."""
    places = [str(place).replace("\0", "")[:MAX_PLACE] for place in event.get("places", ())]
    return pb.Permission(
        key=key,
        tool_kind=str(event.get("kind", ""))[:MAX_KIND],
        title=str(event.get("title", "")).replace("\0", "")[:MAX_TITLE] or "do something that it does not name",
        locations=places[:MAX_PLACES],
    )


def _lay_down(path: Path, answer: str) -> None:
    """A file that is whole as soon as it is there."""
    written = path.with_name(f".{path.name}")
    written.write_text(answer)
    written.replace(path)
