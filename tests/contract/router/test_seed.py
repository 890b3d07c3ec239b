"""The rules of the task router's specification about what comes after a decision, over gRPC on both databases."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from typer.testing import CliRunner

from pointsman.api.router.v1 import decision_pb2 as d
from pointsman.api.router.v1 import log_pb2
from pointsman.api.router.v1 import outcome_pb2 as o
from pointsman.cli.commands.route import app
from tests.contract.router.routers import Client, new, served
from tests.helpers.clock import FakeClock

FAILURE, REJECTED = o.OUTCOME_FAILURE, o.OUTCOME_USER_REJECTED


async def reactions(client: Client, text: str, *outcomes: int) -> list[str]:
    """What each outcome of one task leads to."""
    made = await client.classify(text)
    found = [await client.report(made.decision_id, outcome, f"error {one}") for one, outcome in enumerate(outcomes)]
    return [o.Reaction.Name(answer.reaction).removeprefix("REACTION_") for answer in found]


async def test_each_failure_trigger_leads_to_its_action(database_url: str) -> None:
    async with served(database_url) as client:
        thrice = await reactions(client, "fix the parser", FAILURE, FAILURE, FAILURE)
        assert thrice == ["NONE", "DEBATE_FAILURE", "AUTO_ESCALATE"]
        assert await reactions(client, "fix the lexer", REJECTED, REJECTED) == ["NONE", "DEBATE_FAILURE"]
        assert await reactions(client, "update the token check", FAILURE) == ["AUTO_ESCALATE"]
        assert await reactions(client, "just do it: rotate the API key", FAILURE) == ["AUTO_ESCALATE"]


async def resolved(
    client: Client, text: str, kind: o.DebateKind.ValueType, advocate: o.Advocate, critic: o.Critic
) -> str:
    """The verdict of a debate."""
    made = await client.classify(text)
    request = o.ResolveDebateRequest(
        request_id=new(), decision_id=made.decision_id, kind=kind, advocate=advocate, critic=critic
    )
    return o.Verdict.Name((await client.stub.ResolveDebate(request)).verdict).removeprefix("VERDICT_")


async def test_a_planning_debate_of_advocate_and_critic_ends_with_a_verdict(database_url: str) -> None:
    sure = o.Advocate(proposal="drop it", confidence=0.9)
    grave = o.Critic(objection="no backup", severity=o.SEVERITY_HIGH)
    other = o.Critic(objection="no backup", severity=o.SEVERITY_HIGH, counter_proposal="rename it")
    async with served(database_url) as client:
        for critic, verdict in ((o.Critic(), "PROCEED"), (other, "MODIFY"), (grave, "ESCALATE")):
            found = await resolved(client, "drop the users table", o.DEBATE_KIND_PLANNING, sure, critic)
            assert found == verdict


async def test_a_failure_debate_ends_in_retry_pivot_or_escalate(database_url: str) -> None:
    same, other = o.Advocate(proposal="again"), o.Advocate(proposal="again", difference="with the fixture")
    async with served(database_url) as client:
        for text in ("fix the lexer", "fix the parser"):
            await reactions(client, text, FAILURE, FAILURE)
        assert await resolved(client, "fix the lexer", o.DEBATE_KIND_FAILURE, same, o.Critic()) == "PIVOT"
        assert await resolved(client, "fix the parser", o.DEBATE_KIND_FAILURE, other, o.Critic()) == "RETRY"
        await reactions(client, "fix the parser", FAILURE)
        assert await resolved(client, "fix the parser", o.DEBATE_KIND_FAILURE, other, o.Critic()) == "ESCALATE"


async def test_stats_give_the_rates_of_modes_confidence_and_overrides_of_a_window(database_url: str) -> None:
    clock = FakeClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
    async with served(database_url, clock) as client:
        await client.classify("what is an old question?")
        clock.advance(days=2)
        weak = await client.classify("search for examples")
        await client.report(weak.decision_id, o.OUTCOME_CLARIFICATION_REQUESTED)
        await client.classify("fix the bug in src/api/auth.ts and update tests")
        await client.classify("run the benchmark", mode_override=d.MODE_ANSWER)
        await client.classify("What is HPOS?")
        request = log_pb2.GetStatsRequest()
        request.window.start.FromDatetime(datetime(2026, 3, 2, tzinfo=UTC))
        stats = await client.stub.GetStats(request)
        everything = await client.stub.GetStats(log_pb2.GetStatsRequest())
    assert (stats.decisions, stats.answers, stats.actions, stats.strong, stats.weak) == (4, 2, 2, 1, 1)
    assert (stats.answer_rate, stats.action_rate, stats.strong_rate, stats.override_rate) == (0.5, 0.5, 0.5, 0.5)
    assert (everything.decisions, everything.answer_rate) == (5, 0.6)


async def test_the_log_keeps_a_long_message_short_and_names_the_fast_path(database_url: str) -> None:
    clock = FakeClock(datetime(2026, 3, 1, 13, 26, tzinfo=UTC))
    async with served(database_url, clock) as client:
        await client.classify("pwd")
        clock.advance(minutes=1)
        await client.classify("fix the parser " + "and the lexer " * 100)
        answers = client.stub.ExportLog(log_pb2.ExportLogRequest(day="2026-03-01"))
        short, long = "".join([part.markdown async for part in answers]).split("\n\n")
    assert short.startswith('13:26 ROUTE "pwd" → ACTION\n')
    assert short.endswith("  Routed to: Tool Specialist")
    first = long.splitlines()[0]
    assert first.startswith('13:27 ROUTE "fix the parser and the lexer')
    assert len(first) < 260


async def test_the_log_of_a_day_is_written_to_its_file_in_memory(database_url: str, tmp_path: Path) -> None:
    async with served(database_url, FakeClock(datetime(2026, 3, 1, 13, 26, tzinfo=UTC))) as client:
        await client.classify("what is HPOS?")
        options = ["log", "--day", "2026-03-01", "--write", str(tmp_path), "--server", client.address]
        result = await asyncio.to_thread(CliRunner().invoke, app, options)
    assert result.stdout == f"{tmp_path}/memory/2026-03-01.md\n", result.output
    assert (tmp_path / "memory" / "2026-03-01.md").read_text(encoding="utf-8") == (
        '13:26 ROUTE "what is HPOS?" → ANSWER\n'
        "  Triggers: []\n"
        "  Pattern: Question + no external refs\n"
        "  Routed to: Direct Response\n"
    )


async def test_the_log_tells_the_messages_of_a_batch_in_their_order(database_url: str) -> None:
    texts = [f"fix bug {number}" for number in range(12)]
    async with served(database_url, FakeClock(datetime(2026, 3, 1, 13, 26, tzinfo=UTC))) as client:
        messages = [d.Message(text=text) for text in texts]
        await client.stub.BatchClassify(d.BatchClassifyRequest(request_id=new(), messages=messages))
        answers = client.stub.ExportLog(log_pb2.ExportLogRequest(day="2026-03-01"))
        log = "".join([part.markdown async for part in answers])
    assert [line.split('"')[1] for line in log.splitlines() if "ROUTE" in line] == texts
