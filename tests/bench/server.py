"""One benchmarked server in its own process: `python -m tests.bench.server empty|stack|ours|hookless [URL]`; prints its port."""

import asyncio
import dataclasses
import sys
from typing import Any

import grpc

from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.engine.batch import Batch
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.chassis.telemetry.metrics import CallTimes
from tests.bench.floors import Joiner, add_floor, open_raw
from tests.helpers.counter import Add, CounterServicer, build, counter_pb2


async def serve_floor(kind: str, url: str) -> None:
    """A bare server: an empty call, or one with the raw joined transaction."""
    sys.setswitchinterval(0.0005)
    server = grpc.aio.server()
    joiner = Joiner(open_raw(url)) if kind == "stack" else None
    if joiner is not None:
        joiner.start(asyncio.get_running_loop())

    async def handle(request: Any, _context: Any) -> Any:
        value = await joiner.submit(request.counter_id) if joiner is not None else 0
        return counter_pb2.AddResponse(value=value)

    add_floor(server, counter_pb2.AddRequest, counter_pb2.AddResponse, handle)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    freeze_startup_objects()
    print(port, flush=True)
    await server.wait_for_termination()


async def serve_ours(url: str) -> None:
    """The chassis with the counter; each command writes journal, state, outbox and answer."""
    service = build(Database(url, "counter"))
    servicer = service.servicers[0][1]
    assert isinstance(servicer, CounterServicer)
    descriptor = service.servicers[0][0]
    quiet = dataclasses.replace(service, loops=(), servicers=[(descriptor, _Telling(servicer))], close=None)
    running = await start(lambda _address: [quiet], ServerSettings(port=0, host="127.0.0.1"))
    freeze_startup_objects()
    print(running.address.rpartition(":")[2], flush=True)
    await asyncio.Event().wait()


def take_out_the_hooks() -> None:
    """Calls and commits as if there were no spans: what is left is two looks at a flag for each command."""

    def observe(times: CallTimes, code: str, seconds: float) -> None:
        found = times._by_code.get(code)
        if found is None:
            found = times._by_code[code] = metrics.calls.labels(times._method, str(code))
        found.observe(seconds)

    CallTimes.observe = observe  # type: ignore[method-assign, assignment]
    Batch._observe = _without_spans  # type: ignore[method-assign, assignment]


def _without_spans(batch: "Batch[Any]", changed: Any) -> None:
    for change in changed:
        if change.is_shared and change.state is not None:
            batch._parts.cache.put(change.entity_id, change.digest, change.state)


class _Telling:
    """Adds with one effect each, which nobody delivers here."""

    def __init__(self, servicer: CounterServicer) -> None:
        self._ledger = servicer.ledger

    async def Add(self, request: Any, caller: Any) -> Any:
        """One durable command."""
        answer = await self._ledger.submit(caller, Add(request.counter_id, request.amount, ("them",)))
        return counter_pb2.AddResponse(value=answer.value, seq=answer.seq)


if __name__ == "__main__":
    kind, url = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    if kind == "hookless":
        take_out_the_hooks()
    asyncio.run(serve_ours(url) if kind in ("ours", "hookless") else serve_floor(kind, url))
