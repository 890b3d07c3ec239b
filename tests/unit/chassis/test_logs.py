"""Log lines: JSON or for people, with their trace and their run, without secrets."""

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from pointsman.api.orchestrator.v1 import agent_pb2, orchestrator_pb2
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.chassis.rpc.status import internal_error
from pointsman.services.chassis.telemetry.context import current_request, current_traceparent
from pointsman.services.chassis.telemetry.logs import LIBRARY_LOGGERS, configure_logs, run_of
from tests.helpers.canaries import canaries, seen_in

OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    traceparent, request = current_traceparent.set(""), current_request.set(None)
    yield
    current_traceparent.reset(traceparent)
    current_request.reset(request)
    structlog.reset_defaults()
    for name in LIBRARY_LOGGERS:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def test_a_line_names_the_trace_and_the_run_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=True)
    current_traceparent.set(OUTER)
    current_request.set(orchestrator_pb2.GetRunRequest(run_id="run_1"))
    structlog.get_logger().info("looked", number=7)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["number"], line["level"]) == ("looked", 7, "info")
    assert (line["trace_id"], line["span_id"], line["run_id"]) == (OUTER[3:35], OUTER[36:52], "run_1")


def test_a_line_for_people_names_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=False)
    current_traceparent.set(OUTER)
    current_request.set(PendingEffect("run_1", 1, 0, "tell", "{}", "local", OUTER, 0, 1))
    structlog.get_logger().warning("delivery_refused")
    shown = capsys.readouterr().err
    assert "delivery_refused" in shown
    assert f"trace_id={OUTER[3:35]}" in shown
    assert "run_id=run_1" in shown


def test_a_line_outside_of_any_call_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=True)
    structlog.get_logger().info("serving")
    assert json.loads(capsys.readouterr().err).keys() == {"event", "level", "timestamp"}


def test_the_run_of_an_agents_hand_in_is_in_its_assignments_id() -> None:
    request = agent_pb2.CompleteRequest()
    request.completions.add().lease.assignment_id = "run_1.a2"
    assert run_of(request) == "run_1"
    assert run_of(agent_pb2.PollRequest()) == run_of(None) == run_of(object()) == ""


def test_secrets_are_masked_in_every_part_of_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=True)
    for text, _ in canaries().values():
        structlog.get_logger().info("told", plain=text, listed=[text], named={"inner": text}, other=ValueError(text))
        internal_error(RuntimeError(f"cannot use {text}"), "e1")
        logging.getLogger("opentelemetry.exporter").error("could not send %s", text)
        logging.getLogger("asyncio").error("never retrieved", exc_info=ValueError(text))
    shown = capsys.readouterr().err
    assert shown.count("RuntimeError") >= len(canaries())
    assert shown.count('"library"') >= len(canaries())
    assert shown.count("never retrieved") == len(canaries())
    assert seen_in(shown) == []


def test_a_secret_that_is_cut_by_the_end_of_a_long_text_is_masked_too(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=True)
    for text, core in canaries().values():
        for limit in (200, 300, 500):
            filler = "-" * (limit - text.index(core) - len(core) + 4)
            structlog.get_logger().error("loop_failed", detail=str(RuntimeError(f"{filler} {text}")))
            logging.getLogger("opentelemetry.exporter").error("%s %s", filler, text)
    shown = capsys.readouterr().err
    assert seen_in(shown) == []
    assert all(len(json.loads(line).get("detail", "")) <= 500 for line in shown.splitlines())


def test_a_secret_is_masked_also_as_the_name_of_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(as_json=True)
    for text, _ in canaries().values():
        structlog.get_logger().info("told", named={text: 1})
    assert seen_in(capsys.readouterr().err) == []


async def test_a_loop_that_fails_over_a_long_text_does_not_log_half_a_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(as_json=True)
    for text, core in canaries().values():
        failed = asyncio.Event()

        async def fail(told: str = f"{'-' * (200 - text.index(core) - len(core) + 1)}{text}") -> None:
            failed.set()  # noqa: B023
            raise RuntimeError(told)

        loops = Loops()
        loops.start("poisoned", fail)
        await failed.wait()
        await loops.stop()
    shown = capsys.readouterr().err
    assert shown.count("loop_failed") == len(canaries())
    assert seen_in(shown) == []
