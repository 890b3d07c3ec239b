"""Seed 004: context isolation, node context, reflexion memory, delegation."""

import json

import pytest

from pointsman.services.chassis.core.errors import Code, Reason, Refusal
from pointsman.services.pipeline.domain import commands, reflection
from pointsman.services.pipeline.domain.dag import Node, build_graph, kind_of
from pointsman.services.pipeline.domain.delegation import READ_FIRST, addressed_reports, delegation_of, tokens
from pointsman.services.pipeline.domain.enums import Disposition, EventName, PipelineStatus, Severity, StageStatus
from pointsman.services.pipeline.domain.model import Report
from tests.unit.pipeline.driver import Drive, at_barrier, said, start

REPORT_TEXT = ("C-1", "H-1", "CRITICAL", "SQL injection")


def after_review_fail() -> Drive:
    """DEV has been delegated again, because REVIEW failed with a report."""
    drive = at_barrier()
    drive.put("REVIEW", "a" * 64)
    words = said("FAIL", severity="CRITICAL", hint="C-1 SQL injection", context_file="/r/REVIEW.md")
    drive.complete("REVIEW", words)
    drive.complete("TEST")
    return drive


def test_a_quality_agent_leaves_its_report_and_names_it_in_the_route() -> None:
    drive = after_review_fail()
    assert drive.pipeline.stages["REVIEW"].context_file == "/r/REVIEW.md"
    assert drive.last(EventName.CONTEXT_PUT).sha256 == "a" * 64
    assert drive.pipeline.has_report("REVIEW")


def test_the_directive_never_holds_the_text_of_a_report() -> None:
    drive = after_review_fail()
    shown = delegation_of(drive.pipeline, "DEV")
    assert shown.directive.startswith("REVIEW FAIL -> DEV, round 1.")
    assert "context:REVIEW" in shown.directive
    assert not [text for text in REPORT_TEXT if text in shown.directive]
    assert tokens(shown.directive) < 200


def test_dev_reads_the_report_that_is_addressed_to_it() -> None:
    drive = after_review_fail()
    assert addressed_reports(drive.pipeline, "p", "DEV#2", "context:REVIEW") == (Report("REVIEW", "a" * 64),)


def test_a_stage_cannot_read_what_is_addressed_to_another() -> None:
    drive = after_review_fail()
    with pytest.raises(Refusal, match="not addressed"):
        addressed_reports(drive.pipeline, "p", "DEV#1", "context:REVIEW")
    drive.complete("DEV")
    for reader in ("REVIEW#2", "TEST#2", "DEV#2", "DEV#1", "NONE#1", "rubbish"):
        with pytest.raises(Refusal) as refused:
            addressed_reports(drive.pipeline, "p", reader, "context:REVIEW")
        assert refused.value.reason is Reason.NOT_ADDRESSED
        assert refused.value.code is Code.PERMISSION_DENIED


def test_a_report_that_is_missing_leaves_the_hint() -> None:
    drive = at_barrier()
    drive.complete("REVIEW", said("FAIL", hint="look at the parser", context_file="/gone.md"))
    drive.complete("TEST")
    with pytest.raises(Refusal) as refused:
        addressed_reports(drive.pipeline, "p", "DEV#2", "context:REVIEW")
    assert refused.value.code is Code.NOT_FOUND
    assert json.loads(delegation_of(drive.pipeline, "DEV").node_context)["hint"] == "look at the parser"
    assert drive.complete("DEV").disposition is Disposition.ADVANCED


def test_clean_up_removes_what_an_ended_pipeline_left_after_three_days() -> None:
    drive = start("fix")
    drive.put("DEV", "a" * 64)
    drive.complete("DEV")
    three_days = 3 * 24 * 3600
    assert (drive.timers["clean-up"].due_at - drive.now).total_seconds() == three_days
    drive.do(commands.CleanUp("p", three_days))
    assert not drive.pipeline.head.cleaned
    drive.wait(three_days)
    drive.do(commands.CleanUp("p", three_days))
    drive.do(commands.CleanUp("p", three_days))
    assert drive.count(EventName.PIPELINE_CLEANED) == 1
    assert drive.pipeline.stages["DEV"].report == ""
    assert not drive.pipeline.has_report("DEV")


