"""`pointsman route …` and `pointsman thinking`, each as a process of its own, beside a router that is one too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.api.router.v1 import decision_pb2, log_pb2, router_pb2_grpc
from pointsman.services.chassis.core.clock import SystemClock
from tests.scenarios.commands import Running, finished, running
from tests.scenarios.processes import Processes

PROJECT = (("pointsman-project", "local"),)
STRONG = "fix the bug in src/api/auth.ts and update tests"
pytestmark = pytest.mark.timeout(240)
MESSAGES = ("fix the build in src/", "drop the users table", "what is a monad?", "pwd")


def shown(*arguments: str, **environment: str) -> Any:
    code, printed = finished(*arguments, **environment)
    assert code == 0, printed
    return json.loads(printed)


def decide_all(service: Processes) -> None:
    async def run() -> None:
        async with service.channel("router") as channel:
            stub = router_pb2_grpc.RouterServiceStub(channel)
            for number, text in enumerate(MESSAGES):
                message = decision_pb2.Message(text=text)
                request = decision_pb2.ClassifyRequest(request_id=f"r{number}", message=message)
                await stub.Classify(request, metadata=PROJECT, wait_for_ready=True)

    asyncio.run(run())


def test_a_text_is_decided_and_a_file_measured_without_a_server(tmp_path: Path) -> None:
    decision = shown("route", "--json", "delete all files in src/", POINTSMAN_DATA=str(tmp_path / "data"))
    assert (decision["mode"], decision["debate"], decision["stakes"]) == ("ACTION", "planning", "high")
    assert [trigger["name"] for trigger in decision["triggers"]] == ["delete", "src/"]
    labelled = tmp_path / "messages.jsonl"
    items = [{"text": "fix the tests", "mode": "ACTION"}, {"text": "thanks", "mode": "ACTION", "lang": "en"}]
    labelled.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    measured = shown("route", "eval", str(labelled), "--json")
    assert (measured["accuracy"], measured["false_negative_rate"]) == (0.5, 0.5)
    assert [item["text"] for item in measured["wrong"]] == ["thanks"]


def test_decisions_are_counted_and_logged_over_the_death_of_the_service(tmp_path: Path) -> None:
    service = Processes(tmp_path, {})
    try:
        service.start("router")
        began = SystemClock().now().date()
        decide_all(service)
        service.kill("router")
        service.start("router")
        server = service.addresses["router"]
        counted = shown("route", "stats", "--json", "--server", server, POINTSMAN_DATA=str(tmp_path))
        days = {began, SystemClock().now().date()}
        logs = [
            finished("route", "log", "--day", f"{day}", "--server", server, POINTSMAN_DATA=str(tmp_path))
            for day in sorted(days)
        ]
        as_json = shown("route", "log", "--json", "--day", f"{began}", "--server", server, POINTSMAN_DATA=str(tmp_path))
        unwritable = finished("route", "log", "--write", "/dev/null", "--server", server, POINTSMAN_DATA=str(tmp_path))
    finally:
        service.stop()
    assert [counted[name] for name in ("decisions", "answers", "actions", "fast_paths")] == [4, 1, 3, 1], counted
    assert [code for code, _ in logs] == [0] * len(days)
    log = "".join(printed for _, printed in logs)
    assert (as_json["day"], as_json["markdown"]) == (f"{began}", logs[0][1])
    assert (unwritable[0], unwritable[1].count("\n")) == (2, 1)
    assert "--write" in unwritable[1]
    assert [text for text in MESSAGES if f'ROUTE "{text}"' not in log] == [], log


def decisions(service: Processes) -> list[decision_pb2.RoutingDecision]:
    """The decisions that a router has stored."""

    async def run() -> list[decision_pb2.RoutingDecision]:
        async with service.channel("router") as channel:
            stub = router_pb2_grpc.RouterServiceStub(channel)
            return list((await stub.ListDecisions(log_pb2.ListDecisionsRequest(), metadata=PROJECT)).decisions)

    return asyncio.run(run())


def overridden(service: Processes, request_id: str) -> tuple[str, bool]:
    """What a router says to a STRONG decision that is overridden: its code, and whether the decision binds."""

    async def run() -> tuple[str, bool]:
        async with service.channel("router") as channel:
            stub = router_pb2_grpc.RouterServiceStub(channel)
            message = decision_pb2.Message(text=STRONG, mode_override=decision_pb2.MODE_ANSWER)
            request = decision_pb2.ClassifyRequest(request_id=request_id, message=message)
            try:
                made = (await stub.Classify(request, metadata=PROJECT, wait_for_ready=True)).decision
            except grpc.aio.AioRpcError as error:
                return error.code().name, True
            return "OK", made.enforced

    return asyncio.run(run())


def test_a_server_with_hard_routing_off_only_advises_and_its_log_is_there_when_it_is_on_again(tmp_path: Path) -> None:
    answers: list[tuple[str, bool]] = []
    for value in ("true", "false", "true"):
        service = Processes(tmp_path, {"ENABLE_HARD_ROUTING": value})
        try:
            service.start("router")
            answers.append(overridden(service, f"request-{len(answers)}"))
            if len(answers) == 3:
                listed = decisions(service)
        finally:
            service.stop()
    assert answers == [("FAILED_PRECONDITION", True), ("OK", False), ("FAILED_PRECONDITION", True)]
    assert [(made.overridden, made.enforced) for made in listed] == [(True, False)]


def test_thinking_routes_with_exit_code_0_and_stops_with_1(tmp_path: Path) -> None:
    state = tmp_path / ".claude" / "state" / "thinking"
    state.mkdir(parents=True)
    options = ("thinking", "--json", "--dir", str(tmp_path), "--latch", str(tmp_path / "latch.lock"))
    data = {"POINTSMAN_DATA": str(tmp_path / "data")}
    assert shown(*options, **data)["routed_to"] == "thingking"
    (state / "blocker.latest.yaml").write_text("needs: []\nenv_check: {TOKEN: 'sk-abcdefgh12345678'}\n")
    code, printed = finished(*options, **data)
    assert (code, json.loads(printed)["error_code"]) == (1, "SECRET_LEAK")


def test_what_is_routed_is_recorded_by_the_control_plane_that_runs_and_on_its_store_after_it(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path / "data")}
    thinking = ("thinking", "--json", "--dir", str(tmp_path), "--latch", str(tmp_path / "latch.lock"))
    with running("up", "--port", "0", **data) as plane:
        plane.line_with(" up at ")
        assert shown("route", "--json", "fix the build", **data)["recorded"]
        assert shown(*thinking, **data)["recorded"]
        assert not shown("route", "--json", "--dry-run", "fix the build", **data)["recorded"]
        plane.kill()
    assert shown("route", "--json", "drop the users table", **data)["recorded"]
    assert shown(*thinking, **data)["recorded"]
    assert shown("route", "stats", "--json", **data)["decisions"] == 2
    code, printed = finished("audit", "--all", **data)
    assert code == 0, printed


def test_texts_that_are_routed_at_once_on_one_store_are_all_recorded(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path / "data")}
    assert finished("route", "policy", **data)[0] == 0
    processes = [Running(("route", "--json", f"fix bug {number}"), data) for number in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4, [process.lines for process in processes]
    assert all(json.loads("".join(process.lines))["recorded"] for process in processes)
    assert shown("route", "stats", "--json", **data)["decisions"] == 4
