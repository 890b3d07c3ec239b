"""Sends bad input, and judges what comes back."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random  # noqa: TID251 - a campaign can be repeated from its seed
from threading import Lock
from typing import Any

import grpc

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.workflow.v1 import model_pb2, plans_pb2
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.gateway.contract import METHODS, Method
from tests.helpers.limits import scaled
from tests.helpers.loopback import open_as
from tests.robustness.abuse import http
from tests.robustness.abuse.credentials import Shown, Wallet
from tests.robustness.abuse.leases import wrong_keys
from tests.robustness.abuse.shapes import Known, noise, paths, traps, valid_request
from tests.robustness.abuse.target import Target
from tests.scenarios.planes import WISH, clients

LANES = 8
HTTP_LANES = 4
PATIENCE_SECONDS = 30.0
STREAM_SECONDS = 0.3
FORBIDDEN = frozenset({"INTERNAL", "UNKNOWN", "DATA_LOSS", "CANCELLED"})
GENERIC = frozenset({"MALFORMED_MESSAGE", "INVALID_FIELD", "OVERLOADED", "REQUEST_ID_REUSED", "UNIMPLEMENTED"})
NOBODYS = frozenset({"UNAUTHENTICATED", "OVERLOADED"})
"""What a caller is told who shows nothing that counts, whatever it asks for."""
SEEN_ALIKE = 5
MOST_AGAIN = 5000
PARTS = 20
"""So many batches: who keeps all that was refused keeps gigabytes."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One request, as bytes, and what was done to it."""

    method: Method
    data: bytes
    what: str
    shown: Shown


@dataclass(slots=True)
class Findings:
    """What the campaign has seen."""

    codes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    undocumented: Counter[str] = field(default_factory=Counter)
    grown_bytes: int = 0
    grown_bytes_over_http: int = 0


async def prepare(target: Target) -> Known:
    """Something of each kind, so that requests can be about things that exist."""
    async with open_as(target.data, target.local_address) as channel:
        here = clients(channel)
        run = await here.submit(WISH)
        task = model_pb2.TaskSpec(task_id="T1", name="one")
        plan = plans_pb2.UpsertPlanRequest(request_id="plan", workflow_id="plan-1", tasks=[task])
        await here.workflow.UpsertPlan(plan)
        started = pipeline_pb2.StartPipelineRequest(request_id="start", pipeline_id="pipe-1", template="quick-dev")
        await here.pipeline.StartPipeline(started)
        await here.runs.GetRun(pb.GetRunRequest(run_id=run.id))
    return Known({"run_id": run.id, "workflow_id": "plan-1", "pipeline_id": "pipe-1", "task_id": "T1", "stage": "DEV"})


def shots(random: Random, known: Known, wallet: Wallet) -> Iterator[Shot]:
    """Every trap of every field of every RPC in some order, mixed with noise; then again with two traps at once."""
    for number in range(1_000_000):
        plan = [(method, path) for method in METHODS.values() for path in paths(method.fields) or ((),)]
        random.shuffle(plan)
        for method, path in plan:
            base = valid_request(method.fields, known, f"abuse-{random.getrandbits(60)}")
            name = ".".join(part.name for part in path)
            if not path or random.random() < 0.1:
                yield Shot(method, noise(base, random), "noise", wallet.some(method, random))
                continue
            for trap in traps(path, random, 3):
                other = traps(random.choice(paths(method.fields)), random, 1)[0] if number else b""
                what = f"{name} {trap[:40]!r} of {len(trap)}"
                yield Shot(method, base + trap + other, what, wallet.some(method, random))


