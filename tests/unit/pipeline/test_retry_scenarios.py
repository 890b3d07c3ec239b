"""Seed 004: when a failing stage stops trying, and where a failure goes."""

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Node, build_graph, kind_of
from pointsman.services.pipeline.domain.enums import (
    Correction,
    Disposition,
    EventName,
    PipelineStatus,
    Severity,
    StageStatus,
    StopAction,
    StopReason,
    Verdict,
)
from pointsman.services.pipeline.domain.retries import RetryRound, should_stop
from tests.unit.pipeline.driver import START, said, start

SEVERITIES = list(Severity)


def rounds(*severities: Severity) -> tuple[RetryRound, ...]:
    return tuple(RetryRound(number, severity, START) for number, severity in enumerate(severities, 1))


def test_pass_stops() -> None:
    decision = should_stop(Verdict.PASS, 0, 3)
    assert (decision.stop, decision.reason, decision.action) == (True, "quality-gate-passed", "NEXT")


@pytest.mark.parametrize("retry_count", [3, 4])
def test_used_up_retries_stop(retry_count: int) -> None:
    decision = should_stop(Verdict.FAIL, retry_count, 3)
    assert (decision.stop, decision.reason, decision.action) == (True, "max-retries-exhausted", "FORCE_NEXT")


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_stall_is_observed_and_does_not_stop(severity: Severity) -> None:
    decision = should_stop(Verdict.FAIL, 1, 3, rounds(Severity.HIGH, severity, severity))
    assert (decision.stop, decision.reason, decision.action) == (False, "convergence-stall-observed", "RETRY")
    assert severity in decision.note


def test_an_improvement_is_noted_and_does_not_stop() -> None:
    decision = should_stop(Verdict.FAIL, 1, 3, rounds(Severity.CRITICAL, Severity.LOW))
    assert (decision.stop, decision.action) == (False, StopAction.RETRY)
    assert decision.note == "better: CRITICAL became LOW"


@pytest.mark.parametrize("before", SEVERITIES)
@pytest.mark.parametrize("last", SEVERITIES)
def test_every_pair_of_rounds_has_its_reason(before: Severity, last: Severity) -> None:
    expected = StopReason.CONVERGENCE_STALL_OBSERVED
    if SEVERITIES.index(last) < SEVERITIES.index(before):
        expected = StopReason.SEVERITY_IMPROVING
    if SEVERITIES.index(last) > SEVERITIES.index(before):
        expected = StopReason.SEVERITY_WORSENING
    assert should_stop(Verdict.FAIL, 0, 3, rounds(before, last)).reason is expected


def test_a_stall_is_an_event_of_the_timeline() -> None:
    drive = start("ui-only")
    drive.complete("DESIGN")
    drive.complete("DEV")
    drive.complete("QA", said("FAIL", severity="HIGH"))
    drive.complete("DEV")
    answer = drive.complete("QA", said("FAIL", severity="HIGH"))
    assert answer.stop is not None
    assert answer.stop.reason is StopReason.CONVERGENCE_STALL_OBSERVED
    assert drive.last(EventName.CONVERGENCE_STALL).severity is Severity.HIGH
    assert [item.round for item in drive.pipeline.stages["QA"].history] == [1, 2]


def test_a_failed_stage_goes_back_to_dev() -> None:
    drive = start("ui-only")
    drive.complete("DESIGN")
    drive.complete("DEV")
    answer = drive.complete("QA", said("FAIL", severity="LOW"))
    assert answer.disposition is Disposition.RETURNED
    assert [shown.delegation_id for shown in answer.next] == ["DEV#2"]
    assert drive.last(EventName.STAGE_RETRY).returned.failed == ("QA",)


@pytest.mark.parametrize("stage", ["PLAN", "DEV"])
def test_a_stage_with_no_dev_before_it_repeats_itself_and_is_then_forced_on(stage: str) -> None:
    drive = start("standard")
    for before in ("PLAN", "ARCH"):
        if stage == "DEV":
            drive.complete(before)
    for _ in range(3):
        answer = drive.complete(stage, said("FAIL", "DEV"))
        assert answer.disposition is Disposition.REPEATED
        assert [shown.stage for shown in answer.next] == [stage]
    answer = drive.complete(stage, said("FAIL", "DEV"))
    assert answer.disposition is Disposition.ADVANCED
    assert drive.status(stage) is StageStatus.FAILED
    assert drive.pipeline.stages[stage].verdict is Verdict.FAIL


