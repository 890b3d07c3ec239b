"""Reports of stages on SQLite and PostgreSQL, over gRPC: who reads them, and when they are gone."""

import grpc
from google.protobuf.duration_pb2 import Duration

from pointsman.api.pipeline.v1 import requests_pb2 as rq
from tests.contract.pipeline.pipelines import FAIL, new, refused, served

MISSING, PRECONDITION = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION


async def test_reports_are_read_only_by_the_stage_they_are_addressed_to(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start()).pipeline_id
        await client.complete(pipeline_id, "DEV#1")
        put = await client.stub.PutContext(
            rq.PutContextRequest(
                request_id=new(), pipeline_id=pipeline_id, delegation_id="REVIEW#1", agent_id="agent", body="C-1: 漏洞"
            )
        )
        assert put.handle == "context:REVIEW"
        await client.complete(pipeline_id, "REVIEW#1", FAIL)
        back = await client.complete(pipeline_id, "TEST#1", FAIL, report="H-1: red")
        (dev,) = back.next
        assert list(dev.context_handles) == ["context:MERGED"]
        assert "C-1" not in dev.directive + dev.node_context_json
        request = rq.GetContextRequest(pipeline_id=pipeline_id, handle="context:MERGED", delegation_id="DEV#2")
        merged = await client.stub.GetContext(request)
        assert merged.body == "# REVIEW\n\nC-1: 漏洞\n\n# TEST\n\nH-1: red"
        request.delegation_id = "DEV#1"
        async with refused("NOT_ADDRESSED", grpc.StatusCode.PERMISSION_DENIED):
            await client.stub.GetContext(request)
        reflection = await client.stub.GetReflection(rq.GetReflectionRequest(pipeline_id=pipeline_id, stage="REVIEW"))
        assert reflection.rounds == 1
        async with refused("NOT_FOUND", MISSING):
            await client.stub.GetReflection(rq.GetReflectionRequest(pipeline_id=pipeline_id, stage="DEV"))
        await client.check(pipeline_id)


async def test_of_two_that_failed_the_only_report_stands_under_its_stage_too(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start()).pipeline_id
        await client.complete(pipeline_id, "DEV#1")
        await client.complete(pipeline_id, "REVIEW#1", FAIL)
        (dev,) = (await client.complete(pipeline_id, "TEST#1", FAIL, report="H-1: red")).next
        assert list(dev.context_handles) == ["context:MERGED"]
        request = rq.GetContextRequest(pipeline_id=pipeline_id, handle="context:MERGED", delegation_id="DEV#2")
        assert (await client.stub.GetContext(request)).body == "# TEST\n\nH-1: red"


async def test_an_ended_pipeline_keeps_no_report_that_comes_too_late(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("fix")).pipeline_id
        await client.complete(pipeline_id, "DEV#1")
        await client.stub.CleanUp(rq.CleanUpRequest(request_id=new(), older_than=Duration()))
        async with refused("STATE_FORBIDS", PRECONDITION):
            await client.complete(pipeline_id, "DEV#1", report="too late")
        put = rq.PutContextRequest(request_id=new(), pipeline_id=pipeline_id, delegation_id="DEV#1", body="too late")
        async with refused("STATE_FORBIDS", PRECONDITION):
            await client.stub.PutContext(put)
