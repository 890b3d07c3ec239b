"""Seed 004: barriers, returns across them, timeouts."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Node, build_graph, kind_of
from pointsman.services.pipeline.domain.enums import (
    Correction,
    Disposition,
    EventName,
    PipelineStatus,
    RiskKind,
    Severity,
    StageKind,
    StageStatus,
    Verdict,
)
from tests.unit.pipeline.driver import STRICT, Drive, at_barrier, said, start


def at_post_qa() -> Drive:
    """A full pipeline whose QA and E2E are active."""
    drive = start("full")
    for stage in ("PLAN", "ARCH", "DESIGN", "DEV", "REVIEW", "TEST"):
        drive.complete(stage)
    return drive


def test_a_barrier_is_created_when_stages_run_side_by_side() -> None:
    drive = start("quick-dev")
    answer = drive.complete("DEV")
    created = drive.last(EventName.BARRIER_CREATED)
    assert (created.group, created.members, created.number) == ("post-dev", ("REVIEW", "TEST"), 1)
    assert drive.timers["barrier:post-dev"].due_at == created.due_at
    assert [view.stage for view in answer.next] == ["REVIEW", "TEST"]


def test_a_barrier_that_is_not_full_waits() -> None:
    drive = at_barrier()
    answer = drive.complete("TEST")
    assert (answer.disposition, answer.next) == (Disposition.WAIT, ())
    waiting = drive.last(EventName.BARRIER_WAITING)
    assert (waiting.stage, waiting.arrived, waiting.total) == ("TEST", 1, 2)
    assert drive.count(EventName.BARRIER_RESOLVED) == 0


def test_a_full_barrier_with_only_passes_goes_on() -> None:
    drive = start("standard")
    for stage in ("PLAN", "ARCH", "DEV", "TEST"):
        drive.complete(stage)
    answer = drive.complete("REVIEW")
    resolved = drive.last(EventName.BARRIER_RESOLVED)
    assert (resolved.verdict, resolved.ready) == (Verdict.PASS, ("DOCS",))
    assert [view.delegation_id for view in answer.next] == ["DOCS#1"]
    assert "barrier:post-dev" not in drive.timers


def test_a_full_barrier_with_a_fail_goes_back_worst_case_wins() -> None:
    drive = at_barrier()
    drive.put("REVIEW", "a" * 64)
    drive.put("TEST", "b" * 64)
    drive.complete("REVIEW", said("FAIL", severity="MEDIUM", hint="small"))
    answer = drive.complete("TEST", said("FAIL", severity="CRITICAL", hint="big"))
    resolved = drive.last(EventName.BARRIER_RESOLVED)
    assert (resolved.verdict, resolved.severity) == (Verdict.FAIL, Severity.CRITICAL)
    assert resolved.failed == ("REVIEW", "TEST")
    assert answer.disposition is Disposition.RETURNED
    assert [view.stage for view in answer.next] == ["DEV"]
    assert answer.next[0].context_handles == ("context:MERGED",)
    returned = drive.pipeline.stages["DEV"].returned
    assert returned is not None
    assert [report.stage for report in returned.reports] == ["REVIEW", "TEST"]
    assert returned.hint == "big"
    for stage, hint in (("REVIEW", "small"), ("TEST", "big")):
        (text,) = drive.pipeline.stages[stage].reflection
        assert f"Failed stage: {stage}" in text
        assert hint in text


def test_a_full_barrier_with_one_fail_of_two_goes_back() -> None:
    drive = at_barrier()
    drive.complete("REVIEW", said("FAIL"))
    answer = drive.complete("TEST", said("PASS"))
    assert answer.disposition is Disposition.RETURNED
    assert drive.status("TEST") is StageStatus.PENDING
    assert drive.pipeline.stages["REVIEW"].retries == 1
    assert drive.pipeline.stages["TEST"].retries == 0


def test_a_barrier_times_out_and_goes_on_with_a_warning() -> None:
    drive = at_barrier()
    drive.complete("TEST")
    answer = drive.fire("barrier:post-dev")
    assert answer.status is PipelineStatus.COMPLETED_WITH_FAILURES
    assert drive.last(EventName.BARRIER_TIMED_OUT).absent == ("REVIEW",)
    assert drive.status("REVIEW") is StageStatus.TIMED_OUT


def test_a_barrier_that_times_out_leaves_its_next_stage_waiting_to_be_delegated() -> None:
    drive = start("standard", barrier_timeout_seconds=3600)
    for stage in ("PLAN", "ARCH", "DEV"):
        drive.complete(stage)
    begun = drive.now
    answer = drive.fire("barrier:post-dev")
    assert (drive.now - begun).total_seconds() == 3600
    assert [(view.stage, view.delegation_id) for view in answer.next] == [("DOCS", "")]
    assert drive.status("DOCS") is StageStatus.READY


def test_the_default_timeout_is_five_minutes_from_creation() -> None:
    drive = at_barrier()
    assert (drive.timers["barrier:post-dev"].due_at - drive.now).total_seconds() == 300


def test_a_return_that_nobody_took_before_the_timeout_is_no_longer_pending() -> None:
    nodes = [
        *(Node(name, kind_of(name), next=("DEV",), barrier="first") for name in ("PLAN", "ARCH")),
        Node("DEV", kind_of("DEV")),
    ]
    drive = start(graph=build_graph(nodes))
    drive.complete("ARCH")
    assert drive.complete("PLAN", said("FAIL"), auto=None).disposition is Disposition.RETURNED
    assert drive.pipeline.head.returns == ("PLAN",)
    drive.fire("barrier:first")
    assert list(drive.pipeline.head.returns) == []
    assert drive.delegate("DEV").delegation_id == "DEV#1"


def test_a_fail_that_arrived_before_the_timeout_goes_back() -> None:
    drive = at_barrier()
    drive.complete("REVIEW", said("FAIL", severity="HIGH"))
    answer = drive.fire("barrier:post-dev")
    assert [view.stage for view in answer.next] == ["DEV"]
    assert drive.pipeline.stages["REVIEW"].reflection
    assert not drive.pipeline.stages["TEST"].reflection


def test_a_late_result_is_recorded_and_ignored() -> None:
    drive = start("standard")
    for stage in ("PLAN", "ARCH", "DEV"):
        drive.complete(stage)
    drive.fire("barrier:post-dev")
    before = drive.pipeline.copy().head
    answer = drive.complete("REVIEW", said("FAIL"))
    assert answer.disposition is Disposition.IGNORED
    assert drive.last(EventName.COMPLETION_IGNORED).verdict == "FAIL"
    assert drive.pipeline.head == before


def test_a_result_that_comes_after_the_end_is_recorded_and_ignored_if_the_barrier_did_not_wait_for_it() -> None:
    drive = at_barrier()
    drive.complete("TEST")
    assert drive.fire("barrier:post-dev").status is PipelineStatus.COMPLETED_WITH_FAILURES
    before = drive.pipeline.copy().head
    answer = drive.complete("REVIEW", said("FAIL"))
    assert (answer.disposition, answer.status) == (Disposition.IGNORED, PipelineStatus.COMPLETED_WITH_FAILURES)
    assert [stage for stage, _ in answer.risks] == ["REVIEW"], (
        "whoever learns of the end by this answer learns its risks"
    )
    assert drive.last(EventName.COMPLETION_IGNORED).stage == "REVIEW"
    assert drive.pipeline.head == before
    for stage, agent in (("TEST", "agent"), ("REVIEW", "thief")):
        with pytest.raises(Refusal):
            drive.do(commands.CompleteStage("p", f"{stage}#1", agent, "seed", said()))


def test_a_timer_of_a_resolved_or_older_barrier_does_nothing() -> None:
    drive = at_barrier()
    old = drive.timers["barrier:post-dev"]
    drive.complete("REVIEW", said("FAIL"))
    drive.complete("TEST")
    drive.complete("DEV")
    before = len(drive.events)
    drive.timers["late"] = old
    drive.fire("late")
    assert len(drive.events) == before
    assert drive.last(EventName.BARRIER_CREATED).number == 2


def test_a_return_across_a_barrier_resets_it() -> None:
    drive = at_post_qa()
    drive.complete("QA", said("FAIL", severity="LOW"))
    drive.complete("E2E")
    assert [drive.status(stage) for stage in ("REVIEW", "TEST", "QA", "E2E")] == [StageStatus.PENDING] * 4
    assert drive.status("DEV") is StageStatus.ACTIVE
    assert drive.pipeline.head.barriers == {}
    assert drive.timers == {}
    for stage in ("DEV", "REVIEW", "TEST", "QA", "E2E"):
        drive.complete(stage)
    assert drive.complete("DOCS").status is PipelineStatus.COMPLETED
    assert drive.count(EventName.BARRIER_RESOLVED) == 4


def test_a_barrier_without_next_that_passes_completes_the_pipeline() -> None:
    drive = at_barrier()
    drive.complete("REVIEW")
    assert drive.complete("TEST").status is PipelineStatus.COMPLETED


def test_retry_caps_hold_after_a_merge_too() -> None:
    drive = at_barrier()
    for _ in range(3):
        drive.complete("REVIEW", said("FAIL"))
        assert drive.complete("TEST").disposition is Disposition.RETURNED
        drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL"))
    answer = drive.complete("TEST")
    assert answer.disposition is Disposition.ENDED
    assert drive.last(EventName.RETRY_EXHAUSTED).stages == ("REVIEW",)
    assert answer.risks == (("REVIEW", RiskKind.FORCED_ON),)


def test_a_merged_fail_goes_back_while_one_failing_stage_has_retries_left() -> None:
    drive = at_barrier()
    for _ in range(3):
        drive.complete("REVIEW", said("FAIL"))
        drive.complete("TEST")
        drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL"))
    answer = drive.complete("TEST", said("FAIL"))
    assert answer.disposition is Disposition.RETURNED
    assert (drive.pipeline.stages["REVIEW"].retries, drive.pipeline.stages["TEST"].retries) == (3, 1)


def test_strict_a_timed_out_quality_stage_waits_for_a_person() -> None:
    drive = at_barrier(policy=STRICT)
    drive.complete("TEST")
    answer = drive.fire("barrier:post-dev")
    assert answer.status is PipelineStatus.ESCALATED
    assert drive.status("REVIEW") is StageStatus.ESCALATED
    assert drive.last(EventName.STAGE_ESCALATED).cause is Correction.BARRIER_TIMEOUT
    with pytest.raises(Refusal) as refused:
        drive.delegate("REVIEW")
    assert refused.value.reason is Reason.STATE_FORBIDS
    done = drive.do(commands.SkipStage("p", "REVIEW", "known to be fine"))
    assert done.status is PipelineStatus.COMPLETED


def test_strict_used_up_retries_after_a_merge_wait_for_a_person() -> None:
    drive = at_barrier(policy=STRICT)
    for _ in range(3):
        drive.complete("REVIEW", said("FAIL"))
        drive.complete("TEST")
        drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL"))
    assert drive.complete("TEST").disposition is Disposition.ESCALATED
    assert drive.count(EventName.BARRIER_RESOLVED) == 3
    restarted = drive.do(commands.RestartFrom("p", "REVIEW", "look again"))
    assert restarted.status is PipelineStatus.ACTIVE
    assert drive.pipeline.stages["REVIEW"].retries == 0
    drive.delegate("REVIEW")
    answer = drive.complete("REVIEW")
    assert answer.status is PipelineStatus.COMPLETED
    assert drive.count(EventName.BARRIER_RESOLVED) == 4


def test_strict_skipping_after_used_up_retries_keeps_the_failure() -> None:
    drive = at_barrier(policy=STRICT)
    for _ in range(3):
        drive.complete("REVIEW", said("FAIL"))
        drive.complete("TEST")
        drive.complete("DEV")
    drive.complete("REVIEW", said("FAIL"))
    drive.complete("TEST")
    assert drive.do(commands.SkipStage("p", "REVIEW")).status is PipelineStatus.COMPLETED_WITH_FAILURES


def test_strict_an_unreadable_quality_stage_waits_for_a_person() -> None:
    drive = start("review-only", policy=STRICT)
    drive.complete("REVIEW", ())
    drive.complete("REVIEW", ())
    answer = drive.complete("REVIEW", ())
    assert answer.disposition is Disposition.ESCALATED
    assert drive.last(EventName.STAGE_ESCALATED).cause is Correction.CRASH_LIMIT
    assert drive.do(commands.CancelPipeline("p")).status is PipelineStatus.CANCELLED


def test_strict_an_unreadable_stage_that_was_tried_again_already_waits_for_a_person_at_once() -> None:
    drive = start("review-only", policy=STRICT)
    assert drive.complete("REVIEW", (), tried_again=True).disposition is Disposition.ESCALATED
    assert start("review-only").complete("REVIEW", (), tried_again=True).disposition is Disposition.REPEATED


def test_a_lone_rerun_of_a_member_does_not_wait_for_ever() -> None:
    drive = start("standard")
    for stage in ("PLAN", "ARCH", "DEV", "REVIEW", "TEST"):
        drive.complete(stage)
    drive.do(commands.RestartFrom("p", "REVIEW"))
    assert drive.status("DOCS") is StageStatus.PENDING
    drive.delegate("REVIEW")
    answer = drive.complete("REVIEW")
    assert [view.stage for view in answer.next] == ["DOCS"]


def test_a_skipped_member_counts_as_arrived() -> None:
    drive = start("standard")
    for stage in ("PLAN", "ARCH", "DEV", "REVIEW"):
        drive.complete(stage)
    answer = drive.do(commands.SkipStage("p", "TEST"))
    assert [view.stage for view in answer.next] == ["DOCS"]


def test_strict_a_fail_that_arrived_before_the_timeout_goes_back_too() -> None:
    drive = at_barrier(policy=STRICT)
    drive.complete("REVIEW", said("FAIL"))
    answer = drive.fire("barrier:post-dev")
    assert answer.status is PipelineStatus.ACTIVE
    assert [view.stage for view in answer.next] == ["DEV"]


def test_a_return_from_beside_a_barrier_clears_it() -> None:
    nodes = [
        Node("DEV", kind_of("DEV")),
        Node("DOCS", kind_of("DOCS"), deps=("DEV",), on_fail="DEV"),
        Node("REVIEW", kind_of("REVIEW"), deps=("DEV",), on_fail="DEV", barrier="both"),
        Node("TEST", kind_of("TEST"), deps=("DEV",), on_fail="DEV", barrier="both"),
    ]
    drive = start(graph=build_graph(nodes))
    drive.complete("DEV")
    drive.complete("REVIEW")
    assert drive.complete("DOCS", said("FAIL")).disposition is Disposition.RETURNED
    assert drive.pipeline.head.barriers == {}
    assert drive.timers == {}
    drive.complete("DEV")
    assert drive.last(EventName.BARRIER_CREATED).number == 2
    assert drive.complete("TEST").disposition is Disposition.WAIT


def test_strict_nothing_new_is_delegated_while_a_person_is_awaited() -> None:
    nodes = [
        Node("REVIEW", kind_of("REVIEW")),
        Node("PLAN", kind_of("PLAN"), next=("DOCS",)),
        Node("DOCS", kind_of("DOCS")),
    ]
    drive = start(graph=build_graph(nodes), policy=STRICT)
    for _ in range(3):
        drive.complete("REVIEW", ())
    answer = drive.complete("PLAN")
    assert [(view.stage, view.delegation_id) for view in answer.next] == [("DOCS", "")]
    drive.do(commands.SkipStage("p", "REVIEW"))
    assert drive.delegate("DOCS").delegation_id == "DOCS#1"


def test_a_barrier_that_times_out_beside_a_stage_that_waits_for_a_person_is_resolved() -> None:
    nodes = [
        Node("REVIEW", StageKind.REVIEW, next=("END",)),
        Node("DOCS:a", StageKind.DOCS, next=("AFTER",), barrier="both"),
        Node("DOCS:b", StageKind.DOCS, next=("AFTER",), barrier="both"),
        Node("AFTER", StageKind.DOCS, next=("END",)),
        Node("END", StageKind.DOCS),
    ]
    drive = start(graph=build_graph(nodes), policy=STRICT)
    drive.complete("REVIEW", said("never heard of it"))
    assert drive.status("REVIEW") is StageStatus.ESCALATED
    drive.fire("barrier:both")
    assert drive.count(EventName.BARRIER_RESOLVED) == 1
    assert drive.status("AFTER") is StageStatus.READY
    assert drive.do(commands.SkipStage("p", "REVIEW")).status is PipelineStatus.ACTIVE
