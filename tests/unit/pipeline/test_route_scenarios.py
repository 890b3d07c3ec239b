"""Seed 004: the route protocol, schema validation and policy enforcement."""

import json

import pytest

from pointsman.services.pipeline.domain.delegation import directive
from pointsman.services.pipeline.domain.enums import (
    QUALITY,
    Correction,
    Disposition,
    EventName,
    PipelineStatus,
    RouteSource,
    RouteTarget,
    Severity,
    StageKind,
    StageStatus,
    Verdict,
)
from pointsman.services.pipeline.domain.route import EffectiveRoute, ReportedRoute, repair
from pointsman.services.pipeline.formats.route_marker import parse_route
from tests.unit.pipeline.driver import at_barrier, said, start


def marker(**fields: object) -> str:
    return f"All done.\n<!-- PIPELINE_ROUTE: {json.dumps(fields)} -->\n"


def codes(route: EffectiveRoute | None) -> list[Correction]:
    assert route is not None
    return [warning.code for warning in route.warnings]


def test_a_well_formed_pipeline_route_is_parsed() -> None:
    text = marker(
        verdict="FAIL", route="DEV", severity="HIGH", context_file="/x/report.md", hint="look", barrierGroup="post-dev"
    )
    assert parse_route(text) == ReportedRoute(
        RouteSource.MARKER, "FAIL", "DEV", "HIGH", "/x/report.md", "look", "post-dev", None
    )


@pytest.mark.parametrize("text", ["", "no marker", "<!-- PIPELINE_ROUTE: {broken -->", "<!-- PIPELINE_ROUTE: [] -->"])
def test_a_missing_or_broken_route_parses_to_none(text: str) -> None:
    assert parse_route(text) is None


@pytest.mark.parametrize("nonce", ["", "n" * 32])
def test_the_template_of_our_own_directive_never_parses_as_a_route(nonce: str) -> None:
    told = directive("REVIEW", None, (), nonce)
    assert "PIPELINE_ROUTE" in told
    assert parse_route(told) is None
    failed = marker(verdict="FAIL", route="DEV", severity="HIGH")
    assert parse_route(f"{failed}\nI was told: {told}") == parse_route(failed)


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "PASS or FAIL", "route": "NEXT"},
        {"verdict": "PASS|FAIL", "route": "NEXT"},
        {"verdict": " pass / fail ", "route": "NEXT"},
        {"verdict": "PASS", "route": "NEXT|DEV"},
        {"verdict": "PASS", "route": "NEXT, DEV, BARRIER, COMPLETE or ABORT"},
        {"verdict": "PASS", "route": "NEXT | DEV | BARRIER"},
    ],
    ids=str,
)
def test_a_marker_whose_words_are_still_to_be_chosen_never_parses_as_a_route(fields: dict[str, str]) -> None:
    assert parse_route(marker(**fields)) is None


def test_an_impl_stage_without_a_route_falls_back_to_pass_and_next() -> None:
    drive = start("standard")
    answer = drive.complete("PLAN", ())
    assert answer.route is not None
    assert (answer.route.verdict, answer.route.route) == (Verdict.PASS, RouteTarget.NEXT)
    assert answer.route.source is RouteSource.FALLBACK
    assert not answer.route.degraded
    assert EventName.ROUTE_FALLBACK in drive.names()
    assert [view.stage for view in answer.next] == ["ARCH"]


def test_a_quality_stage_without_a_route_is_delegated_again() -> None:
    drive = at_barrier()
    answer = drive.complete("REVIEW", ())
    assert answer.disposition is Disposition.REPEATED
    assert [view.delegation_id for view in answer.next] == ["REVIEW#2"]
    assert drive.pipeline.stages["REVIEW"].crashes == 1
    assert drive.status("REVIEW") is StageStatus.ACTIVE


