"""PipelineService on SQLite and PostgreSQL, over gRPC."""

import asyncio
import json

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from sqlalchemy import select

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from tests.contract.pipeline.pipelines import FAIL, PASS, Client, new, refused, served
from tests.helpers.clock import FakeClock
from tests.helpers.eventually import eventually

INVALID, PRECONDITION = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
MISSING = grpc.StatusCode.NOT_FOUND


async def walk(client: Client, pipeline_id: str, first: list[sp.Delegation]) -> pb.CompleteStageResponse:
    """Complete every stage with PASS until the pipeline ends."""
    waiting, answer = list(first), pb.CompleteStageResponse()
    while waiting:
        answer = await client.complete(pipeline_id, waiting.pop(0).delegation_id)
        waiting += answer.next
    return answer


async def test_a_standard_pipeline_goes_through_six_stages_in_one_call_each(database_url: str) -> None:
    async with served(database_url) as client:
        started = await client.start("standard", pipeline_id="run/task/1", run_id="run")
        assert started.pipeline_id == "run/task/1"
        answer = await walk(client, "run/task/1", list(started.next))
        assert (answer.disposition, answer.state) == (pb.DISPOSITION_ENDED, sp.PIPELINE_STATE_COMPLETED)
        events = await client.check("run/task/1")
        assert events.count("STAGE_DELEGATED") == events.count("STAGE_COMPLETED") == 6
        assert events[-1] == "PIPELINE_COMPLETED"


async def test_a_transcript_is_as_good_as_a_typed_route(database_url: str) -> None:
    async with served(database_url) as client:
        started = await client.start("fix")
        transcript = 'done\n<!-- PIPELINE_ROUTE: {"verdict":"FAIL","route":"DEV","severity":"LOW","hint":"h"} -->'
        answer = await client.complete(started.pipeline_id, "DEV#1", None, transcript=transcript)
        assert answer.disposition == pb.DISPOSITION_REPEATED
        assert (answer.route.source, answer.route.hint) == (rt.ROUTE_SOURCE_MARKER, "h")
        assert [item.delegation_id for item in answer.next] == ["DEV#2"]


async def test_the_same_request_answers_the_same_and_another_body_is_refused(database_url: str) -> None:
    async with served(database_url) as client:
        request = pb.StartPipelineRequest(request_id="once", template="fix", auto_delegate=pb.AutoDelegate())
        first = await client.stub.StartPipeline(request)
        assert await client.stub.StartPipeline(request) == first
        done = await client.stub.CompleteStage(
            again := pb.CompleteStageRequest(
                request_id="done", pipeline_id=first.pipeline_id, delegation_id="DEV#1", route=PASS
            )
        )
        assert await client.stub.CompleteStage(again) == done
        again.route.hint = "other"
        async with refused("REQUEST_ID_REUSED", grpc.StatusCode.ALREADY_EXISTS):
            await client.stub.CompleteStage(again)
        assert (await client.check(first.pipeline_id)).count("STAGE_COMPLETED") == 1


async def test_a_barrier_times_out_without_any_client(database_url: str) -> None:
    clock = FakeClock()
    async with served(database_url, clock) as client:
        started = await client.start("standard", barrier_timeout=Duration(seconds=60))
        pipeline_id = started.pipeline_id
        for stage in ("PLAN", "ARCH", "DEV", "TEST"):
            await client.complete(pipeline_id, f"{stage}#1")
        shown = await client.get(pipeline_id)
        assert [(item.group, item.total, list(item.completed)) for item in shown.barriers] == [
            ("post-dev", 2, ["TEST"])
        ]
        clock.advance(seconds=61)

        async def pending() -> list[str]:
            return [item.stage for item in (await client.get(pipeline_id)).pending_delegations]

        assert await eventually(pending) == ["DOCS"]
        shown = await client.get(pipeline_id)
        assert [(risk.stage, risk.kind) for risk in shown.residual_risks] == [("REVIEW", sp.RISK_KIND_TIMED_OUT)]
        late = await client.complete(pipeline_id, "REVIEW#1", FAIL)
        assert late.disposition == pb.DISPOSITION_IGNORED
        assert "BARRIER_TIMED_OUT" in await client.check(pipeline_id)


