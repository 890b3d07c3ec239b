"""RouterService on SQLite and PostgreSQL, over gRPC."""

import threading
from datetime import UTC, datetime

import grpc
import pytest

from pointsman.api.common.v1 import common_pb2
from pointsman.api.router.v1 import decision_pb2 as d
from pointsman.api.router.v1 import log_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.router import servicer
from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.domain.classification.rule_book import RuleBook
from pointsman.services.router.domain.model import Classification
from tests.contract.router.routers import Client, new, refused, served
from tests.helpers.clock import FakeClock

PRECONDITION, INVALID = grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT
FAILURE, SUCCESS = outcome_pb2.OUTCOME_FAILURE, outcome_pb2.OUTCOME_SUCCESS
STRONG_TEXT = "fix the bug in src/api/auth.ts and update tests"


async def test_a_decision_is_explained_and_stored(database_url: str) -> None:
    async with served(database_url) as client:
        made = await client.classify(STRONG_TEXT, run_id="run-1")
        assert (made.mode, made.confidence, made.route) == (
            d.MODE_ACTION,
            d.CONFIDENCE_STRONG,
            d.ROUTE_TARGET_SWARM_ORCHESTRATOR,
        )
        assert [STRONG_TEXT[trigger.start : trigger.end] for trigger in made.triggers] == [
            "fix",
            "src/api/auth.ts",
            "update",
            "tests",
        ]
        assert made.rule_set_version
        assert made.enforced
        listed = await client.stub.ListDecisions(log_pb2.ListDecisionsRequest(run_id="run-1"))
        assert list(listed.decisions) == [made]
        assert await client.check("decision", made.decision_id) == ["DECISION_MADE"]


async def test_the_same_request_answers_the_first_decision_and_another_body_is_refused(database_url: str) -> None:
    async with served(database_url) as client:
        first = await client.classify("pwd", request_id="once")
        assert await client.classify("pwd", request_id="once") == first
        async with refused("REQUEST_ID_REUSED", grpc.StatusCode.ALREADY_EXISTS):
            await client.classify("date", request_id="once")


async def test_a_batch_is_decided_in_order_and_a_refusal_stores_none(database_url: str) -> None:
    async with served(database_url) as client:
        messages = [d.Message(text=text) for text in ("What is HPOS?", "fix the build", "pwd")]
        request = d.BatchClassifyRequest(request_id=new(), messages=messages, run_id="batch")
        answer = await client.stub.BatchClassify(request)
        assert [made.mode for made in answer.decisions] == [d.MODE_ANSWER, d.MODE_ACTION, d.MODE_ACTION]
        assert answer.decisions[2].fast_path
        assert await client.stub.BatchClassify(request) == answer
        messages.append(d.Message(text=STRONG_TEXT, mode_override=d.MODE_ANSWER))
        async with refused("OVERRIDE_REFUSED", PRECONDITION) as info:
            await client.stub.BatchClassify(d.BatchClassifyRequest(request_id=new(), messages=messages, run_id="batch"))
        assert info.metadata["item"] == "3"
        listed = await client.stub.ListDecisions(log_pb2.ListDecisionsRequest(run_id="batch"))
        assert len(listed.decisions) == 3


