"""The orchestrator over gRPC, on both databases: lists, pages, questions, agents, artifacts, errors."""

import asyncio
import hashlib
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import machine_pb2
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.router.v1 import log_pb2
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.orchestrator.config import MockSettings
from pointsman.services.orchestrator.domain.table import TABLE
from pointsman.services.orchestrator.servicer import ArtifactServicer
from pointsman.services.orchestrator.store.artifacts import CHUNK_BYTES
from tests.contract.orchestrator.orchestrators import caller, orchestrator
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.scenarios.planes import NOBODY, WISH, Plane, plane

RESEARCH = agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH])
CODE = agent.Wanted(capabilities=[assignments.CAPABILITY_CODE])


LONGEST_POLL_SECONDS = 50


async def reason_of(call: Any) -> Reason:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return refusal_from(caught.value).reason


async def poll(here: Plane, agent_id: str, wanted: agent.Wanted, seconds: int = 10) -> agent.Lease:
    patience = Duration(seconds=min(LONGEST_POLL_SECONDS, int(scaled(seconds))))
    request = agent.PollRequest(request_id=here.request_id(), agent_id=agent_id, wanted=wanted, wait=patience)
    answer = await here.agents.Poll(request)
    assert len(answer.leases) == 1
    lease: agent.Lease = answer.leases[0]
    return lease


def key(lease: agent.Lease) -> agent.LeaseKey:
    return agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)


async def complete(here: Plane, agent_id: str, *completions: agent.Completion) -> list[agent.CompletionOutcome]:
    request = agent.CompleteRequest(request_id=here.request_id(), agent_id=agent_id, completions=completions)
    return list((await here.agents.Complete(request)).outcomes)


def good_report(lease: agent.Lease) -> agent.Completion:
    report = handoff.ResearchReport(
        agent_id="ada",
        slot=lease.research.slot.id,
        summary_md=handoff.Document(text="# Found"),
        memory_jsonl=handoff.Document(text="{}"),
        confidence=0.8,
    )
    return agent.Completion(lease=key(lease), research=report, usage=runs.Usage(tokens=11, cost_micros=3))


async def test_the_machine_on_the_wire_is_the_table(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        machine = await here.runs.GetMachine(machine_pb2.GetMachineRequest())
        assert len(machine.states) == 26
        assert len(machine.transitions) == len(TABLE.rows)
        assert machine.initial == runs.RUN_STATE_BOOT


async def test_runs_are_listed_newest_first_filtered_and_paged(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        submitted = [
            (await here.submit(labels={"team": "a" if n % 2 else "b"}, session_id=f"s{n}")).id for n in range(5)
        ]
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=submitted[0]))
        found: list[str] = []
        page = common.Page(page_size=2)
        while True:
            answer = await here.runs.ListRuns(pb.ListRunsRequest(page=page))
            found += [run.id for run in answer.runs]
            if not answer.next_page_token:
                break
            page = common.Page(page_size=2, page_token=answer.next_page_token)
        assert found == submitted[::-1]
        cancelled = await here.runs.ListRuns(pb.ListRunsRequest(states=[runs.RUN_STATE_CANCELLED]))
        assert [run.id for run in cancelled.runs] == submitted[:1]
        labelled = await here.runs.ListRuns(pb.ListRunsRequest(labels={"team": "a"}))
        assert [run.id for run in labelled.runs] == [submitted[3], submitted[1]]
        wanted = answer.runs[-1].id
        for length, expected in ((len(wanted), 1), (len("run_"), 5)):
            listed = await here.runs.ListRuns(pb.ListRunsRequest(id_prefix=wanted[:length]))
            assert (len(listed.runs), wanted in {run.id for run in listed.runs}) == (expected, True)
        assert not (await here.runs.ListRuns(pb.ListRunsRequest(id_prefix="runX"))).runs
        of_session = await here.runs.ListRuns(pb.ListRunsRequest(session_id="s2"))
        assert [run.id for run in of_session.runs] == [submitted[2]]
        later = pb.ListRunsRequest(created_after=answer.runs[-1].created_at)
        assert len((await here.runs.ListRuns(later)).runs) == 5
        earlier = pb.ListRunsRequest(created_before=answer.runs[-1].created_at)
        assert len((await here.runs.ListRuns(earlier)).runs) == 0


