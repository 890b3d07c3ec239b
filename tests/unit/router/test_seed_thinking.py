"""Every sentence of the thinking router's specification that states a behaviour, and its table, exhaustively."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pointsman.services.router.domain.thinking import (
    FULL_STEPS,
    TABLE,
    Artifact,
    Envelope,
    ErrorCode,
    FileState,
    Latch,
    Need,
    Route,
    Snapshot,
    Status,
    is_secret,
    route_thinking,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PARSED, UNREADABLE, ABSENT = FileState.PARSED, FileState.UNREADABLE, FileState.ABSENT
BLOCKER = Artifact(PARSED, Status.OK, NOW - timedelta(hours=2), (Need.RESEARCH,))
RESEARCH = Artifact(PARSED, Status.OK, NOW - timedelta(hours=1))
DONE = Artifact(PARSED, Status.OK, NOW, finished=True)
LATCH = Latch(PARSED, NOW - timedelta(minutes=59), process_alive=True)


def route(**parts: Artifact | Latch) -> Envelope:
    return route_thinking(Snapshot(**parts), NOW)  # type: ignore[arg-type]


def test_a_young_latch_routes_to_local_analysis() -> None:
    envelope = route(latch=LATCH, blocker=BLOCKER, research=RESEARCH)
    assert (envelope.routed_to, envelope.status, envelope.error_code) == (Route.THINGKING, Status.OK, None)


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (Snapshot(latch=LATCH), "Recent failure detected - need blocker analysis"),
        (Snapshot(latch=Latch(UNREADABLE)), "Stale lock detected"),
        (Snapshot(), "No blocker card exists"),
        (Snapshot(blocker=BLOCKER), "Blocker needs external research"),
        (Snapshot(blocker=BLOCKER, research=RESEARCH), "Research complete, continue with delta/plan"),
        (Snapshot(research=replace(RESEARCH, status=Status.ERROR)), "Upstream error - cannot continue"),
    ],
)
def test_the_envelope_carries_the_reason_of_the_routing_rule(snapshot: Snapshot, reason: str) -> None:
    assert route_thinking(snapshot, NOW).reason == reason


def test_every_row_has_a_reason() -> None:
    assert [row.name for row in TABLE if not row.reason] == []


@pytest.mark.parametrize(
    "latch",
    [
        replace(LATCH, created_at=NOW - timedelta(hours=1)),
        replace(LATCH, process_alive=False),
        replace(LATCH, created_at=None),
        replace(LATCH, created_at=NOW + timedelta(minutes=5, seconds=1)),
        Latch(UNREADABLE),
    ],
)
def test_a_stale_latch_warns_and_still_routes_to_local_analysis(latch: Latch) -> None:
    envelope = route(latch=latch)
    assert (envelope.routed_to, envelope.status) == (Route.THINGKING, Status.OK)
    assert envelope.error_code is ErrorCode.STALE_LOCK
    assert "STALE_LOCK" in envelope.warn
    assert "by hand" in envelope.warn


def test_a_clock_that_is_five_minutes_ahead_is_no_reason_to_call_a_latch_stale() -> None:
    assert route(latch=replace(LATCH, created_at=NOW + timedelta(minutes=5))).error_code is None


def test_without_a_blocker_local_analysis_comes_first() -> None:
    assert route(research=RESEARCH).routed_to is Route.THINGKING


@pytest.mark.parametrize("need", list(Need))
def test_a_blocker_that_needs_research_or_a_new_plan_goes_to_the_web(need: Need) -> None:
    assert route(blocker=replace(BLOCKER, needs=(need,))).routed_to is Route.THINGKING_WEB


def test_a_blocker_with_status_error_still_routes_on_its_needs() -> None:
    assert route(blocker=replace(BLOCKER, status=Status.ERROR)).routed_to is Route.THINGKING_WEB


def test_research_older_than_the_blocker_does_not_satisfy_it() -> None:
    old = replace(RESEARCH, created_at=NOW - timedelta(hours=3))
    assert route(blocker=BLOCKER, research=old, delta=DONE, plan=DONE).rule == "needs_research"


@pytest.mark.parametrize(
    ("delta", "plan"),
    [
        (Artifact(), DONE),
        (replace(DONE, finished=False), DONE),
        (DONE, Artifact()),
        (DONE, replace(DONE, finished=False)),
    ],
)
def test_complete_research_with_incomplete_delta_or_plan_goes_on_at_the_web(delta: Artifact, plan: Artifact) -> None:
    envelope = route(blocker=BLOCKER, research=RESEARCH, delta=delta, plan=plan)
    assert (envelope.routed_to, envelope.rule) == (Route.THINGKING_WEB, "unfinished")


def test_everything_ready_means_execute_the_plan_and_is_no_error() -> None:
    envelope = route(blocker=BLOCKER, research=RESEARCH, delta=DONE, plan=DONE)
    assert (envelope.routed_to, envelope.status, envelope.next) == (None, Status.OK, "execute the plan")


def test_research_with_status_error_stops_before_anything_else_but_a_leak() -> None:
    failed = replace(RESEARCH, status=Status.ERROR)
    envelope = route(latch=LATCH, blocker=BLOCKER, research=failed)
    assert (envelope.routed_to, envelope.status, envelope.error_code) == (None, Status.ERROR, ErrorCode.SEARCH_FAILED)


def test_a_secret_in_env_check_stops_and_is_not_repeated() -> None:
    leaking = replace(BLOCKER, env_check=(("DB", "postgres://u:pw@host"),))
    envelope = route(latch=LATCH, blocker=leaking, research=replace(RESEARCH, status=Status.ERROR))
    assert (envelope.routed_to, envelope.status, envelope.error_code) == (None, Status.ERROR, ErrorCode.SECRET_LEAK)
    assert "pw@host" not in str(envelope)


@pytest.mark.parametrize(
    "value",
    ["https://x", "sk-abcdefgh12345678", "ghp_0123456789abcdef0123", "AKIAABCDEFGH1234", "eyJhbGciOi.J9abcdef.x",
     "0123456789abcdef0123456789abcdef", "Bearer abcdefgh12345", "-----BEGIN KEY", "a1b2c3d4e5f6g7h8i9j0"],
)  # fmt: skip
def test_urls_keys_and_tokens_are_secrets(value: str) -> None:
    assert is_secret(value)


@pytest.mark.parametrize("value", ["SET", "UNSET", "yes", "missing", "true", "3.11", "not configured on this machine"])
def test_plain_words_are_no_secrets(value: str) -> None:
    assert not is_secret(value)


def test_other_values_than_set_and_unset_are_a_warning_that_names_no_value() -> None:
    envelope = route(blocker=replace(BLOCKER, env_check=(("A", "SET"), ("B", "maybe"))))
    assert envelope.routed_to is Route.THINGKING_WEB
    assert "B" in envelope.warn
    assert "maybe" not in envelope.warn


@pytest.mark.parametrize("name", ["postgres://u:pw@host", "a.sk-abcdefgh12345678", "x[0].a1b2c3d4e5f6g7h8i9j0"])
@pytest.mark.parametrize("value", ["SET", "maybe"])
def test_a_secret_in_the_place_of_a_name_stops_and_is_not_repeated(name: str, value: str) -> None:
    envelope = route(blocker=replace(BLOCKER, env_check=((name, value),)))
    assert envelope.error_code is ErrorCode.SECRET_LEAK
    assert name not in str(envelope)


@pytest.mark.parametrize("name", ["AWS_S3_BUCKET_NAME_EU_WEST_1", "services.api_v2.DATABASE_URL", "list[0].OAUTH2_ID"])
def test_a_long_name_of_many_words_is_no_secret(name: str) -> None:
    assert route(blocker=replace(BLOCKER, env_check=((name, "SET"),))).error_code is None


def test_of_two_values_of_one_name_the_secret_counts() -> None:
    twice = (("A", "sk-abcdefgh12345678"), ("A", "SET"))
    assert route(blocker=replace(BLOCKER, env_check=twice)).error_code is ErrorCode.SECRET_LEAK


@pytest.mark.parametrize("name", ["trail", "delta", "plan"])
def test_what_nothing_needs_is_not_named_as_missing(name: str) -> None:
    envelope = route(**{"blocker": replace(BLOCKER, needs=()), name: Artifact(UNREADABLE)})
    assert envelope.missing_inputs == ("research.latest.yaml",)


def test_nothing_to_go_on_stops_and_names_what_is_missing() -> None:
    envelope = route(blocker=replace(BLOCKER, needs=()))
    assert (envelope.routed_to, envelope.error_code) == (None, ErrorCode.MISSING_ARTIFACT)
    assert envelope.missing_inputs == ("research.latest.yaml",)


@pytest.mark.parametrize("name", ["blocker", "research", "delta", "plan"])
def test_an_artifact_that_cannot_be_parsed_stops_when_it_is_needed(name: str) -> None:
    parts = {"blocker": BLOCKER, "research": RESEARCH, "delta": DONE, "plan": DONE, name: Artifact(UNREADABLE)}
    envelope = route(**parts)
    assert (envelope.status, envelope.error_code) == (Status.ERROR, ErrorCode.MISSING_ARTIFACT)
    assert envelope.missing_inputs == (f"{name}.latest.yaml",)


def test_an_unreadable_trail_or_plan_that_nobody_needs_stops_nothing() -> None:
    assert (
        route(blocker=BLOCKER, trail=Artifact(UNREADABLE), plan=Artifact(UNREADABLE)).routed_to is Route.THINGKING_WEB
    )


def test_the_envelope_names_what_was_read_and_writes_nothing() -> None:
    envelope = route(blocker=BLOCKER, research=RESEARCH)
    assert envelope.artifacts_read == ("blocker.latest.yaml", "research.latest.yaml")
    assert (envelope.artifacts_written, envelope.command, envelope.timestamp) == ((), "thinking", NOW)


def test_the_full_workflow_is_local_analysis_and_then_the_web() -> None:
    assert FULL_STEPS == (
        ("thingking", ("blocker.latest.yaml", "trail.latest.yaml")),
        ("thingking_web", ("research.latest.yaml", "delta.latest.yaml", "plan.latest.yaml")),
    )


LATCHES = (Latch(), LATCH, replace(LATCH, process_alive=False), Latch(UNREADABLE))
BLOCKERS = (
    Artifact(),
    Artifact(UNREADABLE),
    BLOCKER,
    replace(BLOCKER, needs=()),
    replace(BLOCKER, status=Status.ERROR),
)
RESEARCHES = (
    Artifact(),
    Artifact(UNREADABLE),
    RESEARCH,
    replace(RESEARCH, status=Status.ERROR),
    replace(RESEARCH, created_at=NOW - timedelta(days=1)),
)
ENDS = (Artifact(), Artifact(UNREADABLE), DONE, replace(DONE, finished=False))


def test_every_snapshot_routes_to_one_of_three_places_and_only_a_stop_is_an_error() -> None:
    rows = set()
    for latch, blocker, research, delta, plan in itertools.product(LATCHES, BLOCKERS, RESEARCHES, ENDS, ENDS):
        envelope = route(latch=latch, blocker=blocker, research=research, delta=delta, plan=plan)
        rows.add(envelope.rule)
        assert envelope.routed_to in (Route.THINGKING, Route.THINGKING_WEB, None)
        assert (envelope.status is Status.ERROR) == (envelope.routed_to is None and envelope.rule != "ready")
        if research.status is Status.ERROR:
            assert envelope.rule == "search_failed"
    assert rows == {row.name for row in TABLE} - {"secret_leak"}