async def test_an_own_dag_is_taken_or_refused_naming_the_node(database_url: str) -> None:
    async with served(database_url) as client:
        nodes = [
            sp.Node(stage="DEV", next=["REVIEW:a", "REVIEW:b"]),
            sp.Node(stage="REVIEW:a", on_fail="DEV", barrier_group="both", max_retries=0),
            sp.Node(stage="REVIEW:b", on_fail="DEV", barrier_group="both", max_retries=0),
            sp.Node(stage="ship", kind=sp.STAGE_KIND_DOCS, deps=["REVIEW:a", "REVIEW:b"]),
        ]
        started = await client.start(dag=sp.Dag(nodes=nodes))
        await client.complete(started.pipeline_id, "DEV#1")
        await client.complete(started.pipeline_id, "REVIEW:a#1", FAIL)
        forced = await client.complete(started.pipeline_id, "REVIEW:b#1")
        assert [item.stage for item in forced.next] == ["ship"]
        ended = await client.complete(started.pipeline_id, "ship#1")
        assert ended.state == sp.PIPELINE_STATE_COMPLETED_WITH_FAILURES
        assert [risk.stage for risk in ended.residual_risks] == ["REVIEW:a"]
        nodes[0].deps.append("ship")
        async with refused("INVALID_DAG", INVALID) as info:
            await client.start(dag=sp.Dag(nodes=nodes))
        assert info.metadata["problem"] == "is part of a cycle"
        async with refused("INVALID_FIELD", INVALID):
            await client.start("bogus")


async def test_strict_pipelines_wait_for_a_person(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("review-only", policy=sp.POLICY_STRICT)).pipeline_id
        for number in (1, 2, 3):
            answer = await client.complete(pipeline_id, f"REVIEW#{number}", None)
        assert (answer.disposition, answer.state) == (pb.DISPOSITION_ESCALATED, sp.PIPELINE_STATE_ESCALATED)
        async with refused("STATE_FORBIDS", PRECONDITION):
            await client.stub.DelegateStage(
                pb.DelegateStageRequest(request_id=new(), pipeline_id=pipeline_id, stage="REVIEW")
            )
        again = await client.stub.RestartFrom(
            rq.RestartFromRequest(request_id=new(), pipeline_id=pipeline_id, stage="REVIEW", reason="once more")
        )
        assert again.state == sp.PIPELINE_STATE_ACTIVE
        skipped = await client.stub.SkipStage(
            rq.SkipStageRequest(request_id=new(), pipeline_id=pipeline_id, stage="REVIEW")
        )
        assert skipped.state == sp.PIPELINE_STATE_COMPLETED
        await client.check(pipeline_id)


async def test_refusals_name_what_is_wrong(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start(pipeline_id="p1")).pipeline_id
        async with refused("ALREADY_EXISTS", grpc.StatusCode.ALREADY_EXISTS):
            await client.start(pipeline_id="p1")
        async with refused("NOT_YOUR_DELEGATION", PRECONDITION):
            await client.stub.CompleteStage(
                pb.CompleteStageRequest(
                    request_id=new(), pipeline_id=pipeline_id, delegation_id="DEV#1", agent_id="thief", route=PASS
                )
            )
        async with refused("STATE_FORBIDS", PRECONDITION):
            await client.complete(pipeline_id, "TEST#1")
        async with refused("NOT_FOUND", MISSING):
            await client.complete("p2", "DEV#1")
        async with refused("NOT_FOUND", MISSING):
            await client.complete("p2", "DEV#1", report="text")
        async with refused("NOT_FOUND", MISSING):
            await client.stub.GetPipeline(
                rq.GetPipelineRequest(pipeline_id="p1"), metadata=(("pointsman-project", "other"),)
            )
        await client.complete(pipeline_id, "DEV#1")
        await client.complete(pipeline_id, "REVIEW#1", FAIL)
        await client.complete(pipeline_id, "TEST#1", PASS, auto_delegate=None)
        async with refused("RETURN_PENDING", PRECONDITION) as info:
            await client.stub.DelegateStage(
                pb.DelegateStageRequest(request_id=new(), pipeline_id=pipeline_id, stage="TEST")
            )
        assert info.metadata["stages"] == "DEV"
        await client.stub.CancelPipeline(rq.CancelPipelineRequest(request_id=new(), pipeline_id=pipeline_id))
        async with refused("STATE_FORBIDS", PRECONDITION):
            await client.complete(pipeline_id, "DEV#1")