def test_a_quality_stage_without_a_route_three_times_passes_degraded() -> None:
    drive = start("review-only")
    drive.complete("REVIEW", ())
    drive.complete("REVIEW", ())
    answer = drive.complete("REVIEW", ())
    assert answer.disposition is Disposition.ENDED
    assert answer.route is not None
    assert answer.route.degraded
    assert answer.route.verdict is Verdict.PASS
    assert Correction.CRASH_LIMIT in codes(answer.route)
    assert drive.count(EventName.AGENT_CRASH) == 1
    assert drive.pipeline.head.status is PipelineStatus.COMPLETED_WITH_FAILURES


def test_crashes_count_only_in_a_row() -> None:
    drive = start("quick-dev")
    drive.complete("DEV")
    drive.complete("TEST", ())
    drive.complete("TEST", ())
    drive.complete("TEST", said("FAIL"))
    assert drive.pipeline.stages["TEST"].crashes == 0


@pytest.mark.parametrize("kind", list(StageKind))
@pytest.mark.parametrize("verdict", ["MAYBE", "", None, "(int)", "РASS"])
def test_an_invalid_verdict_is_repaired_to_pass(kind: StageKind, verdict: str | None) -> None:
    route = repair(ReportedRoute(RouteSource.MARKER, verdict=verdict, route="NEXT"), kind)
    assert route.verdict is Verdict.PASS
    assert codes(route) == [Correction.VERDICT_REPAIRED]
    assert route.degraded is (kind in QUALITY)


@pytest.mark.parametrize(("verdict", "target"), [("PASS", RouteTarget.NEXT), ("FAIL", RouteTarget.DEV)])
@pytest.mark.parametrize("said_route", ["HOME", "", None, "next!"])
def test_an_invalid_route_is_repaired_to_its_default(verdict: str, target: RouteTarget, said_route: str | None) -> None:
    route = repair(
        ReportedRoute(RouteSource.MARKER, verdict=verdict, route=said_route, severity="LOW"), StageKind.REVIEW
    )
    assert route.route is target
    assert codes(route) == [Correction.ROUTE_REPAIRED]


def test_a_fail_without_severity_is_medium() -> None:
    route = repair(ReportedRoute(RouteSource.MARKER, verdict="FAIL", route="DEV"), StageKind.REVIEW)
    assert route.severity is Severity.MEDIUM
    assert codes(route) == [Correction.SEVERITY_REPAIRED]


def test_words_count_in_any_case_but_not_in_look_alike_letters() -> None:
    route = repair(ReportedRoute(RouteSource.MARKER, verdict=" fail ", route="dev", severity="High"), StageKind.DEV)
    assert (route.verdict, route.route, route.severity) == (Verdict.FAIL, RouteTarget.DEV, Severity.HIGH)
    assert repair(ReportedRoute(RouteSource.MARKER, verdict="FАIL"), StageKind.DEV).verdict is Verdict.PASS


def test_texts_are_bounded() -> None:
    words = ReportedRoute(
        RouteSource.MARKER, "PASS", "NEXT", hint="h" * 201, context_file="c" * 1025, barrier_group="b" * 65
    )
    route = repair(words, StageKind.DEV)
    assert (len(route.hint), route.context_file, route.barrier_group) == (200, "", "")
    assert codes(route) == [Correction.HINT_CUT, Correction.CONTEXT_FILE_DROPPED, Correction.BARRIER_GROUP_DROPPED]
    fits = ReportedRoute(
        RouteSource.MARKER, "PASS", "NEXT", hint="h" * 200, context_file="c" * 1024, barrier_group="b" * 64
    )
    assert codes(repair(fits, StageKind.DEV)) == []


def test_pass_with_dev_goes_on() -> None:
    drive = start("ui-only")
    drive.complete("DESIGN")
    drive.complete("DEV")
    answer = drive.complete("QA", said("PASS", "DEV"))
    assert answer.route is not None
    assert answer.route.route is RouteTarget.NEXT
    assert codes(answer.route) == [Correction.PASS_CANNOT_RETURN]
    assert drive.last(EventName.ROUTE_CORRECTED).stage == "QA"


