"""What a run's work was worth, over gRPC and on both databases; and that nothing of a forgotten run is left anywhere."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from sqlalchemy import MetaData, inspect, select

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import evidence_pb2 as evidence
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.storage.database import Database
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, WISH, Plane, plane

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
PATIENCE = 30.0


async def attempts_of(here: Plane, run_id: str, page_size: int = 100) -> list[evidence.Attempt]:
    found: list[evidence.Attempt] = []
    page = common.Page(page_size=page_size)
    while True:
        answer = await here.runs.GetEvidence(evidence.GetEvidenceRequest(run_id=run_id, page=page))
        found += answer.attempts
        if not answer.next_page_token:
            return found
        page = common.Page(page_size=page_size, page_token=answer.next_page_token)


async def test_the_evidence_of_a_run_has_claims_findings_and_verdicts(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, database_url=database_url) as here:
        given = handoff.AcceptanceCriterion(id="A1", statement="it is short", required=True)
        proofs = [runs.VerifyCommand(arguments=["make", "test"]), runs.VerifyCommand(arguments=["make", "lint"])]
        submitted = await here.submit(acceptance_criteria=[given], verify_commands=proofs)
        run = await here.ended(submitted.id, PATIENCE)
        assert run.state == runs.RUN_STATE_COMPLETE
        assert [item.id for item in run.acceptance_criteria] == ["V1", "V2", "A1"]
        (attempt,) = await attempts_of(here, run.id)
        assert (attempt.task_id, attempt.attempt, attempt.status) == ("T1", 1, "accepted")
        assert [claim.criterion_ids[0] for claim in attempt.work.claims] == ["V1", "V2", "A1"]
        assert [item.id for item in attempt.work.evidence] == ["E1"]
        assert [item.criterion_id for item in attempt.finding.criteria] == ["V1", "V2"]
        assert {claim.status for claim in attempt.finding.claims} == {work.CLAIM_STATUS_SUPPORTED}
        assert [(item.judge, item.verdict) for item in attempt.judgements] == [
            ("reviewer", "passed on"),
            ("verifier", "accepted"),
        ]


async def test_failed_attempts_say_why_in_their_agents_words(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, database_url=database_url) as here:
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_FAILURE)
        run = await here.asked((await here.submit()).id, PATIENCE)
        assert "the mock is configured to fail" in run.question.text
        assert "the mock is configured to fail" in run.tasks[0].rejection
        found = await attempts_of(here, run.id, page_size=1)
        assert [attempt.attempt for attempt in found] == [1, 2], "the same failure twice is enough"
        assert {attempt.status for attempt in found} == {"rejected"}
        for attempt in found:
            assert attempt.setbacks[0].reason == "the mock is configured to fail"
            assert attempt.setbacks[0].agent_id == "finger-executor"
            assert attempt.judgements[-1].reason.endswith("the mock is configured to fail")


async def test_one_bare_claim_among_five_hundred_is_named(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        run = await here.reached((await here.submit()).id, runs.RUN_STATE_CODER_EXEC)
        wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_CODE])
        poll = agent.PollRequest(request_id="p", agent_id="coder", wanted=wanted, wait=Duration(seconds=10))
        (lease,) = (await here.agents.Poll(poll)).leases
        criterion = lease.stage.handoff.acceptance_criteria[0].id
        claims = [
            handoff.Claim(id=f"C{number}", statement="done", criterion_ids=[criterion], evidence_ids=["E1"])
            for number in range(499)
        ]
        claims.append(handoff.Claim(id="BARE", statement="done", criterion_ids=[criterion]))
        proof = handoff.Evidence(id="E1", kind=handoff.EVIDENCE_KIND_COMMAND, command=["true"])
        made = work.StageResult(
            route=work.StageRoute(verdict="PASS"), coder_result=handoff.CoderResult(claims=claims, evidence=[proof])
        )
        key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
        done = agent.Completion(lease=key, stage=made)
        request = agent.CompleteRequest(request_id="c", agent_id="coder", completions=[done])
        assert (await here.agents.Complete(request)).outcomes[0].accepted

        async def rejection() -> str:
            return str((await here.get(run.id)).tasks[0].rejection)

        assert await eventually(rejection, PATIENCE) == "claims without evidence: BARE"


async def test_the_criteria_of_a_submit_must_have_ids_of_their_own(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        for ids in (("A1", "A1"), ("V1",)):
            criteria = [handoff.AcceptanceCriterion(id=name, statement="holds", required=True) for name in ids]
            request = pb.SubmitRequest(request_id=here.request_id(), message=WISH, acceptance_criteria=criteria)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await here.runs.Submit(request)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_list_says_from_where_to_watch_on(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await here.submit()
        await here.reached((await here.submit()).id, runs.RUN_STATE_CODER_EXEC)
        listed = await here.runs.ListRuns(pb.ListRunsRequest())
        third = await here.submit()
        request = pb.WatchChangesRequest(after_position=listed.newest_position)
        async for item in here.runs.WatchChanges(request):
            if item.transition.entity_id == third.id:
                assert item.transition.seq == 1
                return


async def test_a_stream_says_how_its_runs_stand_once_for_all_transitions_that_it_is_ahead_of(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run = await here.reached((await here.submit(labels={"team": "a"})).id, runs.RUN_STATE_CODER_EXEC)
        items = []
        async for item in here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id, with_line=True)):
            items.append(item)
            if item.transition.seq == run.seq:
                await here.runs.LabelRun(
                    pb.LabelRunRequest(request_id=here.request_id(), run_id=run.id, labels={"team": "b"})
                )
            if item.transition.event == "labelled":
                break
        reached = 0
        for item in items:
            assert item.HasField("line") == (item.transition.seq > reached)
            reached = max(reached, item.line.seq)
        assert (items[0].line.attention, items[0].line.tasks) == (runs.ATTENTION_STUCK, [])
        assert items[-1].line.labels == {"team": "b"}
        async for change in here.runs.WatchChanges(pb.WatchChangesRequest(with_line=True)):
            assert [line.id for line in change.lines] == [run.id]
            return


async def put(here: Plane, body: bytes, run_id: str) -> str:
    digest = hashlib.sha256(body).hexdigest()

    async def parts() -> AsyncIterator[artifact.PutRequest]:
        named = handoff.ArtifactRef(sha256=digest, size_bytes=len(body), media_type="text/plain")
        yield artifact.PutRequest(start=artifact.PutStart(artifact=named, run_id=run_id))
        yield artifact.PutRequest(chunk=body)

    await here.artifacts.Put(parts())
    return digest


def traces(url: str, name: str, needle: str) -> Iterator[str]:
    """Every table and column of a store in which the needle stands somewhere."""
    with closing(Database(url, name)) as database, database.reading.connect() as connection:
        metadata = MetaData()
        for table in inspect(connection).get_table_names():
            metadata.reflect(connection, only=[table])
            for row in connection.execute(select(metadata.tables[table])).mappings():
                yield from (
                    f"{name}.{table}.{key}: {value}"[:300] for key, value in row.items() if needle in str(value)
                )


def left_of(stores: StoreSettings, needle: str) -> list[str]:
    return [found for name in CONTEXTS for found in traces(stores.url_for(name), name, needle)]


async def test_nothing_of_a_forgotten_run_is_left_in_any_store(tmp_path: Path, database_url: str) -> None:
    url = "" if database_url.startswith("sqlite") else database_url
    stores = StoreSettings(data=tmp_path, database_url=url)
    async with plane(tmp_path, database_url=database_url) as here:
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_NO_EVIDENCE)
        gone = await here.asked((await here.submit("Fix the lexer, and never mind the cucumber")).id, PATIENCE)
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=gone.id))
        await here.behave(mock.MOCK_ROLE_EXECUTOR, mock.MOCK_OUTCOME_SILENT)
        live = await here.taken((await here.submit("Fix the parser, and never mind the carrot")).id)
        own, shared = await put(here, b"own", gone.id), await put(here, b"shared", gone.id)
        await put(here, b"shared", live.id)
    assert {found.split(".")[0] for found in left_of(stores, gone.id)} == set(CONTEXTS)
    async with plane(tmp_path, NOBODY, database_url, retention_days=1e-9) as here:

        async def is_gone() -> bool:
            return [run.id for run in (await here.runs.ListRuns(pb.ListRunsRequest())).runs] == [live.id]

        await eventually(is_gone, PATIENCE)
    assert [found for words in (gone.id, "cucumber", own) for found in left_of(stores, words)] == []
    assert {found.split(".")[1] for found in left_of(stores, shared)} == {
        "artifacts",
        "artifact_chunks",
        "artifact_uses",
    }
    assert {found.split(".")[0] for found in left_of(stores, live.id)} == set(CONTEXTS)
