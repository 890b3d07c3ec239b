"""A small campaign of faults, in every test run: one death of each kind per service, a storm, a cut wire, then the proof."""

from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.services.chassis.core.crash import CrashPoint
from tests.robustness.faults.__main__ import report
from tests.robustness.faults.campaign import Figures, Terms, campaign
from tests.robustness.faults.schedule import Fault, Plan

PLAN = Plan(
    seed=1,
    script=(Fault.STORM, Fault.UNREACHABLE, Fault.FULL_DISK, Fault.SLOW_DISK, Fault.CLOCK, Fault.KILL_ALL),
    points=(CrashPoint.BATCH_COMMITTED,),
    hold_seconds=0.5,
    clock_jumps_seconds=(-3600.0, 5.0, 3600.0),
)


@pytest.mark.timeout(300)
async def test_nothing_is_lost_or_doubled_when_services_die_and_calls_are_lost(tmp_path: Path) -> None:
    terms = Terms(seconds=0.0, runs=4, direct=1, plan=PLAN)
    figures: Figures = await campaign(terms, tmp_path)
    assert figures.broken == []
    assert figures.void == ""
    assert figures.kills >= 8
    assert figures.acknowledged_transitions >= 100


def test_a_run_that_is_stuck_is_a_broken_promise_and_a_slow_recovery_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = Figures(Terms(), acknowledged_transitions=10_000, recovery_p99_seconds=3.0)
    assert report(figures) == 0
    assert "SLOW" not in capsys.readouterr().out
    assert report(replace(figures, stuck=["run_1 CODER_EXEC: an agent"])) == 1
    assert "BROKEN  stuck: run_1 CODER_EXEC: an agent" in capsys.readouterr().out
    assert report(replace(figures, recovery_p99_seconds=3.1)) == 0
    assert "SLOW    recovery p99 3.1 s, over the aim of 3.0 s" in capsys.readouterr().out
