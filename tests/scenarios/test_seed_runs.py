"""Seed 002 as its users see it: four real services, agents over gRPC, questions answered by RPC."""

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import agent_pb2 as agents
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.orchestrator.config import MockSettings
from pointsman.worker import Job
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, WISH, Plane, plane
from tests.scenarios.scripted import (
    PASS,
    Handler,
    coding,
    crew,
    criticising,
    path_of,
    planning,
    released,
    researching,
    reviewing,
)

RETRY = handoff.ReviewDecision(
    decision=handoff.REVIEW_VERDICT_RETRY,
    review_level=handoff.REVIEW_LEVEL_EXECUTOR,
    rejected_claims=["K1"],
    feedback=[handoff.Feedback(key="slow", statement="too slow")],
)
REPLAN = handoff.ReviewDecision(
    decision=handoff.REVIEW_VERDICT_REPLAN,
    review_level=handoff.REVIEW_LEVEL_EXECUTOR,
    feedback=[handoff.Feedback(key="idea", statement="wrong idea")],
)
RISKY_PASS = handoff.ReviewDecision(
    decision=handoff.REVIEW_VERDICT_PASS,
    review_level=handoff.REVIEW_LEVEL_EXECUTOR,
    residual_risks=[handoff.ResidualRisk(key="load", statement="not tried under load")],
)


async def purposes_of(here: Plane, run_id: str) -> set[str]:
    listed = (await here.agents.ListAssignments(agents.ListAssignmentsRequest(run_id=run_id))).assignments
    return {assignments.Purpose.Name(item.purpose).removeprefix("PURPOSE_") for item in listed}


