"""A nursery of counter processes that can be killed: a JSON line with url, ahead_seconds and crash_point bears one.

Each Add tells somebody of it and sets a bell that rings at once. A child's clock goes ahead by so many seconds, so that
one born after a killed one finds its leases run out. Prints who and where the child is, and then how it ended.
"""

import asyncio
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pointsman.services.chassis.core import crash
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import SystemClock
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.runtime.service import Running, Service, serve_until_stopped
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.telemetry.logs import configure_logs
from tests.helpers.counter import SERVICE, Add, CounterServicer, build, counter_pb2


class AheadClock:
    """This machine's clock and a little more."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead = timedelta(seconds=ahead_seconds)

    def now(self) -> datetime:
        """The time as a process sees it that was started so much later."""
        return SystemClock().now() + self._ahead


class TellingServicer(CounterServicer):
    """Adds that lead to an effect and to a timer each."""

    async def Add(self, request: Any, caller: Caller) -> Any:
        """Count on, tell of the request, and ring."""
        command = Add(request.counter_id, request.amount, (request.request_id,), 0.0)
        answer = await self.ledger.submit(caller, command)
        return counter_pb2.AddResponse(value=answer.value, seq=answer.seq)


def serve(url: str, ahead_seconds: float) -> None:
    """Serve until told to stop, or killed; say who and where once calls are taken."""

    def built(_address: str) -> Sequence[Service]:
        service = build(Database(url, "counter", AheadClock(ahead_seconds)))
        quiet = service.servicers[0][1]
        assert isinstance(quiet, CounterServicer)
        return [dataclasses.replace(service, servicers=[(SERVICE, TellingServicer(quiet._counters))])]

    def greet(running: Running) -> None:
        print(json.dumps({"pid": os.getpid(), "address": running.address}), flush=True)

    asyncio.run(serve_until_stopped(built, ServerSettings(port=0, drain_seconds=5), greet))


def bear(wanted: dict[str, Any]) -> int:
    """A child that serves, armed to die if a point is named; how it ended."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        crash._fuse = crash._Fuse(wanted["crash_point"])
        serve(wanted["url"], wanted["ahead_seconds"])
        code = 0
    finally:
        os._exit(code)


def main() -> None:
    """Everything is imported once, before any thread is started; each child is ready in no time."""
    configure_logs(as_json=True)
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps({"ended": bear(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