def test_clean_up_removes_reflections_after_three_days() -> None:
    drive = start("ui-only", auto=True)
    drive.complete("DESIGN")
    drive.complete("DEV")
    for _ in range(3):
        drive.complete("QA", said("FAIL"))
        drive.complete("DEV")
    drive.complete("QA", said("FAIL"))
    assert len(drive.pipeline.stages["QA"].reflection) == 3
    drive.wait(3 * 24 * 3600)
    drive.do(commands.CleanUp("p", 3 * 24 * 3600))
    assert drive.pipeline.head.cleaned
    assert [known.reflection for known in drive.pipeline.stages.values()] == [()] * 3
    assert [known.returned for known in drive.pipeline.stages.values()] == [None] * 3


def test_clean_up_never_touches_a_live_pipeline() -> None:
    drive = after_review_fail()
    drive.wait(10**7)
    drive.do(commands.CleanUp("p", 0))
    assert drive.pipeline.stages["REVIEW"].reflection
    assert drive.count(EventName.PIPELINE_CLEANED) == 0


def test_the_first_delegation_carries_the_node_context() -> None:
    drive = start("standard", env={"language": "python"})
    content = json.loads(delegation_of(drive.pipeline, "PLAN").node_context)
    assert content == {
        "node": {"stage": "PLAN", "prev": [], "next": ["ARCH"], "onFail": None, "barrier": None},
        "context_files": [],
        "env": {"language": "python"},
        "retryContext": None,
        "hint": "",
    }


def test_a_return_carries_the_retry_context() -> None:
    content = json.loads(delegation_of(after_review_fail().pipeline, "DEV").node_context)
    assert content["retryContext"] == {
        "round": 1,
        "failedStage": "REVIEW",
        "reflectionFile": "reflection:REVIEW",
        "hint": READ_FIRST,
    }


def test_a_context_file_is_passed_through_to_the_next_stage_as_a_handle() -> None:
    drive = start("standard")
    drive.complete("PLAN", said(context_file="/home/plan.md"))
    content = json.loads(delegation_of(drive.pipeline, "ARCH").node_context)
    assert content["context_files"] == ["context:PLAN"]
    assert "/home/plan.md" not in delegation_of(drive.pipeline, "ARCH").node_context


def test_a_barrier_member_is_told_of_its_siblings() -> None:
    drive = at_barrier()
    content = json.loads(delegation_of(drive.pipeline, "REVIEW").node_context)
    assert content["node"]["barrier"] == {"group": "post-dev", "total": 2, "siblings": ["TEST"]}


def test_budgets_hold_for_the_longest_names_and_hints() -> None:
    names = [f"{kind}:{'x' * (63 - len(kind))}" for kind in ("DEV", "REVIEW", "TEST")]
    nodes = [
        Node(names[0], kind_of("DEV")),
        Node(names[1], kind_of("REVIEW"), deps=(names[0],), on_fail=names[0], barrier="b" * 64),
        Node(names[2], kind_of("TEST"), deps=(names[0],), on_fail=names[0], barrier="b" * 64),
    ]
    drive = start(graph=build_graph(nodes), env={"k": "v" * 390})
    drive.complete(names[0], said(context_file="x"))
    for member in names[1:]:
        drive.put(member, "a" * 64)
        drive.complete(member, said("FAIL", hint="h" * 200))
    shown = delegation_of(drive.pipeline, names[0])
    assert shown.context_handles == ("context:MERGED",)
    assert tokens(shown.node_context) < 500
    assert json.loads(shown.node_context)["node"]["stage"] == names[0]
    assert tokens(shown.directive) < 200


