"""Commands that change a run: its requirement, and answers with a confidence; each a process beside real services."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.assignment_pb2 import CAPABILITY_VERIFY
from pointsman.credentials.location import owner_of
from tests.scenarios.commands import finished, running
from tests.scenarios.planes import NOBODY, WISH, plane

pytestmark = pytest.mark.timeout(240)
EXECUTOR = mock.MOCK_ROLE_EXECUTOR


async def command(data: Path, *arguments: str) -> tuple[int, str]:
    """A command beside the plane on this data directory, while that goes on serving."""
    owner = owner_of(data / "orchestrator.lock")
    assert owner is not None
    return await asyncio.to_thread(finished, *arguments, "--server", owner.address)


async def test_a_requirement_of_a_run_is_changed_by_a_command(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        run = await here.taken((await here.submit()).id)
        code, printed = await command(tmp_path, "change", run.id, " ")
        assert (code, "the change is empty" in printed) == (2, True), printed
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SUCCESS)
        code, printed = await command(tmp_path, "change", run.id, "and keep the old flag", "--json")
        assert code == 0, printed
        assert json.loads(printed)["intent"].endswith("and keep the old flag")
        assert (await here.ended(run.id)).intent.endswith("and keep the old flag")
        assert "patch_applied" in await here.moves(run.id)
        code, printed = await command(tmp_path, "projects")
        assert (code, printed.splitlines()[-1].split()) == (0, ["*", "local", "0", "0", "0", "0", "1", "0"]), printed
        code, printed = await command(tmp_path, "change", run.id, "and once more")
        assert (code, "COMPLETE" in printed) == (1, True), printed
        code, printed = await command(tmp_path, "change", "run_nope", "and once more")
        assert (code, "run_nope" in printed) == (1, True), printed


async def test_an_answer_carries_how_sure_the_person_is(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_NO_EVIDENCE)
        run = await here.asked((await here.submit()).id)
        assert run.question.kind == runs.QUESTION_KIND_LOW_CONFIDENCE
        await here.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_SUCCESS)
        code, printed = await command(tmp_path, "answer", run.id, "clarified", "--text", "x", "--confidence", "0.3")
        assert code == 0, printed
        again = await here.asked(run.id)
        assert (again.question.kind, again.question.id != run.question.id) == (runs.QUESTION_KIND_LOW_CONFIDENCE, True)
        code, printed = await command(tmp_path, "answer", run.id, "clarified", "--text", WISH, "--confidence", "0.8")
        assert code == 0, printed
        assert (await here.ended(run.id)).state == runs.RUN_STATE_COMPLETE
        code, printed = await command(tmp_path, "answer", run.id, "accept", "--confidence", "0.8")
        assert (code, "--confidence goes with" in printed) == (2, True), printed


async def test_a_run_is_named_by_the_beginning_of_its_id_or_as_the_last(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        first = (await here.submit()).id
        await here.ended(first)
        code, printed = await command(tmp_path, "show", "last", "--json")
        assert (code, json.loads(printed)["id"]) == (0, first)
        for named in (first[:-2], first[4:-2]):
            code, printed = await command(tmp_path, "show", named, "--json")
            assert (code, json.loads(printed)["id"]) == (0, first), printed
        last = (await here.submit()).id
        await here.ended(last)
        code, printed = await command(tmp_path, "audit", "last")
        assert (code, printed.startswith(f"{last}: ")) == (0, True), printed
        code, printed = await command(tmp_path, "show", "run_")
        assert (code, "is the beginning of several runs" in printed) == (2, True), printed
        code, printed = await command(tmp_path, "runs")
        assert (code, printed.split()[0], printed.count("COMPLETE")) == (0, "RUN", 2), printed


async def test_a_run_is_done_again_by_a_command_and_shown_with_the_first_one(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        first = (await here.submit()).id
        await here.ended(first)
        code, printed = await command(tmp_path, "rerun", first, "--from", "wave:7", "--detach")
        assert (code, "the run had no wave 7: it had 1 (1: T1)" in printed) == (1, True), printed
        code, printed = await command(tmp_path, "rerun", first, "--from", "soon", "--detach")
        assert (code, "--from takes plan, wave:N (1 is the first) or task:T" in printed) == (2, True), printed
        code, printed = await command(tmp_path, "rerun", first, "--from", "task:T1", "--text", "keep it", "--detach")
        assert (code, f"(again of {first}, from task:T1 on)" in printed) == (0, True), printed
        code, printed = await command(tmp_path, "runs")
        assert (code, printed.count(f"(again of {first[:12]}) Fix")) == (0, 1), printed
        code, printed = await command(tmp_path, "show", first)
        assert (code, "story" in printed, "from task:T1" in printed, f"→ {first}" in printed) == (0, True, True, True)


async def test_selected_runs_are_cancelled_and_done_again_after_it_was_said_what_would_be_done(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        await here.behave(EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        first = await here.taken((await here.submit(labels={"team": "kiwi"})).id)
        chosen = ("--label", "team=kiwi")
        code, printed = await command(tmp_path, "cancel", *chosen)
        assert (code, f"would cancel  {first.id}" in printed, "--yes does it to 1" in printed) == (0, True, True), (
            printed
        )
        code, printed = await command(tmp_path, "cancel", first.id, *chosen)
        assert (code, "name one run, or select runs" in printed) == (2, True), printed
        code, printed = await command(tmp_path, "cancel", *chosen, "--yes", "--json")
        assert (code, [one["changed"] for one in json.loads(printed)]) == (0, [True]), printed
        code, printed = await command(tmp_path, "rerun", "--state", "cancelled", "--yes", "--json")
        assert (code, [one["run_id"] for one in json.loads(printed)]) == (0, [first.id]), printed
        code, printed = await command(tmp_path, "answer", "soon", *chosen)
        assert (code, "there is no answer 'soon'" in printed) == (2, True), printed
        code, printed = await command(tmp_path, "cancel", "--older", "soon")
        assert (code, "--older takes a number with m, h, d or w" in printed) == (2, True), printed


def test_what_up_started_is_stopped_by_down_and_only_that(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path)}
    code, printed = finished("down", **data)
    assert (code, "no control plane runs on" in printed) == (0, True), printed
    with running("up", "--port", "0", **data) as up:
        up.line_with(" up at ")
        code, printed = finished("down", "--json", **data)
        assert (code, json.loads(printed)) == (0, {"stopped": True, "pid": up.pid}), printed
        assert up.wait() == 0


def test_a_port_that_another_process_has_is_named_without_a_stack_trace(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, printed = finished("up", "--port", port, POINTSMAN_DATA=str(tmp_path))
    said = f"pointsman: cannot listen on 127.0.0.1:{port}; is another process there?"
    assert (code, said in printed, "Traceback" in printed) == (1, True, False), printed


async def test_a_run_is_started_on_a_repository_that_a_worker_offers_by_its_name(tmp_path: Path) -> None:
    offer = agent.OfferedRepository(id="6" * 40, name="shop", branch="main", head="9" * 40, verify=["make test"])
    wanted = agent.Wanted(capabilities=[CAPABILITY_VERIFY], repository_ids=[offer.id], repositories=[offer])
    async with plane(tmp_path, NOBODY) as here:
        request = agent.PollRequest(request_id="p", agent_id="vm-verifier", wanted=wanted)
        await here.agents.Poll(request)
        code, printed = await command(tmp_path, "run", WISH, "--repo", "shop", "--detach")
        assert (code, "shop, main at 999999999999" in printed) == (0, True), printed
        (run,) = (await here.runs.ListRuns(pb.ListRunsRequest())).runs
        assert (run.repository.id, run.repository.base_commit) == (offer.id, offer.head)
        assert [list(one.verify_command) for one in (await here.get(run.id)).acceptance_criteria] == [["make", "test"]]
        code, printed = await command(tmp_path, "run", WISH, "--repo", "shoop")
        assert (code, "Offered: shop (main at 999999999999" in printed) == (2, True), printed