def test_dev_with_retries_used_up_goes_on() -> None:
    drive = start("ui-only")
    drive.complete("DESIGN")
    drive.complete("DEV")
    for _ in range(3):
        assert drive.complete("QA", said("FAIL", severity="HIGH")).disposition is Disposition.RETURNED
        drive.complete("DEV")
    answer = drive.complete("QA", said("FAIL", severity="HIGH"))
    assert answer.route is not None
    assert answer.route.route is RouteTarget.NEXT
    assert Correction.RETRY_EXHAUSTED in codes(answer.route)
    assert drive.last(EventName.RETRY_EXHAUSTED).stages == ("QA",)
    assert drive.pipeline.stages["QA"].retries == 3
    assert drive.pipeline.head.status is PipelineStatus.COMPLETED_WITH_FAILURES


def test_a_barrier_member_waits_whatever_it_asked_for() -> None:
    drive = at_barrier()
    answer = drive.complete("REVIEW", said("PASS", "NEXT"))
    assert answer.route is not None
    assert (answer.route.route, answer.route.barrier_group) == (RouteTarget.BARRIER, "post-dev")
    assert codes(answer.route) == [Correction.BARRIER_MEMBER]


def test_dev_without_a_dev_stage_goes_on() -> None:
    drive = start("review-only")
    answer = drive.complete("REVIEW", said("FAIL", "DEV", severity="CRITICAL"))
    assert answer.route is not None
    assert answer.route.route is RouteTarget.NEXT
    assert codes(answer.route) == [Correction.NO_DEV_STAGE]
    assert drive.pipeline.head.status is PipelineStatus.COMPLETED_WITH_FAILURES


def test_the_old_verdict_is_a_fallback_and_says_so() -> None:
    drive = start("review-only")
    reported = parse_route("<!-- PIPELINE_VERDICT: FAIL:HIGH -->")
    assert reported == ReportedRoute(RouteSource.OLD_VERDICT, verdict="FAIL", severity="HIGH")
    answer = drive.complete("REVIEW", (reported,))
    assert answer.route is not None
    assert answer.route.source is RouteSource.OLD_VERDICT
    assert answer.route.severity is Severity.HIGH
    assert codes(answer.route)[0] is Correction.OLD_VERDICT


def test_a_route_wins_over_an_old_verdict_that_comes_later() -> None:
    text = marker(verdict="FAIL", route="DEV") + "<!-- PIPELINE_VERDICT: PASS -->"
    reported = parse_route(text)
    assert reported is not None
    assert reported.source is RouteSource.MARKER


def test_abort_stops_a_barrier_member_at_once() -> None:
    drive = at_barrier()
    answer = drive.complete("REVIEW", said("FAIL", "ABORT", hint="licence"))
    assert answer.disposition is Disposition.ENDED
    assert drive.pipeline.head.status is PipelineStatus.ABORTED
    assert drive.status("TEST") is StageStatus.ACTIVE
    assert drive.last(EventName.PIPELINE_ABORTED).stage == "REVIEW"
    assert list(drive.timers) == ["clean-up"]


def test_a_route_without_the_nonce_does_not_count_when_one_is_required() -> None:
    drive = start("review-only", require_nonce=True)
    nonce = drive.pipeline.stages["REVIEW"].nonce
    assert drive.complete("REVIEW", said("PASS")).disposition is Disposition.REPEATED
    assert drive.complete("REVIEW", said("PASS", nonce=nonce)).disposition is Disposition.REPEATED
    both = (*said("FAIL", nonce="forged"), *said("PASS", nonce=drive.pipeline.stages["REVIEW"].nonce))
    answer = drive.complete("REVIEW", both)
    assert answer.route is not None
    assert answer.route.verdict is Verdict.PASS
    assert drive.pipeline.head.status is PipelineStatus.COMPLETED
