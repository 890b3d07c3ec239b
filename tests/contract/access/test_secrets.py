"""Secrets that come in through any text field of any RPC never leave in a log line, a span, a metric or an error."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from prometheus_client import generate_latest

from pointsman._shared.redaction import KINDS, MASK, redact
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.services.chassis.telemetry.logs import LIBRARY_LOGGERS, configure_logs
from tests.contract.wire_samples import files, sample
from tests.helpers.canaries import all_seen, canaries, seen_in
from tests.helpers.collector import collector
from tests.helpers.databases import break_stores
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.scenarios.planes import WISH, Plane, plane

CALL_SECONDS = 5.0
CALLERS = 16
GROUPS = 4
NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def test_every_kind_is_masked_wherever_it_stands() -> None:
    assert len(KINDS) >= 20
    for kind, (text, core) in canaries().items():
        for around in ("{}", "see {} there", '{{"value": "{}"}}', "'{}',", "({})"):
            assert core not in redact(around.format(text)), kind


@pytest.mark.parametrize(
    "text", ["", "the counter 'c1' is gone", "page_token: must not be empty", "run_01m7h776q1ykev"]
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text) == text


@pytest.mark.timeout(180)
async def test_no_secret_leaves_by_another_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    errors: list[str] = []
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    configure_logs(as_json=True, level="DEBUG")
    try:
        async with collector() as kept:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
            async with plane(tmp_path) as here:
                count = await _call_all(here, poisoned(in_small_groups()), errors)
                run = await _poisoned_run(here)
                await _poisoned_names(here)
                await eventually(lambda: _arrived(kept, run), 60)
                break_stores(tmp_path)
                await _call_all(here, poisoned(all_together()), errors)
    finally:
        structlog.reset_defaults()
        for name in LIBRARY_LOGGERS:
            logging.getLogger(name).handlers.clear()
            logging.getLogger(name).propagate = True
    shown = capfd.readouterr()
    lines = [json.loads(line) for line in shown.err.splitlines() if line.startswith("{")]
    places = {
        "errors": errors,
        "logs": (shown.out, shown.err),
        "spans": [str(span) for span in kept.spans],
        "metrics": (generate_latest().decode(),),
    }
    assert all_seen(places) == []
    assert count > 15 * 300
    assert len(errors) > 4000
    assert len(kept.spans) > 100
    masked = [error for error in errors if "internal error" in error]
    told = {error_id for error in masked for error_id in re.findall(r"internal error (\w+);", error)}
    assert told <= {line["error_id"] for line in lines if line["event"] == "internal_error"}, (
        "what is masked is told by the log"
    )
    assert {error.split(".")[2] for error in masked} == {"orchestrator", "pipeline", "router", "workflow"}
    assert {line["event"] for line in lines} >= {"internal_error", "loop_failed"}
    assert any(MASK in str(line) for line in lines)
    assert "[parameters:" not in shown.err, "what a statement was given is content"


async def _call_all(here: Plane, waiting: Iterator[tuple[MethodDescriptor, Message]], errors: list[str]) -> int:
    """Make every call, some at a time; how many there were."""

    async def work() -> int:
        return sum([await _call(here, *made, errors) for made in waiting])

    return sum(await asyncio.gather(*(work() for _ in range(CALLERS))))


def in_small_groups() -> list[str]:
    """Texts that hold every kind: those that could be a name alone, since only so they get past a field of names."""
    alone = [text for text, _ in canaries().values() if NAME.fullmatch(text)]
    others = [text for text, _ in canaries().values() if not NAME.fullmatch(text)]
    return alone + [" ".join(others[start::GROUPS]) for start in range(GROUPS)]


def all_together() -> list[str]:
    """Texts with every kind in each, behind more and more: what is cut to a length is cut elsewhere in each."""
    everything = " ".join(text for text, _ in canaries().values())
    names = [text for text, _ in canaries().values() if NAME.fullmatch(text) and len(text) < 40]
    return [f"{'-' * length} {everything}" for length in (0, 77, 154)] + names


def poisoned(texts: Sequence[str]) -> Iterator[tuple[MethodDescriptor, Message]]:
    """For every text field of every RPC's request, and for every text: a request that has it there."""
    for file in files():
        for service in file.services_by_name.values():
            for method in service.methods:
                for path in _text_fields(method.input_type):
                    for text in texts:
                        yield method, _poisoned(method, path, text)