async def test_a_token_from_elsewhere_is_refused(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        page = common.Page(page_token="elsewhere")
        assert await reason_of(here.runs.ListRuns(pb.ListRunsRequest(page=page))) is Reason.INVALID_PAGE_TOKEN


async def test_a_run_of_another_project_is_not_found(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        run = await here.submit()
        foreign = (("pointsman-project", "theirs"),)
        for call in (
            here.runs.GetRun(pb.GetRunRequest(run_id=run.id), metadata=foreign),
            here.runs.CancelRun(pb.CancelRunRequest(request_id="x", run_id=run.id), metadata=foreign),
            here.runs.GetDelivery(pb.GetDeliveryRequest(run_id=run.id), metadata=foreign),
            here.runs.GetRun(pb.GetRunRequest(run_id="run_missing")),
        ):
            assert await reason_of(call) is Reason.NOT_FOUND


async def test_too_many_live_runs_turn_a_new_one_away(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY, max_live_runs=2) as here:
        first = await here.submit()
        await here.submit()
        request = pb.SubmitRequest(request_id="third", message=WISH)
        assert await reason_of(here.runs.Submit(request)) is Reason.OVERLOADED
        await here.runs.CancelRun(pb.CancelRunRequest(request_id="c", run_id=first.id))

        async def is_taken() -> bool:
            try:
                answer: pb.SubmitResponse = await here.runs.Submit(request)
            except grpc.aio.AioRpcError:
                return False
            return answer.HasField("run")

        await eventually(is_taken)


async def test_of_a_crowd_no_more_runs_are_taken_in_than_may_live_and_the_rest_costs_the_router_nothing(
    tmp_path: Path,
) -> None:
    async with plane(tmp_path, NOBODY, max_live_runs=4) as here:
        requests = [pb.SubmitRequest(request_id=f"crowd-{n}", message=f"{WISH} {n}") for n in range(40)]
        answers = await asyncio.gather(*(here.runs.Submit(request) for request in requests), return_exceptions=True)
        taken = [answer for answer in answers if isinstance(answer, pb.SubmitResponse)]
        live = (await here.runs.ListRuns(pb.ListRunsRequest())).runs
        router: Any = RouterServiceStub(here.channel)
        decided = (await router.ListDecisions(log_pb2.ListDecisionsRequest())).decisions
        assert 1 <= len(taken) == len(live) == len(decided) <= 4


async def test_an_agent_in_any_language_can_take_a_run_through_its_stages(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        waiting = asyncio.create_task(poll(here, "ada", RESEARCH))
        await asyncio.sleep(0)
        run = await here.submit(research_expected=1)
        lease = await waiting
        assert lease.assignment.purpose == assignments.PURPOSE_RESEARCH
        assert lease.assignment.traceparent.split("-")[1] == run.traceparent.split("-")[1]
        assert lease.research.intent == WISH
        outcomes = await complete(here, "ada", good_report(lease))
        assert [outcome.accepted for outcome in outcomes] == [True]
        lease = await poll(here, "bob", CODE)
        assert lease.stage.stage == "DEV"
        bundle = lease.stage.handoff
        assert bundle.research_bundle[0].summary_md.text == "# Found"
        assert bundle.master_task.intent == WISH
        assert bundle.detail_design.design_md.text.startswith("# Design from the plan")
        shown = await here.get(run.id)
        assert (shown.usage.tokens, shown.usage.cost_micros) == (11, 3)
        assert shown.waiting_for.kind == runs.WAIT_KIND_AGENT


async def test_a_malformed_result_names_its_field_and_counts_as_an_attempt(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        waiting = asyncio.create_task(poll(here, "ada", RESEARCH))
        await asyncio.sleep(0)
        run = await here.submit()
        lease = await waiting
        broken = good_report(lease)
        broken.research.memory_jsonl.text = "{no json"
        (outcome,) = await complete(here, "ada", broken)
        assert (outcome.accepted, outcome.field) == (False, "research.memory_jsonl")
        assert outcome.reason == common.ERROR_REASON_INVALID_FIELD
        again = await poll(here, "ada", RESEARCH)
        assert (again.assignment.id, again.assignment.attempt) == (lease.assignment.id, 2)
        (late,) = await complete(here, "ada", good_report(lease))
        assert late.reason == common.ERROR_REASON_LEASE_LOST
        listed = await here.agents.ListAssignments(agent.ListAssignmentsRequest(run_id=run.id))
        assert [item.state for item in listed.assignments] == [assignments.ASSIGNMENT_STATE_LEASED]


async def test_a_failure_is_offered_to_the_next_agent_and_agents_are_listed(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        waiting = asyncio.create_task(poll(here, "ada", RESEARCH))
        await asyncio.sleep(0)
        await here.submit()
        lease = await waiting
        listed = (await here.agents.ListAgents(agent.ListAgentsRequest())).agents
        assert [(item.id, item.state) for item in listed] == [("ada", agent.AGENT_STATE_WORKING)]
        failure = agent.Failure(lease=key(lease), error="out of tokens")
        await here.agents.Fail(agent.FailRequest(request_id="f", agent_id="ada", failures=[failure]))
        again = await poll(here, "bob", RESEARCH)
        assert again.epoch == lease.epoch + 1
        beat = await here.agents.Heartbeat(agent.HeartbeatRequest(request_id="h", agent_id="ada", leases=[key(lease)]))
        assert list(beat.lost_assignment_ids) == [lease.assignment.id]
        listed = (await here.agents.ListAgents(agent.ListAgentsRequest())).agents
        assert [(item.id, item.state) for item in listed] == [
            ("ada", agent.AGENT_STATE_IDLE),
            ("bob", agent.AGENT_STATE_WORKING),
        ]


async def test_contradictory_work_is_refused_with_its_field(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        await here.submit()
        lease = await poll(here, "bob", CODE)
        claim = handoff.Claim(id="K1", statement="done", criterion_ids=["T1-C1"], evidence_ids=["E9"])
        stage = work.StageResult(
            route=work.StageRoute(verdict="PASS"), coder_result=handoff.CoderResult(claims=[claim])
        )
        (outcome,) = await complete(here, "bob", agent.Completion(lease=key(lease), stage=stage))
        assert outcome.field == "stage.coder_result.claims.evidence_ids"


async def test_an_answer_is_checked_against_its_question(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        started = await here.submit()
        request = pb.AnswerRequest(request_id="a", run_id=started.id, question_id="q1", answer=runs.ANSWER_KIND_ACCEPT)
        assert await reason_of(here.runs.Answer(request)) is Reason.STATE_FORBIDS


async def send(body: bytes, ref: handoff.ArtifactRef, size: int = 1_000_000) -> AsyncIterator[artifact.PutRequest]:
    yield artifact.PutRequest(start=artifact.PutStart(artifact=ref))
    for start in range(0, len(body), size):
        yield artifact.PutRequest(chunk=body[start : start + size])


def reference(body: bytes) -> handoff.ArtifactRef:
    return handoff.ArtifactRef(sha256=hashlib.sha256(body).hexdigest(), size_bytes=len(body), media_type="x/y")


async def test_an_artifact_comes_back_as_it_was_put(tmp_path: Path, database_url: str) -> None:
    body = bytes(range(256)) * 10_000
    async with plane(tmp_path, NOBODY, database_url) as here:
        for _ in range(2):
            await here.artifacts.Put(send(body, reference(body)))
        request = artifact.GetRequest(sha256=reference(body).sha256)
        parts = [part.chunk async for part in here.artifacts.Get(request)]
        assert b"".join(parts) == body


async def test_an_artifact_that_is_put_again_in_other_pieces_stays_what_it_was(
    tmp_path: Path, database_url: str
) -> None:
    body = bytes(range(256)) * 10_000
    async with plane(tmp_path, NOBODY, database_url) as here:
        for size in (1_000_000, 300_000, 1_048_576):
            await here.artifacts.Put(send(body, reference(body), size))
            request = artifact.GetRequest(sha256=reference(body).sha256)
            assert b"".join([part.chunk async for part in here.artifacts.Get(request)]) == body


async def test_a_body_on_its_way_is_held_in_memory_only_as_far_as_it_is_short(tmp_path: Path) -> None:
    body = bytes(range(256)) * (32 * 4096)
    tracemalloc.start()
    try:
        async with orchestrator(f"sqlite:///{tmp_path}/o.db") as store:
            servicer = ArtifactServicer(store, len(body))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            await servicer.Put(send(body, reference(body), 256 * 1024), caller())
            assert tracemalloc.get_traced_memory()[1] - before < 8 * CHUNK_BYTES < len(body)
            assert await store.artifacts.chunk("local", reference(body).sha256, 31) == body[-CHUNK_BYTES:]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "wrong",
    [
        handoff.ArtifactRef(sha256="0" * 64, size_bytes=5, media_type="x/y"),
        handoff.ArtifactRef(sha256=hashlib.sha256(b"hello").hexdigest(), size_bytes=6, media_type="x/y"),
        handoff.ArtifactRef(sha256=hashlib.sha256(b"hello").hexdigest(), size_bytes=4, media_type="x/y"),
    ],
    ids=["digest", "too short", "too long"],
)
async def test_an_artifact_that_is_not_what_it_says_is_refused(tmp_path: Path, wrong: handoff.ArtifactRef) -> None:
    async with plane(tmp_path, NOBODY) as here:
        assert await reason_of(here.artifacts.Put(send(b"hello", wrong))) is Reason.INVALID_FIELD


async def test_an_artifact_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            [part async for part in here.artifacts.Get(artifact.GetRequest(sha256="0" * 64))]
        assert refusal_from(caught.value).reason is Reason.NOT_FOUND


async def test_the_mock_policy_is_offered_only_where_it_is_switched_on(tmp_path: Path) -> None:
    async with plane(tmp_path / "off", MockSettings()) as here:
        assert await reason_of(here.mocks.GetMockPolicy(mock.GetMockPolicyRequest())) is Reason.UNIMPLEMENTED
    async with plane(tmp_path / "on") as here:
        await here.behave(mock.MOCK_ROLE_REVIEWER, mock.MOCK_OUTCOME_FAILURE)
        policies = (await here.mocks.GetMockPolicy(mock.GetMockPolicyRequest())).policies
        assert [policy.outcome for policy in policies] == [
            mock.MOCK_OUTCOME_SUCCESS,
            mock.MOCK_OUTCOME_FAILURE,
            mock.MOCK_OUTCOME_SUCCESS,
        ]
        assert all(policy.mocked for policy in policies)


async def test_a_bad_outcome_or_role_names_the_field(tmp_path: Path) -> None:
    async with plane(tmp_path) as here:
        request = mock.SetMockPolicyRequest(request_id="r", role=mock.MOCK_ROLE_ALL)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await here.mocks.SetMockPolicy(request)
        assert refusal_from(caught.value).metadata["field"] == "outcome"


async def test_a_run_on_postgresql_completes_too(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, database_url=database_url) as here:
        assert (await here.ended((await here.submit()).id)).state == runs.RUN_STATE_COMPLETE