async def test_what_takes_long_to_decide_holds_up_no_other_caller(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[int, int] = {}

    def seen(book: RuleBook, text: str, **circumstances: bool) -> Classification:
        threads[len(text)] = threading.get_ident()
        return classify(book, text, **circumstances)

    monkeypatch.setattr(servicer, "classify", seen)
    async with served(database_url) as client:
        long = await client.classify("fix it\n" * 9_000)
        short = await client.classify("fix it")
        assert (long.mode, short.mode) == (d.MODE_ACTION, d.MODE_ACTION)
    assert threads[len("fix it")] == threading.get_ident() != threads[len("fix it\n") * 9_000]


async def test_strong_cannot_be_overridden_while_weak_can_and_is_counted(database_url: str) -> None:
    async with served(database_url) as client:
        async with refused("OVERRIDE_REFUSED", PRECONDITION):
            await client.classify(STRONG_TEXT, mode_override=d.MODE_ANSWER)
        made = await client.classify("search for examples", mode_override=d.MODE_ANSWER)
        assert (made.mode, made.overridden) == (d.MODE_ANSWER, True)
        asked = await client.classify("search for more examples")
        await client.report(asked.decision_id, outcome_pb2.OUTCOME_CLARIFICATION_REQUESTED)
        stats = await client.stub.GetStats(log_pb2.GetStatsRequest())
        assert (stats.decisions, stats.overrides, stats.clarifications, stats.override_rate) == (2, 1, 1, 1.0)


async def test_talk_that_is_overridden_to_action_is_weighed_and_the_log_tells_both(database_url: str) -> None:
    async with served(database_url) as client:
        made = await client.classify("should I drop the users table?", mode_override=d.MODE_ACTION)
        assert (made.mode, made.overridden, made.debate) == (d.MODE_ACTION, True, d.DEBATE_PLANNING)
        assert (made.stakes, made.debate_reasons[0].rule) == (d.STAKES_HIGH, "debate.destructive")
        day = made.decided_at.ToDatetime().date().isoformat()
        told = "".join([part.markdown async for part in client.stub.ExportLog(log_pb2.ExportLogRequest(day=day))])
        assert "→ ANSWER" in told
        assert "  Overridden: ACTION\n  Routed to: Swarm Orchestrator" in told


async def test_with_hard_routing_off_the_decision_is_advice_and_the_log_goes_on(database_url: str) -> None:
    async with served(database_url, hard_routing=False) as client:
        made = await client.classify(STRONG_TEXT, mode_override=d.MODE_ANSWER)
        assert (made.enforced, made.overridden) == (False, True)
        assert (await client.stub.GetStats(log_pb2.GetStatsRequest())).decisions == 1


async def test_a_policy_holds_from_the_next_decision_on(database_url: str) -> None:
    async with served(database_url) as client:
        before = (await client.stub.GetPolicy(policy_pb2.GetPolicyRequest())).policy
        assert (before.revision, before.hard_routing) == (0, True)
        assert (await client.classify("the frobnicator ate my lunch")).mode == d.MODE_ANSWER
        rule = policy_pb2.OwnRule(id="frob", effect=policy_pb2.RULE_EFFECT_REFERENCE, pattern=r"frobnic\w+")
        request = policy_pb2.SetPolicyRequest(request_id=new(), hard_routing=True, rules=[rule], expected_revision=0)
        policy = (await client.stub.SetPolicy(request)).policy
        made = await client.classify("what is the Frobnicator?")
        assert (made.mode, made.rules[0]) == (d.MODE_ACTION, "own.frob")
        assert made.rule_set_version == policy.rule_set_version != before.rule_set_version
        request.request_id = new()
        async with refused("LOST_RACE", grpc.StatusCode.ABORTED):
            await client.stub.SetPolicy(request)
        rule.pattern = "(?=x)"
        bad = policy_pb2.SetPolicyRequest(request_id=new(), rules=[rule])
        async with refused("INVALID_RULE", INVALID) as info:
            await client.stub.SetPolicy(bad)
        assert info.metadata["rule"] == "frob"


async def test_a_policy_says_what_becomes_of_doubt_and_the_decision_names_it(database_url: str) -> None:
    doubtful = "el reloj sigue marcando la hora vieja"
    async with served(database_url) as client:
        before = await client.classify(doubtful)
        request = policy_pb2.SetPolicyRequest(request_id=new(), hard_routing=True, doubt=policy_pb2.DOUBT_RULES)
        policy = (await client.stub.SetPolicy(request)).policy
        assert policy.doubt == policy_pb2.DOUBT_RULES
        after = await client.classify(doubtful)
        assert (before.mode, after.mode) == (d.MODE_ACTION, d.MODE_ANSWER)
        assert after.rule_set_version == policy.rule_set_version == f"{before.rule_set_version}/rules"
    async with served(database_url) as client:
        assert (await client.stub.GetPolicy(policy_pb2.GetPolicyRequest())).policy.doubt == policy_pb2.DOUBT_RULES


async def test_failures_are_counted_by_canonical_task_and_survive_a_restart(database_url: str) -> None:
    async with served(database_url) as client:
        first = await client.classify("fix the parser")
        answer = await client.report(first.decision_id, FAILURE, "boom at /tmp/x.py line 12")
        assert (answer.reaction, answer.consecutive_failures) == (outcome_pb2.REACTION_NONE, 1)
    async with served(database_url) as client:
        again = await client.classify("Fix  the PARSER!")
        assert again.task_id == first.task_id
        answer = await client.report(again.decision_id, FAILURE, "other")
        assert answer.reaction == outcome_pb2.REACTION_DEBATE_FAILURE
        assert answer.cause == outcome_pb2.REACTION_CAUSE_TWO_FAILURES
        answer = await client.report(again.decision_id, FAILURE, "third")
        assert answer.reaction == outcome_pb2.REACTION_AUTO_ESCALATE
        await client.report(again.decision_id, SUCCESS)
        answer = await client.report(again.decision_id, FAILURE, "fourth")
        assert (answer.reaction, answer.consecutive_failures) == (outcome_pb2.REACTION_NONE, 1)
        assert await client.check("outcomes", "outcomes:local") == [
            "TASK_FAILED",
            "TASK_FAILED",
            "TASK_FAILED",
            "TASK_SUCCEEDED",
            "TASK_FAILED",
        ]


async def test_a_success_of_a_task_that_never_failed_leaves_nothing_behind(database_url: str) -> None:
    async with served(database_url) as client:
        made = await client.classify("fix the parser")
        answer = await client.report(made.decision_id, SUCCESS)
        assert (answer.reaction, answer.consecutive_failures) == (outcome_pb2.REACTION_NONE, 0)
        with pytest.raises(Refusal, match="no outcomes"):
            await client.store.journal.page("local", ("outcomes", "outcomes:local"), 0, 10)
        await client.report(made.decision_id, FAILURE, "boom")
        await client.report(made.decision_id, SUCCESS)
        await client.report(made.decision_id, SUCCESS)
        assert await client.check("outcomes", "outcomes:local") == ["TASK_FAILED", "TASK_SUCCEEDED"]


async def test_replicas_share_what_they_count(database_url: str) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("a SQLite file has one writer")
    async with served(database_url) as one, served(database_url) as two:
        made = await one.classify("fix the parser")
        await one.report(made.decision_id, FAILURE, "a")
        answer = await two.report(made.decision_id, FAILURE, "b")
        assert answer.reaction == outcome_pb2.REACTION_DEBATE_FAILURE
        request = policy_pb2.SetPolicyRequest(request_id=new(), hard_routing=False)
        await one.stub.SetPolicy(request)
        assert not (await two.classify(STRONG_TEXT)).enforced


async def test_the_same_error_in_different_tasks_is_debated_until_one_succeeds(database_url: str) -> None:
    async with served(database_url) as client:
        one, two, three = [await client.classify(f"fix the {what} page") for what in ("first", "second", "third")]
        await client.report(one.decision_id, FAILURE, "connection refused on port 5432")
        answer = await client.report(two.decision_id, FAILURE, "Connection refused on port 6000")
        assert answer.cause == outcome_pb2.REACTION_CAUSE_SAME_ERROR_ELSEWHERE
        await client.report(one.decision_id, SUCCESS)
        await client.report(two.decision_id, outcome_pb2.OUTCOME_START_FRESH)
        answer = await client.report(three.decision_id, FAILURE, "connection refused on port 1")
        assert answer.reaction == outcome_pb2.REACTION_NONE


async def test_a_day_clears_the_count(database_url: str) -> None:
    clock = FakeClock()
    async with served(database_url, clock) as client:
        made = await client.classify("fix the parser")
        await client.report(made.decision_id, FAILURE, "a")
        clock.advance(hours=24)
        answer = await client.report(made.decision_id, FAILURE, "a")
        assert (answer.reaction, answer.consecutive_failures) == (outcome_pb2.REACTION_NONE, 1)


async def test_a_task_is_debated_once_in_a_session(database_url: str) -> None:
    async with served(database_url) as client:
        made = await client.classify("drop the users table", session_id="s1")
        assert made.debate == d.DEBATE_PLANNING
        request = outcome_pb2.ResolveDebateRequest(
            request_id=new(),
            decision_id=made.decision_id,
            kind=outcome_pb2.DEBATE_KIND_PLANNING,
            advocate=outcome_pb2.Advocate(proposal="drop it", confidence=0.9),
            critic=outcome_pb2.Critic(),
        )
        assert (await client.stub.ResolveDebate(request)).verdict == outcome_pb2.VERDICT_PROCEED
        again = await client.classify("drop the users table", session_id="s1")
        assert (again.debate, again.debate_bypass) == (d.DEBATE_NONE, d.DEBATE_BYPASS_ALREADY_DEBATED)
        assert again.stakes == d.STAKES_HIGH
        other = await client.classify("drop the users table", session_id="s2")
        assert other.debate == d.DEBATE_PLANNING


async def test_the_daily_log_has_the_format_of_the_specification(database_url: str) -> None:
    clock = FakeClock(datetime(2026, 3, 1, 13, 26, tzinfo=UTC))
    async with served(database_url, clock) as client:
        for text in ("fix the E2E tests in zbooks repo", "what is HPOS?", "search the codebase for auth"):
            await client.classify(text)
            clock.advance(minutes=1)
        parts = [part.markdown async for part in client.stub.ExportLog(log_pb2.ExportLogRequest(day="2026-03-01"))]
        assert "".join(parts) == (
            '13:26 ROUTE "fix the E2E tests in zbooks repo" → ACTION\n'
            "  Triggers: [fix, tests, repo]\n"
            "  Confidence: STRONG (3 triggers)\n"
            "  Routed to: Swarm Orchestrator\n"
            "\n"
            '13:27 ROUTE "what is HPOS?" → ANSWER\n'
            "  Triggers: []\n"
            "  Pattern: Question + no external refs\n"
            "  Routed to: Direct Response\n"
            "\n"
            '13:28 ROUTE "search the codebase for auth" → ACTION\n'
            "  Triggers: [search, codebase]\n"
            "  Confidence: WEAK (2 triggers)\n"
            "  Routed to: Swarm Orchestrator\n"
        )
        async with refused("INVALID_FIELD", INVALID):
            _ = [part async for part in client.stub.ExportLog(log_pb2.ExportLogRequest(day="2026-02-30"))]


async def test_pages_go_on_where_the_last_one_ended(database_url: str) -> None:
    async with served(database_url) as client:
        ids = [(await client.classify(f"fix bug {number}")).decision_id for number in range(5)]
        seen: list[str] = []
        token = ""
        while True:
            page = common_pb2.Page(page_size=2, page_token=token)
            answer = await client.stub.ListDecisions(log_pb2.ListDecisionsRequest(page=page))
            seen += [made.decision_id for made in answer.decisions]
            token = answer.next_page_token
            if not token:
                break
        assert seen == ids[::-1]
        async with refused("INVALID_PAGE_TOKEN", INVALID):
            await client.stub.ListDecisions(log_pb2.ListDecisionsRequest(page=common_pb2.Page(page_token="x")))


async def test_a_project_sees_only_its_own(database_url: str) -> None:
    async with served(database_url) as client:
        made = await client.classify("fix the parser")
        foreign = [("pointsman-project", "other")]
        request = outcome_pb2.ReportOutcomeRequest(request_id=new(), decision_id=made.decision_id, outcome=SUCCESS)
        async with refused("NOT_FOUND", grpc.StatusCode.NOT_FOUND):
            await client.stub.ReportOutcome(request, metadata=foreign)
        listed = await client.stub.ListDecisions(log_pb2.ListDecisionsRequest(), metadata=foreign)
        assert not listed.decisions
        assert (await client.stub.GetStats(log_pb2.GetStatsRequest(), metadata=foreign)).decisions == 0


async def test_forgetting_a_run_removes_its_decisions_once(database_url: str) -> None:
    async with served(database_url) as client:
        await client.classify("fix the parser", run_id="gone")
        await client.classify("fix the parser", run_id="kept")
        request = log_pb2.ForgetRunRequest(request_id=new(), run_id="gone")
        assert (await client.stub.ForgetRun(request)).removed == 1
        assert (await client.stub.ForgetRun(request)).removed == 1
        assert (await client.stub.ForgetRun(log_pb2.ForgetRunRequest(request_id=new(), run_id="gone"))).removed == 0
        assert (await client.stub.GetStats(log_pb2.GetStatsRequest())).decisions == 1


async def test_thinking_is_routed_and_recorded_without_the_values_it_saw(database_url: str) -> None:
    async with served(database_url) as client:
        answer = await _think(client, thinking_pb2.ThinkingSnapshot())
        assert (answer.routed_to, answer.status) == (
            thinking_pb2.THINKING_ROUTE_THINGKING,
            thinking_pb2.ENVELOPE_STATUS_OK,
        )
        assert answer.reason == "No blocker card exists"
        secret = "postgres://admin:hunter2@db"
        blocker = thinking_pb2.Artifact(state=thinking_pb2.ARTIFACT_STATE_PARSED, env_check={"DATABASE_URL": secret})
        answer = await _think(client, thinking_pb2.ThinkingSnapshot(blocker=blocker))
        assert answer.error_code == thinking_pb2.THINKING_ERROR_CODE_SECRET_LEAK
        assert "hunter2" not in str(answer)
        rows = await _all_rows(client)
        assert len(rows) == 2
        assert not any("hunter2" in row for row in rows)


async def _think(client: Client, snapshot: thinking_pb2.ThinkingSnapshot) -> thinking_pb2.ThinkingEnvelope:
    request = thinking_pb2.RouteThinkingRequest(request_id=new(), snapshot=snapshot)
    return (await client.stub.RouteThinking(request)).envelope


async def _all_rows(client: Client) -> list[str]:
    table = client.store.store.tables.journal
    rows = await client.store.store.database.read(lambda connection: connection.execute(table.select()).all())
    return [str(row) for row in rows]