class Campaign:
    """One target, so many requests."""

    def __init__(self, target: Target, seed: int) -> None:
        self._target = target
        self._random = Random(seed)
        self._wallet = Wallet(target.data)
        self.documented = documented()
        self.findings = Findings()
        self._counting = Lock()

    async def over_grpc(self, count: int) -> None:
        """Send all of it; send what was refused again, and see that nothing has changed by it."""
        known = await prepare(self._target)
        source = shots(self._random, known, self._wallet)
        address = self._target.local_address
        async with grpc.aio.insecure_channel(address) as channel:
            self.findings.problems += await wrong_keys(channel, self._wallet)
            sender = _Sender(channel, grpc.insecure_channel(address), self)
            again: list[Shot] = []
            before, most = 0, min(MOST_AGAIN, max(100, count // 4)) // PARTS
            for part in range(PARTS):
                refused = await self._send(sender, islice(source, count // PARTS))
                again += self._random.sample(refused, min(len(refused), most))
                before = before or (self._target.resident_bytes if part + 1 == PARTS // 10 else 0)
            self.findings.grown_bytes = self._target.resident_bytes - before
            await self._again(partial(self._send, sender), again)

    async def _send(self, sender: "_Sender", batch: Iterable[Shot]) -> list[Shot]:
        """Those that were refused."""
        waiting = iter(batch)
        refused: list[Shot] = []

        async def lane() -> None:
            refused.extend([shot for shot in waiting if await sender.send(shot) not in ("OK", "DEADLINE_EXCEEDED")])

        await asyncio.gather(*(lane() for _ in range(LANES)))
        return refused

    async def _again(self, send: Callable[[Sequence[Any]], Awaitable[list[Any]]], sample: Sequence[Any]) -> None:
        """What was refused is refused again, and leaves no trace; without those that are taken by now."""
        while True:
            await self._settled()
            before = self._target.content()
            still = await send(sample)
            after = self._target.content()
            if len(still) == len(sample):
                break
            sample = still
        if before != after:
            changed = {name: (before.get(name), after[name]) for name in after if before.get(name) != after[name]}
            self.findings.problems.append(f"refused requests have changed {changed}")

    async def _settled(self) -> None:
        """Wait until nothing moves by itself any more."""
        seen, alike = self._target.content(), 0
        while alike < SEEN_ALIKE:
            await asyncio.sleep(0.2)
            now = self._target.content()
            alike = alike + 1 if now == seen else 0
            seen = now

    async def over_http(self, count: int) -> None:
        """The same through the gateway, over a few connections; what was refused is sent again and changes nothing."""
        known = Known({"workflow_id": "plan-1", "pipeline_id": "pipe-1", "task_id": "T1", "stage": "DEV"})
        source = http.requests(self._random, known, self._wallet)
        first = await self._browsed([next(source) for _ in range(count // PARTS)])
        before = self._target.resident_bytes
        refused = first + await self._browsed([next(source) for _ in range(count - count // PARTS)])
        self.findings.grown_bytes_over_http = self._target.resident_bytes - before
        sample = self._random.sample(refused, min(len(refused), MOST_AGAIN, max(20, count // 4)))
        await self._again(self._browsed, sample)

    async def _browsed(self, sent: Sequence[http.Sent]) -> list[http.Sent]:
        """Those that were refused."""
        with ThreadPoolExecutor(HTTP_LANES) as threads:
            running = asyncio.get_running_loop()
            lanes = [sent[lane::HTTP_LANES] for lane in range(HTTP_LANES)]
            found = await asyncio.gather(*(running.run_in_executor(threads, self._browse, lane) for lane in lanes))
        return [one for lane in found for one in lane]

    def _browse(self, batch: Sequence[http.Sent]) -> list[http.Sent]:
        browser, refused = http.Browser(self._target.http_port), []
        for sent in batch:
            status, body = browser.send(sent)
            with self._counting:
                self.findings.statuses[status] += 1
                if status not in http.ALLOWED or (sent.is_worthless and status < 400):
                    asked = f"{sent.verb} {sent.path} {sent.headers} {(sent.body or b'')[:200]!r}"
                    self.findings.problems.append(f"{asked}: {status} {body[:300]!r}")
            refused += [sent] if status >= 400 else []
        browser.close()
        return refused


class _Sender:
    """Sends bytes as they are."""

    def __init__(self, channel: grpc.aio.Channel, plain: grpc.Channel, campaign: "Campaign") -> None:
        self._findings = campaign.findings
        self._documented = campaign.documented
        self._calls = {method.full_name: _open(channel, method, plain) for method in METHODS.values()}

    async def send(self, shot: Shot) -> str:
        """The code of the answer."""
        try:
            await _ask(self._calls[shot.method.full_name], shot)
            code = "OK"
            if shot.shown.is_worthless:
                self._findings.problems.append(f"{shot.method.full_name} is done for {shot.shown.what}")
        except grpc.RpcError as error:
            code = error.code().name
            self._judge(shot, error)
        self._findings.codes[code] += 1
        return code

    def _judge(self, shot: Shot, error: Any) -> None:
        code, name = error.code().name, shot.method.full_name
        waits = shot.method.streams_out or "wait" in shot.method.fields.fields_by_name
        if code in FORBIDDEN or (code == "DEADLINE_EXCEEDED" and not waits):
            self._findings.problems.append(f"{name} {shot.what} by {shot.shown.what}: {code} {error.details()}")
            return
        reason, allowed = str(refusal_from(error).reason), GENERIC | self._documented[name]
        if shot.shown.is_worthless:
            allowed = NOBODYS
        elif shot.shown.is_other_role:
            allowed |= {"PERMISSION_DENIED"}
        if reason not in allowed and code != "DEADLINE_EXCEEDED":
            self._findings.undocumented[f"{name} {reason} by {shot.shown.what}"] += 1


def _open(channel: grpc.aio.Channel, method: Method, plain: grpc.Channel) -> Any:
    """Uploads go over a blocking channel: where the server ends one early, grpc.aio tells of an error of its own instead."""
    if method.streams_in:
        return plain.stream_unary(method.full_name)
    return channel.unary_stream(method.full_name) if method.streams_out else channel.unary_unary(method.full_name)


async def _ask(call: Any, shot: Shot) -> None:
    waits, shown = "wait" in shot.method.fields.fields_by_name, shot.shown.metadata
    if shot.method.streams_in:
        parts = iter([shot.data, shot.data])
        await asyncio.to_thread(call, parts, timeout=scaled(PATIENCE_SECONDS), metadata=shown)
    elif shot.method.streams_out:
        async for _ in call(shot.data, timeout=STREAM_SECONDS, metadata=shown):
            return
    else:
        await call(shot.data, timeout=STREAM_SECONDS if waits else scaled(PATIENCE_SECONDS), metadata=shown)


def documented() -> dict[str, frozenset[str]]:
    """The reasons that each RPC's comment names after `Errors:`."""
    found: dict[str, frozenset[str]] = {}
    for path in (Path(__file__).parents[3] / "protos/pointsman").rglob("*.proto"):
        text = path.read_text()
        package = re.search(r"^package ([\w.]+);", text, re.MULTILINE)
        for service in re.finditer(r"^service (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            for comment, name in re.findall(r"((?:^ *//[^\n]*\n)+) *rpc (\w+)\(", service[2], re.MULTILINE):
                assert package is not None
                reasons = frozenset(re.findall(r"\b[A-Z][A-Z_]{4,}\b", comment.partition("Errors:")[2]))
                found[f"/{package[1]}.{service[1]}/{name}"] = reasons
    return found