def test_a_hint_is_shortened_before_anything_else() -> None:
    dev, review = f"DEV:{'d' * 60}", f"REVIEW:{'r' * 57}"
    neighbours = [f"DEV:{'n' * 20}{number:02d}" for number in range(31)]
    nodes = [Node(dev, kind_of(dev), on_fail=dev), Node(review, kind_of(review), deps=(dev,), on_fail=dev)]
    nodes += [Node(name, kind_of(name), deps=(dev,)) for name in neighbours]
    drive = start(graph=build_graph(nodes), env={"k": "v" * 390})
    drive.complete(dev)
    drive.complete(review, said("FAIL", hint="h" * 200, context_file="report.md"))
    content = json.loads(delegation_of(drive.pipeline, dev).node_context)
    assert content["node"]["next"] == [review, *neighbours]
    assert content["retryContext"]["hint"] == READ_FIRST
    assert 0 < len(content["hint"]) < 200
    assert tokens(delegation_of(drive.pipeline, dev).node_context) == 499


def test_an_environment_that_is_too_long_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        start("fix", env={"k": "v" * 400})
    assert refused.value.violations[0].field == "env"


def test_a_fail_writes_a_reflection_under_the_failing_stage() -> None:
    drive = after_review_fail()
    (text,) = drive.pipeline.stages["REVIEW"].reflection
    for part in (
        "## Round 1",
        "FAIL (CRITICAL)",
        "Failed stage: REVIEW",
        "C-1 SQL injection",
        "- Report: /r/REVIEW.md",
    ):
        assert part in text
    assert len(text) <= 500
    assert not drive.pipeline.stages["TEST"].reflection
    assert not drive.pipeline.stages["DEV"].reflection


def test_a_reflection_names_the_reports_path_or_its_handle_where_there_is_no_path() -> None:
    for path, named in (
        ("/home/u/.claude/pipeline-context-s-REVIEW.md", "/home/u/.claude/pipeline-context-s-REVIEW.md"),
        ("", "context:REVIEW"),
        ("/" + "x" * 600, "context:REVIEW"),
        ("/r.md\n## Round 9", "context:REVIEW"),
    ):
        drive = at_barrier()
        drive.put("REVIEW", "a" * 64)
        drive.complete("REVIEW", said("FAIL", hint="h" * 200, context_file=path))
        drive.complete("TEST")
        (text,) = drive.pipeline.stages["REVIEW"].reflection
        assert text.splitlines()[-1] == f"- Report: {named}"
    drive = at_barrier()
    drive.complete("REVIEW", said("FAIL"))
    drive.complete("TEST")
    assert drive.pipeline.stages["REVIEW"].reflection[0].endswith("- Report: none")


def test_reflections_forget_whole_rounds_the_oldest_first() -> None:
    rounds: tuple[str, ...] = ()
    for number in range(1, 9):
        rounds = reflection.with_section(rounds, f"## Round {number}\n" + "x" * 300)
    assert [text.split("\n")[0] for text in rounds] == [f"## Round {number}" for number in range(4, 9)]
    for number in range(1, 9):
        rounds = reflection.with_section(rounds, f"## Round {number}\n" + "x" * 900)
    assert len(reflection.body(rounds)) < 3000
    assert all(len(text) <= 500 for text in rounds)
    long = reflection.section("REVIEW", 1, Severity.LOW, "h" * 600, ["context:REVIEW"])
    assert len(long) == 500


def test_reflections_reach_the_limit_of_three_thousand_characters_exactly() -> None:
    full = "y" * 500
    rounds = (full,) * 5
    assert len(reflection.body(reflection.with_section(rounds, full))) == 5 * 500 + 4 * 2


def test_a_pass_removes_the_reflection() -> None:
    drive = after_review_fail()
    drive.complete("DEV")
    assert drive.pipeline.stages["REVIEW"].reflection
    drive.complete("REVIEW")
    assert drive.pipeline.stages["REVIEW"].reflection == ()


