"""Routing decisions per second, in process and over gRPC against an empty call, as JSON lines."""

import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import grpc

from pointsman.api.router.v1 import decision_pb2, policy_pb2, router_pb2_grpc
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.router.__main__ import build_on
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.rules import standard_rule_book

SHORTEST, LONGEST = 75, 125
ROUNDS = 200
CALLERS = 32
ENGLISH = "en"
SECONDS = 2.0
DATA = Path(__file__).parents[1] / "data"


def messages() -> dict[str, str]:
    """The messages of our samples that are about a hundred letters long, with their languages; no decision is remembered."""
    lines = [line for file in sorted(DATA.glob("routing_*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    found = {item["text"]: item["lang"] for item in map(json.loads, lines)}
    return {text: language for text, language in found.items() if SHORTEST <= len(text) <= LONGEST}


def per_second(work: Callable[[str], object], texts: list[str]) -> float:
    """The best of several rounds, in processor time: what other processes do does not count."""
    best = 0.0
    for _ in range(ROUNDS):
        begun = time.process_time()
        for text in texts:
            work(text)
        best = max(best, len(texts) / (time.process_time() - begun))
    return best


def in_process() -> Iterator[dict[str, object]]:
    """Decisions, none remembered, and what the set matcher alone would do."""
    book = standard_rule_book()
    found = messages()
    floor = per_second(book.shapes.matching, list(found))
    yield {"what": "set matcher alone", "per_second": round(floor)}
    english = [text for text, language in found.items() if language == ENGLISH]
    others = [text for text, language in found.items() if language != ENGLISH]
    for what, texts in (("all", [*found]), ("English", english), ("other languages", others)):
        rate = per_second(lambda text: classify(book, text), texts)
        row = {"what": f"decisions, {what}", "messages": len(texts), "per_second": round(rate)}
        yield {**row, "of_set_matcher": round(rate / floor, 3)}


async def over_grpc() -> list[dict[str, object]]:
    """Classify (stored, durable) and BatchClassify of 100, against GetPolicy, the emptiest call there is."""
    with tempfile.TemporaryDirectory() as folder:
        service = build_on(Database(f"sqlite:///{folder}/router.db", "router"), RouterSettings())
        running = await start(lambda _address: [service], ServerSettings(port=0))
        freeze_startup_objects()
        async with grpc.aio.insecure_channel(running.address) as channel:
            stub = router_pb2_grpc.RouterServiceStub(channel)
            texts = itertools.cycle(messages())
            numbers = itertools.count()

            async def empty() -> int:
                await stub.GetPolicy(policy_pb2.GetPolicyRequest())
                return 1

            async def one() -> int:
                message = decision_pb2.Message(text=next(texts))
                await stub.Classify(decision_pb2.ClassifyRequest(request_id=f"r{next(numbers)}", message=message))
                return 1

            async def hundred() -> int:
                batch = [decision_pb2.Message(text=next(texts)) for _ in range(100)]
                await stub.BatchClassify(
                    decision_pb2.BatchClassifyRequest(request_id=f"r{next(numbers)}", messages=batch)
                )
                return 100

            floor = await _rate(empty)
            rates = [("Classify", await _rate(one)), ("BatchClassify of 100", await _rate(hundred))]
        await running.stop()
    shown: list[dict[str, object]] = [{"what": "empty call", "per_second": round(floor)}]
    shown += [{"what": name, "per_second": round(rate), "of_empty": round(rate / floor, 2)} for name, rate in rates]
    return shown


async def _rate(call: Callable[[], Awaitable[int]]) -> float:
    done = 0

    async def caller(until: float) -> None:
        nonlocal done
        while time.monotonic() < until:
            made = await call()
            done += made

    await call()
    begun = time.monotonic()
    await asyncio.gather(*(caller(begun + SECONDS) for _ in range(CALLERS)))
    return done / (time.monotonic() - begun)


def main() -> None:
    """Print one JSON line for each figure."""
    for line in (*in_process(), *asyncio.run(over_grpc())):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
