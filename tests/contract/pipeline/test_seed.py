"""Seed 004 as a caller of PipelineService sees it, on SQLite and PostgreSQL: one test for each rule, over gRPC."""

import json
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from tests.contract.pipeline.pipelines import FAIL, PASS, Client, new, refused, served


def failed(severity: str, hint: str = "") -> rt.Route:
    return rt.Route(verdict=rt.VERDICT_FAIL, severity=rt.Severity.Value(f"SEVERITY_{severity}"), hint=hint)


async def passed(client: Client, pipeline_id: str, *stages: str) -> pb.CompleteStageResponse:
    """Let the first delegation of each stage pass."""
    answer = pb.CompleteStageResponse()
    for stage in stages:
        answer = await client.complete(pipeline_id, f"{stage}#1")
    return answer


async def exported(client: Client, pipeline_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state file and the barrier file of a pipeline."""
    answer = await client.stub.ExportState(rq.ExportStateRequest(pipeline_id=pipeline_id))
    return json.loads(answer.state_json), json.loads(answer.barrier_json)


def stopping(answer: pb.CompleteStageResponse) -> tuple[bool, str, str]:
    return answer.stop.stop, answer.stop.reason, answer.stop.action


async def test_each_completion_says_whether_the_stage_stops_trying_and_why(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("ui-only")).pipeline_id
        await passed(client, pipeline_id, "DESIGN", "DEV")
        seen = []
        for number, severity in enumerate(("HIGH", "HIGH", "LOW", "HIGH"), 1):
            answer = await client.complete(pipeline_id, f"QA#{number}", failed(severity))
            seen.append((*stopping(answer), answer.stop.note))
            if answer.disposition == pb.DISPOSITION_RETURNED:
                await client.complete(pipeline_id, f"DEV#{number + 1}")
        assert seen == [
            (False, "retries-left", "RETRY", ""),
            (False, "convergence-stall-observed", "RETRY", "two rounds in a row failed with HIGH"),
            (False, "severity-improving", "RETRY", "better: HIGH became LOW"),
            (True, "max-retries-exhausted", "FORCE_NEXT", "3 of 3 retries are used up"),
        ]
        events = await client.check(pipeline_id)
        assert events.count("CONVERGENCE_STALL") == 1
        assert (await client.get(pipeline_id)).summary.state == sp.PIPELINE_STATE_COMPLETED_WITH_FAILURES


async def test_a_pass_stops_the_trying_by_the_quality_gate(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("review-only")).pipeline_id
        answer = await client.complete(pipeline_id, "REVIEW#1")
        assert stopping(answer) == (True, "quality-gate-passed", "NEXT")


async def test_a_quality_stage_that_names_no_route_three_times_in_a_row_passes_degraded(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("review-only")).pipeline_id
        for number in (1, 2):
            answer = await client.complete(pipeline_id, f"REVIEW#{number}", None, transcript="fine, I think")
            assert answer.disposition == pb.DISPOSITION_REPEATED
            assert (await client.get(pipeline_id)).stages[0].crashes == number
        answer = await client.complete(pipeline_id, "REVIEW#3", None, transcript="<!-- PIPELINE_ROUTE: {oops -->")
        assert (answer.route.verdict, answer.route.route) == (rt.VERDICT_PASS, rt.ROUTE_TARGET_NEXT)
        assert answer.route.degraded
        assert [warning.code for warning in answer.route.warnings][-1] == "crash-limit"
        assert [(risk.stage, risk.kind) for risk in answer.residual_risks] == [("REVIEW", sp.RISK_KIND_DEGRADED)]
        assert (await client.check(pipeline_id)).count("AGENT_CRASH") == 1


async def test_a_reflection_keeps_the_last_five_rounds_of_five_hundred_characters_each(database_url: str) -> None:
    async with served(database_url) as client:
        nodes = [
            sp.Node(stage="DEV", next=["REVIEW"]),
            sp.Node(stage="REVIEW", on_fail="DEV", max_retries=20),
        ]
        started = await client.start(
            dag=sp.Dag(nodes=nodes),
            reflections=[pb.EarlierReflection(stage="REVIEW", body=f"## Round 0\n{'x' * 8000}")],
        )
        pipeline_id = started.pipeline_id
        question = rq.GetReflectionRequest(pipeline_id=pipeline_id, stage="REVIEW")
        earlier = await client.stub.GetReflection(question)
        assert (earlier.rounds, len(earlier.body)) == (1, 500)
        for number in range(1, 9):
            await client.complete(pipeline_id, f"DEV#{number}")
            await client.complete(pipeline_id, f"REVIEW#{number}", failed("HIGH", "h" * 200))
        kept = await client.stub.GetReflection(question)
        rounds = kept.body.split("\n\n")
        assert [text.partition("\n")[0] for text in rounds] == [f"## Round {number}" for number in range(4, 9)]
        assert kept.rounds == 5
        assert len(kept.body) < 3000
        assert all(len(text) <= 500 for text in rounds)
        await client.complete(pipeline_id, "DEV#9")
        await client.complete(pipeline_id, "REVIEW#9")
        async with refused("NOT_FOUND", grpc.StatusCode.NOT_FOUND):
            await client.stub.GetReflection(question)


async def test_a_barrier_is_opened_with_its_total_waits_and_goes_on_when_all_have_passed(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("standard")).pipeline_id
        await passed(client, pipeline_id, "PLAN", "ARCH", "DEV")
        opened = (await exported(client, pipeline_id))[1]["post-dev"]
        assert opened.pop("startTime")
        assert opened == {
            "total": 2, "completed": [], "results": {}, "next": ["DOCS"], "timedOut": False, "resolved": False,
        }  # fmt: skip
        waiting = await passed(client, pipeline_id, "TEST")
        assert (waiting.disposition, list(waiting.next)) == (pb.DISPOSITION_WAIT, [])
        half = (await exported(client, pipeline_id))[1]["post-dev"]
        assert (half["completed"], half["results"]) == (["TEST"], {"TEST": {"verdict": "PASS"}})
        answer = await passed(client, pipeline_id, "REVIEW")
        assert answer.disposition == pb.DISPOSITION_ADVANCED
        assert [item.delegation_id for item in answer.next] == ["DOCS#1"]
        full = (await exported(client, pipeline_id))[1]["post-dev"]
        assert (full["completed"], full["resolved"]) == (["REVIEW", "TEST"], True)
        assert (await client.check(pipeline_id)).count("BARRIER_RESOLVED") == 1


async def test_a_barrier_with_a_fail_returns_with_the_worst_severity(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start()).pipeline_id
        await passed(client, pipeline_id, "DEV")
        await client.complete(pipeline_id, "REVIEW#1", failed("CRITICAL", "worst"), report="C-1")
        answer = await client.complete(pipeline_id, "TEST#1", failed("LOW", "least"), report="L-1")
        assert answer.disposition == pb.DISPOSITION_RETURNED
        (dev,) = answer.next
        assert json.loads(dev.node_context_json)["hint"] == "worst"
        rows = await client.store.journal.page("local", ("pipeline", pipeline_id), 0, 1000)
        (resolved,) = [json.loads(row.payload) for row in rows if row.event == "BARRIER_RESOLVED"]
        assert (resolved["verdict"], resolved["severity"]) == ("FAIL", "CRITICAL")


@pytest.mark.parametrize("damaged", ["", "{broken", "[]", '{"a":1,"a":2}'])
async def test_a_corrupt_barrier_file_is_rebuilt_from_the_stages_and_the_pipeline_goes_on(
    database_url: str, damaged: str
) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("standard")).pipeline_id
        await passed(client, pipeline_id, "PLAN", "ARCH", "DEV", "REVIEW")
        state, _ = await exported(client, pipeline_id)
        request = rq.ImportStateRequest(
            request_id=new(), pipeline_id="copy", state_json=json.dumps(state), barrier_json=damaged
        )
        assert (await client.stub.ImportState(request)).barriers_rebuilt
        (barrier,) = (await client.get("copy")).barriers
        assert (barrier.group, barrier.total, list(barrier.completed)) == ("post-dev", 2, ["REVIEW"])
        answer = await client.complete("copy", "TEST#1")
        assert [item.stage for item in answer.next] == ["DOCS"]
        await client.check("copy")


async def test_a_return_across_a_barrier_resets_its_stages_and_its_counts(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("full")).pipeline_id
        await passed(client, pipeline_id, "PLAN", "ARCH", "DESIGN", "DEV", "REVIEW", "TEST", "QA")
        assert (await exported(client, pipeline_id))[1]["post-dev"]["resolved"]
        answer = await client.complete(pipeline_id, "E2E#1", FAIL)
        assert [item.delegation_id for item in answer.next] == ["DEV#2"]
        status = {stage.node.stage: stage.status for stage in (await client.get(pipeline_id)).stages}
        assert [status[name] for name in ("REVIEW", "TEST", "QA", "E2E")] == [sp.STAGE_STATUS_PENDING] * 4
        _, barriers = await exported(client, pipeline_id)
        for group in ("post-dev", "post-qa"):
            assert [barriers[group][key] for key in ("completed", "results", "resolved")] == [[], {}, False]
        await client.complete(pipeline_id, "DEV#2")
        again = await client.complete(pipeline_id, "REVIEW#2")
        assert again.disposition == pb.DISPOSITION_WAIT, "the first round's TEST does not count for the second"


async def nodes_of(client: Client, template: str) -> dict[str, Any]:
    listed = (await client.stub.ListTemplates(rq.ListTemplatesRequest())).templates
    (found,) = [known for known in listed if known.id == template]
    return {node.stage: MessageToDict(node, preserving_proto_field_name=True) for node in found.nodes}


async def test_the_standard_dag_has_its_barrier_and_its_way_back(database_url: str) -> None:
    async with served(database_url) as client:
        nodes = await nodes_of(client, "standard")
        assert list(nodes) == ["PLAN", "ARCH", "DEV", "REVIEW", "TEST", "DOCS"]
        for stage in ("REVIEW", "TEST"):
            known = nodes[stage]
            assert (known["barrier_group"], known["on_fail"], known["max_retries"]) == ("post-dev", "DEV", 3)
            assert known["next"] == ["DOCS"]
        assert nodes["DOCS"]["deps"] == ["REVIEW", "TEST"]


async def test_the_fix_dag_is_one_stage_without_barrier_and_way_back(database_url: str) -> None:
    async with served(database_url) as client:
        nodes = await nodes_of(client, "fix")
        assert list(nodes) == ["DEV"]
        assert not {"on_fail", "barrier_group", "next", "deps"} & nodes["DEV"].keys()
        pipeline_id = (await client.start("fix")).pipeline_id
        state, barriers = await exported(client, pipeline_id)
        assert (state["dag"]["DEV"]["onFail"], state["dag"]["DEV"]["barrier"], barriers) == (None, None, {})
        answer = await passed(client, pipeline_id, "DEV")
        assert answer.state == sp.PIPELINE_STATE_COMPLETED


async def test_the_test_first_dag_runs_in_sequence_and_its_verification_returns_to_dev(database_url: str) -> None:
    async with served(database_url) as client:
        nodes = await nodes_of(client, "test-first")
        assert list(nodes) == ["TEST:write", "DEV", "TEST:verify"]
        assert not any("barrier_group" in node for node in nodes.values())
        started = await client.start("test-first")
        assert [item.delegation_id for item in started.next] == ["TEST:write#1"]
        await passed(client, started.pipeline_id, "TEST:write", "DEV")
        answer = await client.complete(started.pipeline_id, "TEST:verify#1", FAIL)
        assert [item.delegation_id for item in answer.next] == ["DEV#2"]
        assert (await client.get(started.pipeline_id)).stages[0].status == sp.STAGE_STATUS_PASSED


V3 = {
    "version": 3,
    "sessionId": "s-1",
    "classification": {"pipelineId": "quick-dev"},
    "dag": {"DEV": {"deps": []}, "REVIEW": {"deps": ["DEV"]}, "TEST": {"deps": ["REVIEW"]}},
    "stages": {"DEV": {"status": "completed", "verdict": "PASS"}, "REVIEW": {"status": "active"}},
    "retries": {"REVIEW": 1},
    "enforced": True,
    "meta": {"initialized": True, "cancelled": False},
}


async def imported(client: Client, state: dict[str, Any], **fields: str) -> rq.ImportStateResponse:
    request = rq.ImportStateRequest(request_id=new(), state_json=json.dumps(state), **fields)
    return await client.stub.ImportState(request)


async def test_a_state_file_of_version_3_comes_out_as_version_4(database_url: str) -> None:
    async with served(database_url) as client:
        answer = await imported(client, V3)
        assert (answer.pipeline_id, answer.migrated) == ("s-1", True)
        state, _ = await exported(client, "s-1")
        assert (state["version"], state["pipelineActive"], state["activeStages"]) == (4, True, ["REVIEW"])
        assert (state["crashes"], state["retries"]) == ({}, {"REVIEW": 1})
        assert {"enforced", "cancelled"}.isdisjoint(state.keys() | state["meta"].keys())
        assert "pendingRetry" in state
        stage = (await client.get("s-1")).stages[1]
        assert (stage.node.on_fail, stage.node.barrier_group) == ("DEV", "post-dev")


async def test_a_state_file_of_version_4_comes_out_as_it_went_in(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("standard", env={"language": "python"})).pipeline_id
        await passed(client, pipeline_id, "PLAN", "ARCH", "DEV")
        await client.complete(pipeline_id, "REVIEW#1", FAIL, report="R")
        state, barriers = await exported(client, pipeline_id)
        state["dashboard"] = {"port": 3000}
        answer = await imported(client, state, pipeline_id="copy", barrier_json=json.dumps(barriers))
        assert (answer.migrated, answer.barriers_rebuilt) == (False, False)
        again, barriers_again = await exported(client, "copy")
        for content in (state, again):
            del content["meta"]["createdAt"], content["sessionId"]
        assert (again, barriers_again) == (state, barriers)


async def test_a_classified_task_starts_an_active_pipeline_with_its_barrier_and_none_is_not_active(
    database_url: str,
) -> None:
    async with served(database_url) as client:
        texts = {
            "implement OAuth login": ("standard", "feature"),
            "fix the login bug": ("fix", "small-fix"),
            "make it faster [pipeline:full]": ("full", "explicit"),
        }
        for text, expected in texts.items():
            found = await client.stub.Classify(pb.ClassifyRequest(text=text))
            assert (found.template, found.rule) == expected
            shown = await client.get((await client.start(found.template)).pipeline_id)
            assert shown.pipeline_active
            grouped = {stage.node.barrier_group for stage in shown.stages} - {""}
            assert ("post-dev" in grouped) is (found.template != "fix")
        found = await client.stub.Classify(pb.ClassifyRequest(text="what is a login?", answer_only=True))
        assert (found.template, found.rule) == ("none", "answer")
        shown = await client.get((await client.start("none")).pipeline_id)
        assert (shown.pipeline_active, shown.phase) == (False, sp.PHASE_IDLE)
        async with refused("INVALID_FIELD", grpc.StatusCode.INVALID_ARGUMENT):
            await client.stub.Classify(pb.ClassifyRequest(text="[pipeline:bogus] x"))


async def test_a_context_file_is_kept_with_its_stage_and_named_to_the_next(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start("standard")).pipeline_id
        said = 'ok\n<!-- PIPELINE_ROUTE: {"verdict":"PASS","route":"NEXT","context_file":"/r/plan.md"} -->'
        answer = await client.complete(pipeline_id, "PLAN#1", None, transcript=said, report="the plan")
        state, _ = await exported(client, pipeline_id)
        assert state["stages"]["PLAN"]["contextFile"] == "/r/plan.md"
        (arch,) = answer.next
        assert json.loads(arch.node_context_json)["context_files"] == ["context:PLAN"]
        request = rq.GetContextRequest(pipeline_id=pipeline_id, handle="context:PLAN", delegation_id="ARCH#1")
        assert (await client.stub.GetContext(request)).body == "the plan"


async def test_what_an_agent_is_told_is_short_and_never_holds_the_report(database_url: str) -> None:
    async with served(database_url) as client:
        pipeline_id = (await client.start(env={"language": "python"})).pipeline_id
        await passed(client, pipeline_id, "DEV")
        findings = "C-1 CRITICAL: SQL injection\nH-1 HIGH: no test\n" * 500
        await client.complete(pipeline_id, "REVIEW#1", failed("CRITICAL", "C-1 " * 50), report=findings)
        (dev,) = (await client.complete(pipeline_id, "TEST#1", PASS)).next
        assert dev.directive.startswith("REVIEW FAIL -> DEV, round 1.")
        assert not [word for word in ("C-1", "H-1", "CRITICAL", "injection") if word in dev.directive]
        assert len(dev.directive) / 4 < 200
        assert len(dev.node_context_json) / 4 < 500
        context = json.loads(dev.node_context_json)
        assert context["node"] == {
            "stage": "DEV", "prev": [], "next": ["REVIEW", "TEST"], "onFail": None, "barrier": None,
        }  # fmt: skip
        assert context["env"] == {"language": "python"}
        assert context["retryContext"] == {
            "round": 1,
            "failedStage": "REVIEW",
            "reflectionFile": "reflection:REVIEW",
            "hint": "Read the reflection before you change anything.",
        }
        review = (await client.complete(pipeline_id, "DEV#2")).next[0]
        assert json.loads(review.node_context_json)["node"]["barrier"] == {
            "group": "post-dev", "total": 2, "siblings": ["TEST"],
        }  # fmt: skip
