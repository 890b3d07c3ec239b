"""Stage kind × verdict × route × severity × retries × barrier state × policy, each against a table."""

import itertools
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Node, build_graph
from pointsman.services.pipeline.domain.enums import (
    LIVE,
    QUALITY,
    Disposition,
    EventName,
    PipelineStatus,
    Policy,
    RouteTarget,
    Severity,
    StageKind,
    StageStatus,
    Verdict,
)
from pointsman.services.pipeline.domain.transitions import TRANSITIONS
from tests.unit.pipeline.driver import Drive, said, start

ADVANCED, WAIT, RETURNED = Disposition.ADVANCED, Disposition.WAIT, Disposition.RETURNED
REPEATED, ENDED, ESCALATED = Disposition.REPEATED, Disposition.ENDED, Disposition.ESCALATED
FORCED = "forced on, or escalated where a quality stage is strict"
PASS, FAIL = Verdict.PASS, Verdict.FAIL


class Case(NamedTuple):
    """What decides, besides the route: where the stage stands, what it says, whether it may still go back."""

    barrier: str
    verdict: Verdict
    retries_left: bool


TABLE: dict[Case, Disposition | str] = {
    Case("none", PASS, True): ADVANCED,
    Case("none", PASS, False): ADVANCED,
    Case("none", FAIL, True): RETURNED,
    Case("none", FAIL, False): FORCED,
    Case("first of two", PASS, True): WAIT,
    Case("first of two", PASS, False): WAIT,
    Case("first of two", FAIL, True): WAIT,
    Case("first of two", FAIL, False): WAIT,
    Case("after a pass", PASS, True): ADVANCED,
    Case("after a pass", PASS, False): ADVANCED,
    Case("after a pass", FAIL, True): RETURNED,
    Case("after a pass", FAIL, False): FORCED,
    Case("after a fail", PASS, True): RETURNED,
    Case("after a fail", PASS, False): RETURNED,
    Case("after a fail", FAIL, True): RETURNED,
    Case("after a fail", FAIL, False): RETURNED,
}
"""ABORT aside, the route an agent asks for never changes where a stage with a way back leads."""

ROUTES = [*RouteTarget, None, "SOMEWHERE"]
SEVERITIES = [*Severity, None, "AWFUL"]
RETRIES = (0, 2, 3, 4)


def prepared(kind: StageKind, barrier: str, policy: Policy, other: StageKind = StageKind.DOCS) -> Drive:
    """A pipeline whose stage X is active: alone, or as a member of a barrier with a Y beside it."""
    group = None if barrier == "none" else "both"
    nodes = [Node("DEV", StageKind.DEV), Node("X", kind, deps=("DEV",), on_fail="DEV", barrier=group)]
    if group:
        nodes.append(Node("Y", other, deps=("DEV",), on_fail="DEV", barrier=group))
    last = Node("END", StageKind.DOCS, deps=("X", "Y") if group else ("X",))
    drive = start(graph=build_graph([*nodes, last]), policy=policy)
    drive.complete("DEV")
    if barrier.startswith("after"):
        drive.complete("Y", said("PASS" if barrier == "after a pass" else "FAIL"))
    return drive


def outcome(drive: Drive, words: dict[str, str | None], retries: int) -> commands.CompletionAnswer:
    """Complete X in a copy of the pipeline."""
    state = drive.pipeline.copy()
    state.stages["X"] = replace(state.stages["X"], retries=retries)
    trial = Drive(state, drive.now, [], dict(drive.timers))
    return trial.complete("X", said(words["verdict"] or "", words["route"], severity=words["severity"]))


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("barrier", sorted({case.barrier for case in TABLE}))
@pytest.mark.parametrize("kind", StageKind)
def test_every_combination_leads_where_the_table_says(kind: StageKind, barrier: str, policy: Policy) -> None:
    drive = prepared(kind, barrier, policy)
    for verdict, route, severity, retries in itertools.product(Verdict, ROUTES, SEVERITIES, RETRIES):
        answer = outcome(drive, {"verdict": verdict, "route": route, "severity": severity}, retries)
        expected = TABLE[Case(barrier, verdict, retries < 3)]
        if expected == FORCED:
            expected = ESCALATED if policy is Policy.STRICT and kind in QUALITY else ADVANCED
        if route is RouteTarget.ABORT:
            expected = ENDED
        assert answer.disposition == expected, (verdict, route, severity, retries)
        assert answer.route is not None
        assert (answer.route.severity is not None) == (verdict is FAIL)
        assert (answer.status is PipelineStatus.ESCALATED) == (expected is ESCALATED)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("barrier", sorted({case.barrier for case in TABLE}))
@pytest.mark.parametrize("kind", StageKind)
def test_every_verdict_that_is_no_word_counts_as_pass_and_proves_nothing(
    kind: StageKind, barrier: str, policy: Policy
) -> None:
    drive = prepared(kind, barrier, policy)
    for verdict, route, severity, retries in itertools.product(("", "MAYBE", "РASS"), ROUTES, SEVERITIES, RETRIES):
        answer = outcome(drive, {"verdict": verdict, "route": route, "severity": severity}, retries)
        expected = TABLE[Case(barrier, PASS, retries < 3)]
        if policy is Policy.STRICT and kind in QUALITY:
            expected = ESCALATED
        if route is RouteTarget.ABORT:
            expected = ENDED
        assert answer.disposition == expected, (verdict, route, severity, retries)
        assert answer.route is not None
        assert answer.route.verdict is PASS
        assert answer.route.degraded == (kind in QUALITY)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("kind", StageKind)