def test_earlier_reflections_are_read_by_the_stage_they_return_to() -> None:
    text = "## Round 1\nfirst\n\n## Round 2\nsecond"
    drive = start("quick-dev", reflections={"REVIEW": text, "UNKNOWN": "x", "TEST": ""})
    shown = delegation_of(drive.pipeline, "DEV")
    assert shown.reflection_stages == ("REVIEW",)
    assert drive.pipeline.stages["REVIEW"].reflection == ("## Round 1\nfirst", "## Round 2\nsecond")
    assert drive.pipeline.head.returns == ()
    drive.complete("DEV")
    assert delegation_of(drive.pipeline, "REVIEW").reflection_stages == ()


def test_delegating_marks_the_stage_active_and_remembers_the_agent() -> None:
    drive = start("fix", auto=False)
    assert drive.status("DEV") is StageStatus.READY
    shown = drive.delegate("DEV", "a-7")
    assert (shown.agent_id, shown.delegation_id, shown.round) == ("a-7", "DEV#1", 1)
    assert drive.status("DEV") is StageStatus.ACTIVE
    assert shown.nonce
    assert f'"nonce":"{shown.nonce}"' in shown.directive


def test_a_pending_return_must_be_delegated_before_any_other_stage() -> None:
    nodes = [
        Node("DEV", kind_of("DEV")),
        Node("REVIEW", kind_of("REVIEW"), deps=("DEV",), on_fail="DEV"),
        Node("DOCS", kind_of("DOCS")),
    ]
    drive = start(graph=build_graph(nodes), auto=False)
    drive.delegate("DEV")
    drive.complete("DEV", auto=None)
    drive.delegate("REVIEW")
    assert drive.complete("REVIEW", said("FAIL"), auto=None).next[0].delegation_id == ""
    assert drive.pipeline.head.returns == ("DEV",)
    with pytest.raises(Refusal) as refused:
        drive.delegate("DOCS")
    assert refused.value.reason is Reason.RETURN_PENDING
    drive.delegate("DEV")
    drive.delegate("DOCS")


def test_only_the_agent_that_was_given_the_stage_completes_it() -> None:
    drive = start("fix")
    with pytest.raises(Refusal) as refused:
        drive.do(commands.CompleteStage("p", "DEV#1", "somebody else", "seed", said()))
    assert refused.value.reason is Reason.NOT_YOUR_DELEGATION


@pytest.mark.parametrize("delegation_id", ["DEV#2", "DEV#0", "REVIEW#1", "DEV", "#1", "DEV#x", "DEV#-1", "", "DEV#²"])
def test_a_stage_that_was_never_delegated_cannot_be_completed(delegation_id: str) -> None:
    drive = start("quick-dev")
    with pytest.raises(Refusal) as refused:
        drive.do(commands.CompleteStage("p", delegation_id, "agent", "seed", said()))
    assert refused.value.code is Code.FAILED_PRECONDITION


def test_completing_a_stage_that_waits_to_be_delegated_again_is_ignored() -> None:
    drive = start("fix", auto=False)
    drive.delegate("DEV")
    drive.complete("DEV", said("FAIL"), auto=None)
    assert drive.status("DEV") is StageStatus.READY
    assert drive.complete("DEV").disposition is Disposition.IGNORED


def test_a_replaced_delegation_no_longer_counts() -> None:
    drive = start("fix")
    with pytest.raises(Refusal):
        drive.delegate("DEV", "second")
    drive.do(commands.DelegateStage("p", "DEV", "second", "seed", replace=True))
    old = drive.do(commands.CompleteStage("p", "DEV#1", "agent", "seed", said()))
    assert old.disposition is Disposition.IGNORED
    assert drive.complete("DEV").status is PipelineStatus.COMPLETED


def test_agents_can_be_named_for_each_stage() -> None:
    drive = start("quick-dev")
    answer = drive.complete("DEV", auto=commands.AutoDelegate("other", {"REVIEW": "critic"}))
    assert [(shown.stage, shown.agent_id) for shown in answer.next] == [("REVIEW", "critic"), ("TEST", "other")]