@pytest.mark.parametrize("route", ["NEXT", "COMPLETE", "BARRIER"])
def test_a_fail_that_asks_to_go_on_with_nowhere_to_return_is_forced_on(route: str) -> None:
    drive = start("standard")
    answer = drive.complete("PLAN", said("FAIL", route))
    assert answer.route is not None
    assert answer.route.was(Correction.FORCED_ON)
    assert answer.disposition is Disposition.ADVANCED


def test_a_forced_stage_ends_the_pipeline_with_failures() -> None:
    drive = start("fix")
    assert drive.complete("DEV", said("FAIL", "NEXT")).status is PipelineStatus.COMPLETED_WITH_FAILURES


def test_nothing_loops_without_bound() -> None:
    drive = start("full")
    steps = 0
    while drive.pipeline.is_live():
        stage = drive.pipeline.marked("a")[0]
        drive.complete(stage, said("FAIL", severity="CRITICAL"))
        steps += 1
        assert steps < 500
    assert drive.pipeline.head.status is PipelineStatus.COMPLETED_WITH_FAILURES
    assert all(known.retries <= 3 for known in drive.pipeline.stages.values())


def test_active_stages_after_dev_are_reset_too() -> None:
    nodes = [
        Node("DEV", kind_of("DEV")),
        Node("REVIEW", kind_of("REVIEW"), deps=("DEV",), on_fail="DEV"),
        Node("TEST", kind_of("TEST"), deps=("DEV",), on_fail="DEV"),
        Node("DOCS", kind_of("DOCS"), deps=("REVIEW", "TEST")),
    ]
    drive = start(graph=build_graph(nodes))
    drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL"))
    assert drive.status("TEST") is StageStatus.PENDING
    assert drive.complete("TEST").disposition is Disposition.IGNORED
    drive.complete("DEV")
    drive.complete("TEST")
    assert drive.status("DOCS") is StageStatus.PENDING
    assert [shown.stage for shown in drive.complete("REVIEW").next] == ["DOCS"]


def test_complete_before_the_end_goes_on() -> None:
    drive = start("standard")
    answer = drive.complete("PLAN", said("PASS", "COMPLETE"))
    assert answer.route is not None
    assert answer.route.was(Correction.COMPLETE_BEFORE_THE_END)
    assert answer.disposition is Disposition.ADVANCED


def test_complete_at_the_end_completes() -> None:
    assert start("fix").complete("DEV", said("PASS", "COMPLETE")).status is PipelineStatus.COMPLETED


def test_skipping_needs_a_stage_that_may_run_now() -> None:
    drive = start("standard")
    with pytest.raises(Refusal):
        drive.do(commands.SkipStage("p", "ARCH"))
    drive.do(commands.SkipStage("p", "PLAN", "known"))
    with pytest.raises(Refusal):
        drive.do(commands.SkipStage("p", "PLAN"))
    assert drive.status("ARCH") is StageStatus.READY


def test_a_pipeline_of_skips_completes_and_names_them() -> None:
    drive = start("fix")
    assert drive.do(commands.SkipStage("p", "DEV")).status is PipelineStatus.COMPLETED


def test_restart_runs_everything_after_the_stage_again() -> None:
    drive = start("standard")
    for stage in ("PLAN", "ARCH", "DEV", "REVIEW"):
        drive.complete(stage)
    drive.do(commands.RestartFrom("p", "ARCH", "wrong structure"))
    assert drive.pipeline.head.marks == "pr...."
    assert drive.complete("TEST").disposition is Disposition.IGNORED
    with pytest.raises(Refusal):
        drive.do(commands.RestartFrom("p", "DOCS"))


@pytest.mark.parametrize(
    "command", [commands.CancelPipeline("p"), commands.SkipStage("p", "DEV"), commands.RestartFrom("p", "DEV")]
)
def test_an_ended_pipeline_refuses_everything(command: object) -> None:
    drive = start("fix")
    drive.do(commands.CancelPipeline("p", "enough"))
    assert drive.pipeline.head.status is PipelineStatus.CANCELLED
    with pytest.raises(Refusal):
        drive.do(command)
    with pytest.raises(Refusal):
        drive.complete("DEV")


def test_a_pipeline_cannot_be_started_twice_and_none_is_not_found() -> None:
    drive = start("fix")
    with pytest.raises(Refusal, match="exists already"):
        drive.do(commands.StartPipeline("p", drive.pipeline.head.settings, drive.pipeline.graph, "seed"))
    drive.state = None
    with pytest.raises(Refusal, match="no pipeline"):
        drive.do(commands.CancelPipeline("p"))


def test_the_template_none_is_over_at_once() -> None:
    drive = start("none")
    assert drive.pipeline.head.status is PipelineStatus.COMPLETED
    assert not drive.pipeline.is_live()