async def test_watchers_see_every_transition_once_and_the_end(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("fix")).pipeline_id

        async def watch(after_seq: int) -> list[tuple[int, str]]:
            request = rq.WatchPipelineRequest(pipeline_id=pipeline_id, after_seq=after_seq)
            stream = client.stub.WatchPipeline(request)
            return [(item.transition.seq, item.transition.event) async for item in stream]

        watching = asyncio.create_task(watch(0))
        await client.complete(pipeline_id, "DEV#1")
        seen = await watching
        assert [seq for seq, _ in seen] == list(range(1, len(seen) + 1))
        assert seen[-1][1] == "PIPELINE_COMPLETED"
        assert await watch(2) == seen[2:]
        assert await watch(len(seen)) == []
        together = rq.WatchPipelineRequest(pipeline_id=pipeline_id, batch_size=len(seen) - 1)
        sizes = [1 + len(item.more) async for item in client.stub.WatchPipeline(together)]
        assert sizes == [len(seen) - 1, 1]
        await client.stub.CleanUp(rq.CleanUpRequest(request_id=new(), older_than=Duration()))
        assert [event for _, event in await watch(len(seen))] == ["PIPELINE_CLEANED"]
        changes = client.stub.WatchChanges(rq.WatchChangesRequest(after_position=1))
        first = await anext(aiter(changes))
        assert (first.transition.position, first.transition.entity_id) == (2, pipeline_id)
        assert json.loads(first.transition.payload_json)["stage"] == "DEV"
        changes.cancel()


async def test_lists_are_filtered_and_paged(database_url: str) -> None:
    async with served(database_url) as client:
        ids = [(await client.start("fix", run_id="r" if number % 2 else "")).pipeline_id for number in range(5)]
        await client.complete(ids[0], "DEV#1")

        async def pages(**fields: object) -> list[str]:
            found: list[str] = []
            token = ""
            while True:
                request = rq.ListPipelinesRequest(**fields)  # type: ignore[arg-type]
                request.page.page_size, request.page.page_token = 2, token
                answer = await client.stub.ListPipelines(request)
                found += [item.pipeline_id for item in answer.pipelines]
                token = answer.next_page_token
                if not token:
                    return found

        assert await pages() == list(reversed(ids))
        assert await pages(run_id="r") == [ids[3], ids[1]]
        assert await pages(states=[sp.PIPELINE_STATE_COMPLETED]) == [ids[0]]
        bad = rq.ListPipelinesRequest()
        bad.page.page_token = "bogus"
        async with refused("INVALID_PAGE_TOKEN", INVALID):
            await client.stub.ListPipelines(bad)