def _poisoned(method: MethodDescriptor, path: tuple[str, ...], text: str) -> Message:
    request = sample(method.input_type)
    _set(request, path, text)
    if "wait" in method.input_type.fields_by_name:
        request.ClearField("wait")
    return request


def _text_fields(message: Any, depth: int = 0) -> Iterator[tuple[str, ...]]:
    for field in message.fields:
        if field.type == FieldDescriptor.TYPE_STRING:
            yield (field.name,)
        elif field.type == FieldDescriptor.TYPE_MESSAGE and depth < 4:
            if field.message_type.GetOptions().map_entry:
                yield (field.name,)
            elif not field.message_type.full_name.startswith("google."):
                for path in _text_fields(field.message_type, depth + 1):
                    yield (field.name, *path)


def _set(message: Any, path: tuple[str, ...], text: str) -> None:
    """Put a text into a field, into the first of a list, or into a map."""
    name, *rest = path
    held, field = getattr(message, name), message.DESCRIPTOR.fields_by_name[name]
    if rest:
        _set(held if not field.is_repeated else (held[0] if held else held.add()), tuple(rest), text)
    elif field.message_type is not None:
        held.clear()
        if field.message_type.fields_by_name["value"].type == FieldDescriptor.TYPE_STRING:
            held[text[:60]] = text
    elif field.is_repeated:
        held[:] = [text]
    else:
        setattr(message, name, text)


async def _call(here: Plane, method: MethodDescriptor, request: Message, errors: list[str]) -> int:
    name = f"/{method.containing_service.full_name}/{method.name}"
    write, read = type(request).SerializeToString, GetMessageClass(method.output_type).FromString
    answer: Any
    try:
        if method.client_streaming and method.server_streaming:
            async for answer in here.channel.stream_stream(name, write, read)(
                _one(request), timeout=scaled(CALL_SECONDS)
            ):
                errors += [f"{name} {one.status!r}" for one in answer.answers if one.status]
        elif method.client_streaming:
            await here.channel.stream_unary(name, write, read)(_one(request), timeout=scaled(CALL_SECONDS))
        elif method.server_streaming:
            async for _ in here.channel.unary_stream(name, write, read)(request, timeout=0.2):
                break
        else:
            await here.channel.unary_unary(name, write, read)(request, timeout=scaled(CALL_SECONDS))
    except grpc.aio.AioRpcError as error:
        details = [value for _, value in error.trailing_metadata() or ()]
        errors.append(f"{name} {error.details()} {details!r}")
    return 1


async def _one(request: Message) -> AsyncIterator[Message]:
    yield request


async def _poisoned_run(here: Plane) -> str:
    """A run whose message, session and labels are full of secrets, to its end or to its first question."""
    everything = " ".join(text for text, _ in canaries().values())
    labels = {f"label{number}": text[:60] for number, (text, _) in enumerate(canaries().values()) if number < 8}
    request = pb.SubmitRequest(request_id="poisoned", message=f"{WISH} {everything}", labels=labels)
    run_id = str((await here.runs.Submit(request)).run.id)

    async def stands() -> bool:
        run = await here.get(run_id)
        return run.HasField("question") or run.end_reason != "" or run.state in (24, 25, 26)

    await eventually(stands, 60)
    return run_id


async def _poisoned_names(here: Plane) -> None:
    """Workflows that are called by secrets, as far as a name may look like one."""
    for number, (text, _) in enumerate(canaries().values()):
        if NAME.fullmatch(text):
            await here.workflow.UpsertPlan(
                plans.UpsertPlanRequest(request_id=f"named-{number}", workflow_id=text, title=text, intake_text=text)
            )


async def _arrived(kept: Any, run_id: str) -> bool:
    """The run's spans, and those of the workflow that was named last, whose name is masked."""
    shown = [str(span) for span in kept.spans]
    return any(run_id in span for span in shown) and any(MASK in span for span in shown)


def test_the_eye_that_looks_for_leaks_sees_them() -> None:
    for kind, (text, _) in canaries().items():
        assert kind in seen_in(f"a log line with {text} in it")
    assert seen_in("nothing") == []