async def test_a_claim_without_evidence_is_rejected_by_its_id_and_no_reviewer_is_asked(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here, crew(here, coder=coding("K7", "K9"), reviewer=reviewing(PASS)):
        run = await here.asked((await here.submit()).id)
        assert run.tasks[0].rejection == "claims without evidence: K7, K9"
        path = await path_of(here, run.id)
        assert ("REVIEW_ACCEPT", "reject_or_retry", "CODER_HANDOFF") in path
        assert "REVIEW" not in await purposes_of(here, run.id)
        assert run.question.kind == runs.QUESTION_KIND_LOW_CONFIDENCE
        assert "claims without evidence: K7, K9" in run.question.text


async def test_claims_with_evidence_are_judged_by_the_reviewer(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here, crew(here, coder=coding(), reviewer=reviewing(PASS)):
        run = await here.ended((await here.submit()).id)
        assert run.state == runs.RUN_STATE_COMPLETE
        assert "REVIEW" in await purposes_of(here, run.id)


async def test_a_review_sends_the_work_back_has_it_planned_anew_or_passes_it_with_its_risks(tmp_path: Path) -> None:
    reviewer = reviewing(RETRY, REPLAN, RISKY_PASS)
    async with plane(tmp_path, NOBODY) as here, crew(here, planner=planning(), coder=coding(), reviewer=reviewer):
        run = await here.ended((await here.submit()).id)
        assert run.state == runs.RUN_STATE_COMPLETE, run
        path = await path_of(here, run.id)
        judged = [step for step in path if step[0] in ("REVIEW_ACCEPT", "REPLAN_PATCH")]
        assert judged == [
            ("REVIEW_ACCEPT", "reject_or_retry", "CODER_HANDOFF"),
            ("REVIEW_ACCEPT", "requirement_changed_or_blocked", "REPLAN_PATCH"),
            ("REPLAN_PATCH", "patch_applied", "PLAN_BASELINE"),
            ("REVIEW_ACCEPT", "pass", "COMPLETE"),
        ]
        delivered = await here.delivery(run.id)
        assert [item.task_id for item in delivered.deliverables] == ["T2"]
        assert [file.path for file in delivered.deliverables[0].changed_files] == ["a.py"]
        assert "not tried under load" in [item.statement for item in delivered.open_risks]
        assert "look at the risk 'load'" in delivered.next_steps
        results = [(item.name, item.outcome) for item in delivered.stage_results]
        assert results == [(source, event) for source, event, _ in path[1:]]


async def test_risks_that_reviewers_of_two_tasks_call_by_the_same_key_are_both_delivered(tmp_path: Path) -> None:
    def review(job: Job) -> Message:
        decision = handoff.ReviewDecision()
        decision.CopyFrom(PASS)
        statement = f"{job.work.handoff.master_task.task_id} was not tried under load"
        decision.residual_risks.add(key="load", statement=statement)
        return decision

    roles = {"planner": planning(tasks=2), "coder": coding(), "reviewer": review}
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run = await here.ended((await here.submit()).id)
        delivered = await here.delivery(run.id)
    assert {(one.task_id, one.statement) for one in delivered.open_risks} == {
        ("T1", "T1 was not tried under load"),
        ("T2", "T2 was not tried under load"),
    }
    assert sorted(one.key for one in delivered.open_risks) == ["load", "load-2"]


async def test_each_role_is_given_what_the_contract_says_and_knows_who_found_it_out(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def keeping(role: str, handler: Handler) -> Handler:
        def handle(job: Job) -> Message:
            seen.setdefault(role, job.work)
            return handler(job)

        return handle

    roles = {
        "planner": planning(slots=("style", "tests")),
        "researcher": researching(),
        "coder": keeping("coder", coding()),
        "reviewer": keeping("reviewer", reviewing(PASS)),
    }
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run = await here.ended((await here.submit()).id)
    bundle = seen["coder"].handoff
    assert (bundle.master_task.run_id, bundle.master_task.task_id, bundle.master_task.intent) == (run.id, "T1", WISH)
    assert bundle.detail_design.design_md.text
    assert [item.id for item in bundle.acceptance_criteria] == ["T1-C1"]
    assert [(item.slot, item.agent_id) for item in bundle.research_bundle] == [
        ("style", "ada-researcher"),
        ("tests", "ada-researcher"),
    ]
    for report in bundle.research_bundle:
        assert report.summary_md.text == f"# what about {report.slot}?\n"
        assert report.memory_jsonl.text == '{"agentId":"ada-researcher"}\n'
        assert (report.analysis_meta.text, report.operations.text) == ('{"files":3}', '{"run":"ls","exit":0}\n')
    made = seen["reviewer"].coder_result
    assert [item.id for item in made.claims] == ["K1"]
    assert [item.id for item in made.evidence] == ["E1"]
    assert [item.path for item in made.changed_files] == ["a.py"]


@pytest.mark.parametrize("missing", ["summary_md", "memory_jsonl"])
async def test_research_without_its_summary_or_its_memory_is_not_taken(tmp_path: Path, missing: str) -> None:
    first = iter([True])

    def research(job: Job) -> Message:
        report = researching()(job)
        if next(first, False):
            report.ClearField(missing)
        return report

    async with plane(tmp_path, NOBODY) as here, crew(here, researcher=research):
        run = await here.reached((await here.submit()).id, runs.RUN_STATE_CODER_EXEC)
        listed = (await here.agents.ListAssignments(agents.ListAssignmentsRequest(run_id=run.id))).assignments
        assert [item.attempt for item in listed if item.purpose == assignments.PURPOSE_RESEARCH] == [2]


async def test_no_code_is_asked_for_before_the_research_is_in_and_judged(tmp_path: Path) -> None:
    researcher = researching(0.3, 0.9)
    async with plane(tmp_path, NOBODY) as here, crew(here, planner=planning(slots=("a", "b")), researcher=researcher):
        run = await here.reached((await here.submit()).id, runs.RUN_STATE_CODER_EXEC)
        path = await path_of(here, run.id)
        assert path.count(("RESEARCH_EVAL", "need_more_results", "WAIT_OTHERS")) == 1
        assert ("WAIT_OTHERS", "result_arrived", "RESEARCH_INGEST") in path
        events = [event for _, event, _ in path]
        assert events.index("enough_info") < events.index("design_ready") < events.index("dispatch_success")


async def test_research_that_is_not_sure_enough_has_the_plan_made_anew(tmp_path: Path) -> None:
    roles = {"planner": planning(), "researcher": researching(0.59, 0.6)}
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run = await here.reached((await here.submit()).id, runs.RUN_STATE_CODER_EXEC)
        judged = [step for step in await path_of(here, run.id) if step[0] == "RESEARCH_EVAL"]
        assert judged == [
            ("RESEARCH_EVAL", "need_replan", "PLAN_BASELINE"),
            ("RESEARCH_EVAL", "enough_info", "DETAIL_DESIGN"),
        ]
        assert run.replans == 1


async def test_an_unclear_request_is_asked_about_before_anything_is_planned(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        run = await here.asked((await here.submit("improve things", mode_override=pb.MODE_OVERRIDE_ACTION)).id)
        assert run.confidence < 0.6
        assert (await path_of(here, run.id))[-1] == ("INTAKE", "confidence_lt_0_6", "ASK_SWITCH")
        await here.answer(run, runs.ANSWER_KIND_CLARIFIED, text=WISH)
        run = await here.reached(run.id, runs.RUN_STATE_PLAN_REVIEW)
        assert (run.intent, run.confidence) == (WISH, 1.0)


async def test_a_plan_that_is_not_sure_enough_is_asked_about_and_0_6_is_enough(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here, crew(here, planner=planning(0.59, 0.59, 0.6)):
        run = await here.asked((await here.submit()).id)
        assert (await path_of(here, run.id))[-1] == ("PLAN_BASELINE", "confidence_lt_0_6", "ASK_SWITCH")
        await here.answer(run, runs.ANSWER_KIND_CLARIFIED, text=WISH)
        await here.reached(run.id, runs.RUN_STATE_CODER_EXEC)
        sure = await here.submit("Rename the function in src/lexer.py")
        await here.reached(sure.id, runs.RUN_STATE_CODER_EXEC)


@pytest.mark.parametrize("confidence", [0.5, 0.0])
async def test_a_resumed_plan_that_is_not_sure_enough_is_asked_about_before_it_is_scheduled(
    tmp_path: Path, confidence: float
) -> None:
    async with plane(tmp_path, NOBODY) as here, crew(here, planner=planning(confidence)):
        run = await here.asked((await here.submit(session_id="s")).id)
        await here.answer(run, runs.ANSWER_KIND_CLARIFIED, text=WISH)
        await here.reached(run.id, runs.RUN_STATE_CODER_EXEC)
        rival = await here.asked((await here.submit("Rename the function in src/lexer.py", session_id="s")).id)
        await here.answer(rival, runs.ANSWER_KIND_SWITCH)
        await released(here, run.epic_id)
        resumed = await here.asked((await here.submit("Move src/a.py to src/b.py", resume=pb.RESUME_YES)).id)
        assert resumed.epic_id == run.epic_id
        assert (await path_of(here, resumed.id))[-1] == ("SCHEDULE", "confidence_lt_0_6", "ASK_SWITCH")


async def test_work_that_is_rejected_too_often_is_asked_about_instead_of_being_planned_anew(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here, crew(here, coder=coding(), reviewer=reviewing(RETRY)):
        run = await here.asked((await here.submit()).id)
        path = await path_of(here, run.id)
        assert path[-1] == ("REPLAN_PATCH", "confidence_lt_0_6", "ASK_SWITCH")
        assert 1 <= path.count(("REVIEW_ACCEPT", "reject_or_retry", "CODER_HANDOFF")) <= 3


BULKY = "Rename every function in the whole repository"
DESTRUCTIVE = "Delete the old users table"


async def test_the_same_remark_is_released_after_three_rounds_and_stays_a_risk(tmp_path: Path) -> None:
    roles = {"planner": planning(), "critic": criticising(9, "scope"), "researcher": researching()}
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run = await here.reached((await here.submit(BULKY)).id, runs.RUN_STATE_CODER_EXEC)
        request = pb.ListTransitionsRequest(run_id=run.id, page=common.Page(page_size=1000))
        reviewed = [t.event for t in (await here.runs.ListTransitions(request)).transitions if t.to_state == "OBSERVE"]
        rounds = [
            t for t in (await here.runs.ListTransitions(request)).transitions if t.event == "non_blocking_feedback"
        ]
        assert (len(rounds), reviewed) == (2, ["pass_or_feedback_limit_reached"])
        assert "feedback-scope" in [item.key for item in run.residual_risks]


async def test_a_remark_at_high_stakes_blocks_the_plan_until_a_person_is_asked(tmp_path: Path) -> None:
    roles = {"planner": planning(), "critic": criticising(9, "scope")}
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run = await here.asked((await here.submit(DESTRUCTIVE)).id)
        path = await path_of(here, run.id)
        assert path.count(("PLAN_REVIEW", "blocking_feedback", "PLAN_BASELINE")) == 3
        assert path[-1] == ("PLAN_REVIEW", "feedback_escalated", "ASK_SWITCH")


def deciding(decision: handoff.ReviewVerdict.ValueType, *risks: handoff.ResidualRisk) -> Handler:
    """A critic that says no more than this about every plan."""
    level = handoff.REVIEW_LEVEL_ORCHESTRATOR
    return lambda _job: handoff.ReviewDecision(decision=decision, review_level=level, residual_risks=risks)


@pytest.mark.parametrize(
    ("decision", "move"),
    [(handoff.REVIEW_VERDICT_RETRY, "non_blocking_feedback"), (handoff.REVIEW_VERDICT_REPLAN, "blocking_feedback")],
)
async def test_a_critic_that_rejects_a_plan_without_saying_why_does_not_pass_it(
    tmp_path: Path, decision: handoff.ReviewVerdict.ValueType, move: str
) -> None:
    roles = {"planner": planning(), "critic": deciding(decision)}
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run_id = (await here.submit(BULKY)).id
        await here.reached(run_id, runs.RUN_STATE_PLAN_REVIEW)

        async def left() -> list[str]:
            request = pb.ListTransitionsRequest(run_id=run_id, page=common.Page(page_size=1000))
            rows = (await here.runs.ListTransitions(request)).transitions
            return [row.event for row in rows if row.event in (move, "pass_or_feedback_limit_reached")]

        assert (await eventually(left))[0] == move


async def test_the_risks_that_a_critic_names_stay_on_the_run(tmp_path: Path) -> None:
    risk = handoff.ResidualRisk(key="scope", statement="the names are used elsewhere")
    roles = {"planner": planning(), "critic": deciding(handoff.REVIEW_VERDICT_PASS, risk)}
    async with plane(tmp_path, NOBODY) as here, crew(here, **roles):
        run = await here.reached((await here.submit(BULKY)).id, runs.RUN_STATE_CODER_EXEC)
        assert ("scope", "the names are used elsewhere") in [(one.key, one.statement) for one in run.residual_risks]


@pytest.mark.parametrize("prefix", ["POINTSMAN", "FINGER"])
@pytest.mark.parametrize(("role", "agent_id"), [("EXECUTOR", "ada-coder"), ("REVIEWER", "ada-reviewer")])
async def test_a_role_that_is_taken_out_of_the_mocks_is_played_by_a_real_agent(
    prefix: str, role: str, agent_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{prefix}_FULL_MOCK_MODE", "1")
    monkeypatch.setenv(f"{prefix}_MOCK_{role}_LOOP", "0")
    real = {"coder": coding()} if role == "EXECUTOR" else {"reviewer": reviewing(PASS)}
    async with plane(tmp_path, MockSettings()) as here:
        policies = (await here.mocks.GetMockPolicy(mock.GetMockPolicyRequest())).policies
        real_roles = [mock.MockRole.Name(item.role) for item in policies if not item.mocked]
        assert real_roles == [f"MOCK_ROLE_{role}"]
        async with crew(here, **real):
            run = await here.ended((await here.submit()).id)
        assert run.state == runs.RUN_STATE_COMPLETE, run
        listed = (await here.agents.ListAgents(agents.ListAgentsRequest())).agents
        others = {"finger-executor", "finger-reviewer", "finger-researcher"} - {f"finger-{role.lower()}"}
        assert {item.id for item in listed} == {agent_id, *others}


async def test_a_searcher_that_is_taken_out_of_the_mocks_is_not_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FINGER_FULL_MOCK_MODE", "1")
    monkeypatch.setenv("FINGER_MOCK_SEARCHER_LOOP", "0")
    async with plane(tmp_path, MockSettings()) as here, crew(here, researcher=researching()):
        run = await here.ended((await here.submit()).id)
        assert run.state == runs.RUN_STATE_COMPLETE
        listed = (await here.agents.ListAgents(agents.ListAgentsRequest())).agents
        assert {item.id for item in listed} == {"ada-researcher", "finger-executor", "finger-reviewer"}


@pytest.mark.parametrize("prefix", ["POINTSMAN", "FINGER"])
async def test_the_debug_switch_offers_the_policy_without_playing_any_role(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{prefix}_RUNTIME_DEBUG_MODE", "1")
    async with plane(tmp_path, MockSettings()) as here:
        await here.behave(mock.MOCK_ROLE_ALL, mock.MOCK_OUTCOME_FAILURE)
        policies = (await here.mocks.GetMockPolicy(mock.GetMockPolicyRequest())).policies
        assert {(item.outcome, item.mocked) for item in policies} == {(mock.MOCK_OUTCOME_FAILURE, False)}
        assert not (await here.agents.ListAgents(agents.ListAgentsRequest())).agents