async def test_state_files_go_in_and_come_out(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start()).pipeline_id
        await client.complete(pipeline_id, "DEV#1")
        await client.complete(pipeline_id, "TEST#1", FAIL)
        out = await client.stub.ExportState(rq.ExportStateRequest(pipeline_id=pipeline_id))
        imported = await client.stub.ImportState(
            rq.ImportStateRequest(request_id=new(), pipeline_id="copy", state_json=out.state_json)
        )
        assert (imported.pipeline_id, imported.migrated, imported.barriers_rebuilt) == ("copy", False, True)
        answer = await client.complete("copy", "REVIEW#1")
        assert answer.disposition == pb.DISPOSITION_RETURNED
        await client.check("copy")
        async with refused("INVALID_FIELD", INVALID):
            await client.stub.ImportState(rq.ImportStateRequest(request_id=new(), state_json='{"version":7}'))


async def test_clean_up_and_forgetting_leave_live_pipelines_alone(database_url: str) -> None:
    clock = FakeClock()
    async with served(database_url, clock) as client:
        for name in ("old", "live"):
            await client.start("fix", pipeline_id=name, run_id=name)
        await client.complete("old", "DEV#1", report="report")
        assert (await client.stub.CleanUp(rq.CleanUpRequest(request_id=new()))).pipelines == 0
        cleaned = await client.stub.CleanUp(rq.CleanUpRequest(request_id=new(), older_than=Duration()))
        assert cleaned.pipelines == 1
        assert (await client.check("old"))[-1] == "PIPELINE_CLEANED"
        assert (await client.stub.ForgetRun(rq.ForgetRunRequest(request_id=new(), run_id="live"))).pipelines == 0
        assert (await client.get("live")).pipeline_active
        request = rq.ForgetRunRequest(request_id=new(), run_id="old")
        assert (await client.stub.ForgetRun(request)).pipelines == 1
        assert (await client.stub.ForgetRun(request)).pipelines == 1
        async with refused("NOT_FOUND", MISSING):
            await client.get("old")


async def test_a_repeated_clean_up_answers_what_it_answered_first_and_cleans_nothing_more(database_url: str) -> None:
    clock = FakeClock()
    async with served(database_url, clock) as client:

        async def end_one() -> str:
            pipeline_id = (await client.start("fix")).pipeline_id
            await client.complete(pipeline_id, "DEV#1", report="report")
            return pipeline_id

        await end_one()
        request = rq.CleanUpRequest(request_id=new(), older_than=Duration())
        first = await client.stub.CleanUp(request)
        later = await end_one()
        clock.advance(seconds=60)
        assert first.pipelines == 1
        assert await client.stub.CleanUp(request) == first
        assert "PIPELINE_CLEANED" not in await client.check(later)
        other = rq.CleanUpRequest(request_id=request.request_id, older_than=Duration(seconds=1))
        async with refused("REQUEST_ID_REUSED", grpc.StatusCode.ALREADY_EXISTS):
            await client.stub.CleanUp(other)


async def test_ended_pipelines_are_cleaned_by_a_timer(database_url: str) -> None:
    clock = FakeClock()
    async with served(database_url, clock) as client:
        pipeline_id = (await client.start("fix")).pipeline_id
        await client.complete(pipeline_id, "DEV#1", report="report")
        clock.advance(days=3, seconds=1)

        async def cleaned() -> bool:
            return (await client.store.get("local", pipeline_id)).pipeline.head.cleaned

        assert await eventually(cleaned)
        assert (await client.check(pipeline_id))[-1] == "PIPELINE_CLEANED"


async def test_a_stage_has_a_row_once_something_has_happened_to_it(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("standard")).pipeline_id
        stages = client.store.store.metadata.tables["stages"]
        found = select(stages.c.stage).order_by(stages.c.stage)

        async def rows() -> list[str]:
            return await client.store.store.database.read(lambda connection: list(connection.execute(found).scalars()))

        assert await rows() == ["PLAN"]
        assert [stage.node.stage for stage in (await client.get(pipeline_id)).stages][-1] == "DOCS"
        await client.complete(pipeline_id, "PLAN#1")
        assert await rows() == ["ARCH", "PLAN"]
        await client.check(pipeline_id)


