"""The same change for selected runs over gRPC, on both databases: first said, then done, each once, page by page."""

from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.errors import Reason
from tests.contract.orchestrator.test_service import reason_of
from tests.scenarios.planes import NOBODY, Plane, plane

KIWI = pb.RunSelection(labels={"team": "kiwi"})


async def submitted(here: Plane, count: int = 3) -> list[str]:
    """Runs of one team that wait for agents, and one of another team."""
    found = [(await here.submit(f"Fix the test in src/a{n}.py", labels={"team": "kiwi"})).id for n in range(count)]
    await here.submit("Fix the test in src/other.py", labels={"team": "emu"})
    return found


async def change(here: Plane, selection: pb.RunSelection, **terms: object) -> list[pb.ChangedRun]:
    """Every page of a change."""
    request = pb.ChangeRunsRequest(request_id=str(terms.pop("request_id", here.request_id())), selection=selection)
    request.MergeFrom(pb.ChangeRunsRequest(**terms))  # type: ignore[arg-type]
    found: list[pb.ChangedRun] = []
    while True:
        page = await here.runs.ChangeRuns(request)
        found += page.runs
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def test_a_dry_run_changes_nothing_and_the_doing_is_done_once_however_often_it_is_begun(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        kiwis = await submitted(here)
        said = await change(here, KIWI, cancel=pb.CancelEach(reason="enough"), dry_run=True, limit=2)
        assert {one.run_id for one in said} == set(kiwis)
        assert not any(one.changed or one.refusal for one in said)
        assert {(await here.get(run_id)).state for run_id in kiwis} != {runs.RUN_STATE_CANCELLED}
        for limit in (1, 100):
            done = await change(here, KIWI, request_id="once", cancel=pb.CancelEach(reason="enough"), limit=limit)
            assert {one.run_id for one in done} == set(kiwis)
        assert {(await here.get(run_id)).state for run_id in kiwis} == {runs.RUN_STATE_CANCELLED}
        assert {one.refusal for one in done} == {"it has ended already"}
        left = await here.runs.ListRuns(pb.ListRunsRequest(labels={"team": "emu"}))
        assert left.runs[0].state != runs.RUN_STATE_CANCELLED


async def test_selected_runs_are_done_again_once_for_a_request_and_the_new_ones_are_not(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        kiwis = await submitted(here, 2)
        await change(here, KIWI, cancel=pb.CancelEach())
        late = Timestamp()
        last = [(await here.get(run_id)).created_at.ToNanoseconds() for run_id in kiwis]
        late.FromNanoseconds(max(last) + 1000)
        selection = pb.RunSelection(labels={"team": "kiwi"}, created_before=late)
        first = await change(here, selection, request_id="again", rerun=pb.RerunEach(text="and more"))
        again = await change(here, selection, request_id="again", rerun=pb.RerunEach(text="and more"))
        assert {one.run_id for one in first} == set(kiwis)
        assert sorted(one.new_run_id for one in first) == sorted(one.new_run_id for one in again)
        assert all(one.new_run_id for one in first)
        assert len((await here.runs.ListRuns(pb.ListRunsRequest(labels={"team": "kiwi"}))).runs) == 4
        late.FromNanoseconds(max(last) + 3600 * 10**9)
        live = await change(here, pb.RunSelection(text="src/other.py", created_before=late), rerun=pb.RerunEach())
        assert [one.refusal for one in live] == ["it has not ended"]


async def test_a_question_is_answered_where_it_takes_the_answer_and_the_others_are_named(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        asked = await here.submit(review_plan=True, labels={"team": "kiwi"})
        await here.asked(asked.id)
        silent = await here.submit("Fix the test in src/b.py", labels={"team": "kiwi"})
        wrong = await change(here, KIWI, answer=pb.AnswerEach(answer=runs.ANSWER_KIND_RAISE))
        reasons = {one.run_id: one.refusal for one in wrong}
        assert "its question takes PROCEED" in reasons[asked.id]
        assert reasons[silent.id] == "it asks nothing"
        done = await change(here, KIWI, answer=pb.AnswerEach(answer=runs.ANSWER_KIND_PROCEED))
        assert {one.run_id: one.changed for one in done} == {asked.id: True, silent.id: False}
        assert not (await here.get(asked.id)).HasField("question")


async def test_a_change_without_a_selection_a_change_or_an_end_is_refused(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        for request in (
            pb.ChangeRunsRequest(request_id="a", cancel=pb.CancelEach()),
            pb.ChangeRunsRequest(request_id="b", selection=KIWI),
            pb.ChangeRunsRequest(request_id="c", selection=KIWI, rerun=pb.RerunEach()),
        ):
            assert await reason_of(here.runs.ChangeRuns(request)) == Reason.INVALID_FIELD