@pytest.mark.parametrize("other", StageKind)
def test_every_pair_of_members_without_retries_goes_on_or_waits_for_a_person(
    kind: StageKind, other: StageKind, policy: Policy
) -> None:
    drive = prepared(kind, "first of two", policy, other)
    for stage in ("X", "Y"):
        drive.pipeline.change_stage(stage, retries=3)
    assert drive.complete("Y", said("FAIL")).disposition is WAIT
    answer = drive.complete("X", said("FAIL"))
    judges = {stage for stage, of in (("X", kind), ("Y", other)) if of in QUALITY and policy is Policy.STRICT}
    assert answer.disposition is (ESCALATED if judges else ADVANCED)
    assert {stage for stage in ("X", "Y") if drive.status(stage) is StageStatus.ESCALATED} == judges
    assert drive.last(EventName.RETRY_EXHAUSTED).forced_on is not bool(judges)
    assert drive.count(EventName.BARRIER_RESOLVED) == (0 if judges else 1)


TIMED_OUT: dict[tuple[str, bool], str] = {
    ("first of two", True): "on",
    ("first of two", False): "on",
    ("after a pass", True): "on",
    ("after a pass", False): "on",
    ("after a fail", True): "back",
    ("after a fail", False): "on",
}
"""By what had arrived, and whether a member that failed may still go back."""


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize(("barrier", "retries_left"), TIMED_OUT)
@pytest.mark.parametrize("kind", StageKind)
def test_every_barrier_whose_time_is_over_leads_where_the_table_says(
    kind: StageKind, barrier: str, retries_left: bool, policy: Policy
) -> None:
    drive = prepared(kind, barrier, policy)
    drive.pipeline.change_stage("Y", retries=0 if retries_left else 3)
    answer = drive.fire("barrier:both")
    judged = policy is Policy.STRICT and kind in QUALITY
    if TIMED_OUT[barrier, retries_left] == "back":
        assert (drive.status("DEV"), drive.status("X")) == (StageStatus.READY, StageStatus.PENDING)
    elif judged:
        assert (drive.status("X"), drive.status("END")) == (StageStatus.ESCALATED, StageStatus.PENDING)
    else:
        assert (drive.status("X"), drive.status("END")) == (StageStatus.TIMED_OUT, StageStatus.READY)
    waits = judged and TIMED_OUT[barrier, retries_left] == "on"
    assert answer.status is (PipelineStatus.ESCALATED if waits else PipelineStatus.ACTIVE)
    assert drive.count(EventName.BARRIER_RESOLVED) == (0 if waits else 1)


WITHOUT_A_WAY_BACK: dict[tuple[str, RouteTarget], Disposition] = {
    ("before DEV", RouteTarget.DEV): REPEATED,
    ("before DEV", RouteTarget.NEXT): ADVANCED,
    ("before DEV", RouteTarget.COMPLETE): ADVANCED,
    ("before DEV", RouteTarget.BARRIER): ADVANCED,
    ("DEV itself", RouteTarget.DEV): REPEATED,
    ("DEV itself", RouteTarget.NEXT): ADVANCED,
    ("DEV itself", RouteTarget.COMPLETE): ADVANCED,
    ("DEV itself", RouteTarget.BARRIER): ADVANCED,
    ("no DEV at all", RouteTarget.DEV): ADVANCED,
    ("no DEV at all", RouteTarget.NEXT): ADVANCED,
    ("no DEV at all", RouteTarget.COMPLETE): ADVANCED,
    ("no DEV at all", RouteTarget.BARRIER): ADVANCED,
    ("after DEV, own DAG", RouteTarget.DEV): ADVANCED,
    ("after DEV, own DAG", RouteTarget.NEXT): ADVANCED,
    ("after DEV, own DAG", RouteTarget.COMPLETE): ADVANCED,
    ("after DEV, own DAG", RouteTarget.BARRIER): ADVANCED,
}


KINDS: dict[str, list[StageKind]] = {
    "before DEV": [kind for kind in StageKind if kind is not StageKind.DEV],
    "DEV itself": [StageKind.DEV],
    "no DEV at all": [kind for kind in StageKind if kind is not StageKind.DEV],
    "after DEV, own DAG": [kind for kind in StageKind if kind is not StageKind.DEV],
}


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize(("place", "route"), WITHOUT_A_WAY_BACK)
@pytest.mark.parametrize("retries", RETRIES)
def test_every_fail_without_on_fail_leads_where_the_table_says(
    place: str, route: RouteTarget, retries: int, policy: Policy
) -> None:
    for kind in KINDS[place]:
        x = Node("X", kind, next=("END",))
        end = Node("END", StageKind.DEV if place == "before DEV" else StageKind.DOCS)
        before = [Node("DEV", StageKind.DEV, next=("X",))] if place.startswith("after") else []
        drive = start(graph=build_graph([*before, x, end]), policy=policy)
        if before:
            drive.complete("DEV")
        answer = outcome(drive, {"verdict": FAIL, "route": route, "severity": "LOW"}, retries)
        expected = ADVANCED if retries >= 3 else WITHOUT_A_WAY_BACK[place, route]
        if expected is ADVANCED and policy is Policy.STRICT and kind in QUALITY:
            expected = ESCALATED
        assert answer.disposition == expected, kind


def test_terminal_states_have_no_exit_and_every_live_state_can_end() -> None:
    pairs = {pair for pairs in TRANSITIONS.values() for pair in pairs}
    assert set(TRANSITIONS) == set(EventName)
    for status in PipelineStatus:
        targets = {target for source, target in pairs if source == status}
        assert (targets == {status}) == (status not in LIVE)
        if status in LIVE:
            assert PipelineStatus.CANCELLED in targets