async def test_a_pipeline_shows_who_does_what_and_what_went_wrong(database_url: str) -> None:
    async with served(database_url) as client:
        agents = pb.AutoDelegate(agent_id="agent", agents={"TEST": "tester"})
        pipeline_id = (await client.start("quick-dev")).pipeline_id
        await client.complete(pipeline_id, "DEV#1", auto_delegate=agents)
        shown = await client.get(pipeline_id)
        assert (shown.pipeline_active, shown.phase) == (True, sp.PHASE_DELEGATING)
        active = {item.agent_id: item.stage for item in shown.active_delegations}
        assert active == {"agent": "REVIEW", "tester": "TEST"}
        await client.complete(pipeline_id, "REVIEW#1", None)
        await client.complete(pipeline_id, "REVIEW#2", FAIL)
        tested = pb.CompleteStageRequest(
            request_id=new(), pipeline_id=pipeline_id, delegation_id="TEST#1", agent_id="tester"
        )
        await client.stub.CompleteStage(tested)
        assert (await client.get(pipeline_id)).stages[2].crashes == 1
        await client.stub.SkipStage(rq.SkipStageRequest(request_id=new(), pipeline_id=pipeline_id, stage="TEST"))
        shown = await client.get(pipeline_id)
        assert (list(shown.pending_returns), shown.phase) == (["DEV"], sp.PHASE_RETRYING)
        assert [item.stage for item in shown.pending_delegations] == ["DEV"]
        review = shown.stages[1]
        assert [(past.round, past.severity) for past in review.retry_history] == [(1, rt.SEVERITY_HIGH)]
        assert (review.retries, review.has_reflection, review.status) == (1, True, sp.STAGE_STATUS_PENDING)
        await client.check(pipeline_id)


async def test_pure_questions_need_no_pipeline(database_url: str) -> None:
    async with served(database_url) as client:
        found = await client.stub.Classify(pb.ClassifyRequest(text="fix a typo"))
        assert (found.template, found.rule) == ("fix", "small-fix")
        templates = (await client.stub.ListTemplates(rq.ListTemplatesRequest())).templates
        assert [template.id for template in templates][:2] == ["full", "standard"]
        parsed = await client.stub.ParseRoute(
            rq.ParseRouteRequest(transcript='<!-- PIPELINE_ROUTE: {"verdict":"PASS","route":"NEXT"} -->')
        )
        assert parsed.found
        assert not (await client.stub.ParseRoute(rq.ParseRouteRequest(transcript="nothing"))).found


@pytest.mark.parametrize("finishers", [16])
async def test_a_barrier_is_resolved_once_whatever_the_number_of_finishers(database_url: str, finishers: int) -> None:
    async with served(database_url) as client:
        members = [f"REVIEW:{number}" for number in range(finishers)]
        nodes = [sp.Node(stage="DEV", next=members)]
        nodes += [sp.Node(stage=name, on_fail="DEV", barrier_group="wide", next=["DOCS"]) for name in members]
        pipeline_id = (await client.start(dag=sp.Dag(nodes=[*nodes, sp.Node(stage="DOCS")]))).pipeline_id
        await client.complete(pipeline_id, "DEV#1")
        answers = await asyncio.gather(*(client.complete(pipeline_id, f"{name}#1") for name in members))
        assert [answer.disposition for answer in answers].count(pb.DISPOSITION_ADVANCED) == 1
        assert (await client.check(pipeline_id)).count("BARRIER_RESOLVED") == 1


async def test_a_pipeline_is_read_as_of_one_moment(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("fix")).pipeline_id

        async def write() -> None:
            for number in range(1, 41):
                request = pb.DelegateStageRequest(
                    request_id=new(), pipeline_id=pipeline_id, stage="DEV", agent_id=f"a{number}", replace=True
                )
                await client.stub.DelegateStage(request)

        writing = asyncio.create_task(write())
        while not writing.done():
            stored = await client.store.get("local", pipeline_id)
            assert stored.seq == stored.pipeline.stages["DEV"].delegations + 1
        await writing
